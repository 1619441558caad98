/* CUDA through its driver library, opened when the first launch needs it. The numbers are cuda.h's. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "driver.h"
#include "error.h"

enum { CUDA_STUB_LIBRARY = 34, CUDA_NO_DEVICE = 100, CUDA_INVALID_DEVICE = 101 };
enum { CUDA_INVALID_CONTEXT = 201, CUDA_CONTEXT_DESTROYED = 709, CUDA_NOT_SUPPORTED = 801 };
enum { ATTRIBUTE_GRID_X = 5, ATTRIBUTE_MAJOR = 75, ATTRIBUTE_MINOR = 76, ATTRIBUTE_COOPERATIVE = 95, ATTRIBUTE_SHARED = 97 };
enum { FUNCTION_STATIC_SHARED = 1, FUNCTION_DYNAMIC_SHARED = 8, FUNCTION_WIDE_CLUSTER = 14 };
enum { LAUNCH_COOPERATIVE = 2, LAUNCH_CLUSTER = 4, LAUNCH_CLUSTER_POLICY = 5, LAUNCH_PDL = 6, POLICY_SPREAD = 1 };
enum { CAPTURE_RELAXED = 2, TYPE_TFLOAT32 = 11, PROMOTION_128B = 2 };
enum { SHARED_WITHOUT_ASKING = 48 * 1024, LAST_DRIVER_WITH_SMALL_MAP_FAULT = 13010 };

typedef struct launch_attribute {
    int id;
    int padding;
    union {
        int number;
        struct { unsigned x, y, z; } cluster;
        char bytes[64];
    } value;
} launch_attribute;

typedef struct launch_config {
    unsigned grid[3], block[3], shared_bytes;
    void *stream;
    launch_attribute *attributes;
    unsigned attribute_count;
} launch_config;

_Static_assert(sizeof(launch_attribute) == 72 && sizeof(launch_config) == 56, "cuda.h's layout");

static struct {
    int (*cuInit)(unsigned);
    int (*cuDriverGetVersion)(int *);
    int (*cuDeviceGetCount)(int *);
    int (*cuDeviceGet)(int *, int);
    int (*cuDeviceGetAttribute)(int *, int, int);
    int (*cuDevicePrimaryCtxRetain)(void **, int);
    int (*cuCtxGetCurrent)(void **);
    int (*cuCtxSetCurrent)(void *);
    int (*cuCtxGetDevice)(int *);
    int (*cuStreamGetCtx)(void *, void **);
    int (*cuStreamSynchronize)(void *);
    int (*cuModuleLoadData)(void **, const void *);
    int (*cuModuleUnload)(void *);
    int (*cuModuleGetFunction)(void **, void *, const char *);
    int (*cuFuncSetAttribute)(void *, int, int);
    int (*cuFuncGetAttribute)(int *, int, void *);
    int (*cuLaunchKernel)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                          void **);
    int (*cuMemsetD8Async)(uint64_t, unsigned char, size_t, void *);
    int (*cuMemcpyDtoHAsync)(void *, uint64_t, size_t, void *);
    int (*cuMemGetAddressRange)(uint64_t *, size_t *, uint64_t);
    int (*cuGetErrorName)(int, const char **);
    /* Absent from older drivers. */
    int (*cuCtxGetId)(void *, unsigned long long *);
    int (*cuFuncGetParamInfo)(void *, size_t, size_t *, size_t *);
    int (*cuLaunchKernelEx)(const launch_config *, void *, void **, void **);
    int (*cuDeviceGetName)(char *, int, int);
    int (*cuMemAllocAsync)(uint64_t *, size_t, void *);
    int (*cuMemFreeAsync)(uint64_t, void *);
    int (*cuThreadExchangeStreamCaptureMode)(int *);
    int (*cuTensorMapEncodeTiled)(void *, int, unsigned, void *, const uint64_t *, const uint64_t *, const uint32_t *,
                                  const uint32_t *, int, int, int, int);
} cuda;

static _Atomic int driver_version;

static int current(uint64_t *identity) {
    if (cuda.cuCtxGetId) {
        unsigned long long id = 0;
        int code = cuda.cuCtxGetId(NULL, &id);
        *identity = code ? 0 : id;
        return code == CUDA_INVALID_CONTEXT || code == CUDA_CONTEXT_DESTROYED ? 0 : code;
    }
    void *context = NULL;
    int code = cuda.cuCtxGetCurrent(&context);
    *identity = (uint64_t)(uintptr_t)context;
    return code;
}

static int get_context(void **context) {
    return cuda.cuCtxGetCurrent(context);
}

/* The primary contexts that we retained stay retained: others may have been given them by the driver meanwhile. Two
 * threads that come first retain one twice, which costs nothing; a lock would be one more to mind in a fork. */
static int retain(int ordinal, void **context) {
    static _Atomic(void *) retained[64];
    int device, code;
    if (ordinal < 0 || ordinal >= 64)
        return CUDA_INVALID_DEVICE;
    if ((*context = atomic_load(&retained[ordinal])))
        return 0;
    if ((code = cuda.cuDeviceGet(&device, ordinal)) || (code = cuda.cuDevicePrimaryCtxRetain(context, device)))
        return code;
    atomic_store(&retained[ordinal], *context);
    return 0;
}

static int enter(void *stream) {
    void *context = NULL;
    /* 0, 1 and 2 are the default streams, which belong to whatever context is current. */
    int code = (uintptr_t)stream > 2 ? cuda.cuStreamGetCtx(stream, &context) : retain(0, &context);
    return code ? code : cuda.cuCtxSetCurrent(context);
}

static int push(int ordinal, precast_visit *visit) {
    void *context = NULL;
    int device = -1, code = cuda.cuCtxGetCurrent(&visit->before);
    visit->moved = 0;
    if (!code && visit->before)
        code = cuda.cuCtxGetDevice(&device);
    if (code || device == ordinal || (code = retain(ordinal, &context)) || (code = cuda.cuCtxSetCurrent(context)))
        return code;
    visit->moved = 1;
    return 0;
}

static int pop(const precast_visit *visit) {
    return visit->moved ? cuda.cuCtxSetCurrent(visit->before) : 0;
}

static int describe(precast_device_facts *facts) {
    int device, major = 0, minor = 0, shared = 0, limit = 0, code;
    if ((code = cuda.cuCtxGetDevice(&device)) || (code = cuda.cuDeviceGetAttribute(&major, ATTRIBUTE_MAJOR, device)) ||
        (code = cuda.cuDeviceGetAttribute(&minor, ATTRIBUTE_MINOR, device)) ||
        (code = cuda.cuDeviceGetAttribute(&shared, ATTRIBUTE_SHARED, device)) ||
        (code = cuda.cuDeviceGetAttribute(&facts->cooperative, ATTRIBUTE_COOPERATIVE, device)))
        return code;
    for (int i = 0; i < 3; i++) {
        if ((code = cuda.cuDeviceGetAttribute(&limit, ATTRIBUTE_GRID_X + i, device)))
            return code;
        facts->grid_limits[i] = limit;
    }
    facts->ordinal = device;
    facts->arch = 10 * major + minor;
    facts->shared_limit = (uint32_t)shared;
    snprintf(facts->name, sizeof facts->name, "cuda:%d", facts->arch);
    if (cuda.cuDeviceGetName && cuda.cuDeviceGetName(facts->product, sizeof facts->product, device))
        facts->product[0] = 0;
    return 0;
}

/* Loading is no part of what a stream is capturing, and the driver must be told so. */
static int load(const void *image, void **module) {
    int mode = CAPTURE_RELAXED;
    int exchanged = cuda.cuThreadExchangeStreamCaptureMode && !cuda.cuThreadExchangeStreamCaptureMode(&mode);
    int code = cuda.cuModuleLoadData(module, image);
    if (exchanged)
        cuda.cuThreadExchangeStreamCaptureMode(&mode);
    return code;
}

static int unload(uint64_t identity, void *context, void *module) {
    void *previous = NULL;
    unsigned long long id = 0;
    int code;
    /* A context that is gone took its modules with it. */
    if (cuda.cuCtxGetId && (cuda.cuCtxGetId(context, &id) || id != identity))
        return 0;
    if ((code = cuda.cuCtxGetCurrent(&previous)) || (code = cuda.cuCtxSetCurrent(context)))
        return code;
    code = cuda.cuModuleUnload(module);
    cuda.cuCtxSetCurrent(previous);
    return code;
}

static int find(void *module, const char *symbol, void **function) {
    return cuda.cuModuleGetFunction(function, module, symbol);
}

static int prepare(void *function, const precast_unit_record *unit) {
    int code = 0;
    if (unit->shared_bytes > SHARED_WITHOUT_ASKING)
        code = cuda.cuFuncSetAttribute(function, FUNCTION_DYNAMIC_SHARED, (int)unit->shared_bytes);
    if (!code && unit->ctas > 8)
        code = cuda.cuFuncSetAttribute(function, FUNCTION_WIDE_CLUSTER, 1);
    return code;
}

static int launch_with_attributes(void *function, const precast_launch_shape *shape, const int64_t grid[3],
                                  void *stream, void **parameters) {
    launch_attribute attributes[4];
    launch_config config = {{(unsigned)grid[0] * shape->ctas, (unsigned)grid[1], (unsigned)grid[2]},
                            {shape->threads, 1, 1}, shape->shared_bytes, stream, attributes, 0};
    memset(attributes, 0, sizeof attributes);
    if (shape->flags & PRECAST_PDL) {
        attributes[config.attribute_count].id = LAUNCH_PDL;
        attributes[config.attribute_count++].value.number = 1;
    }
    if (shape->flags & PRECAST_COOPERATIVE) {
        attributes[config.attribute_count].id = LAUNCH_COOPERATIVE;
        attributes[config.attribute_count++].value.number = 1;
    }
    if (shape->ctas > 1) {
        launch_attribute *cluster = &attributes[config.attribute_count++];
        cluster->id = LAUNCH_CLUSTER;
        cluster->value.cluster.x = shape->ctas, cluster->value.cluster.y = 1, cluster->value.cluster.z = 1;
        attributes[config.attribute_count].id = LAUNCH_CLUSTER_POLICY;
        attributes[config.attribute_count++].value.number = POLICY_SPREAD;
    }
    return cuda.cuLaunchKernelEx ? cuda.cuLaunchKernelEx(&config, function, parameters, NULL) : CUDA_NOT_SUPPORTED;
}

static int launch(void *function, const precast_launch_shape *shape, const int64_t grid[3], void *stream,
                  void **parameters) {
    if (shape->ctas > 1 || shape->flags)
        return launch_with_attributes(function, shape, grid, stream, parameters);
    return cuda.cuLaunchKernel(function, (unsigned)grid[0], (unsigned)grid[1], (unsigned)grid[2],
                               shape->threads, 1, 1, shape->shared_bytes, stream, parameters, NULL);
}

static precast_direct direct(void) {
    return (precast_direct){cuda.cuCtxGetId, cuda.cuFuncGetParamInfo, cuda.cuLaunchKernel};
}

static int allocate(void **memory, size_t bytes, void *stream) {
    uint64_t address = 0;
    int code = cuda.cuMemAllocAsync ? cuda.cuMemAllocAsync(&address, bytes, stream) : CUDA_NOT_SUPPORTED;
    *memory = (void *)(uintptr_t)address;
    return code;
}

static int release(void *memory, void *stream) {
    return cuda.cuMemFreeAsync ? cuda.cuMemFreeAsync((uint64_t)(uintptr_t)memory, stream) : CUDA_NOT_SUPPORTED;
}

static int clear(void *memory, size_t bytes, void *stream) {
    return cuda.cuMemsetD8Async((uint64_t)(uintptr_t)memory, 0, bytes, stream);
}

static int read_back(void *to, const void *memory, size_t bytes, void *stream) {
    int code = cuda.cuMemcpyDtoHAsync(to, (uint64_t)(uintptr_t)memory, bytes, stream);
    return code ? code : cuda.cuStreamSynchronize(stream);
}

static int extent(const void *memory, uint64_t *bytes_after) {
    uint64_t base = 0, address = (uint64_t)(uintptr_t)memory;
    size_t size = 0;
    int code = cuda.cuMemGetAddressRange(&base, &size, address);
    *bytes_after = base + size - address;
    return code;
}

static int encode(precast_tensor_map *map, const precast_descriptor_record *descriptor, const precast_tensor *tensor) {
    uint64_t shape[5], strides[5], last_byte = 0;
    uint32_t block[5], steps[5] = {1, 1, 1, 1, 1};
    int rank = descriptor->rank;
    int type = tensor->round_to_tf32 ? TYPE_TFLOAT32 : descriptor->element_type;
    /* The driver counts dimensions from the innermost and leaves its stride out. */
    for (int i = 0; i < rank; i++) {
        int outer = rank - 1 - i;
        shape[i] = (uint64_t)tensor->shape[outer] << (i == 0 && descriptor->fp4_padded);
        block[i] = descriptor->block[outer];
        uint64_t stride = (uint64_t)tensor->strides[outer] * descriptor->element_bytes;
        if (i > 0)
            strides[i - 1] = stride;
        last_byte += (shape[i] - 1) * (i ? stride : descriptor->element_bytes);
    }
    int code = cuda.cuTensorMapEncodeTiled
                   ? cuda.cuTensorMapEncodeTiled(map->bytes, type, (unsigned)rank, tensor->base, shape, strides, block,
                                                 steps, 0, descriptor->swizzle, PROMOTION_128B, tensor->pad_with_nan)
                   : CUDA_NOT_SUPPORTED;
    if (!code && driver_version <= LAST_DRIVER_WITH_SMALL_MAP_FAULT && last_byte + 1 < 128 * 1024) {
        /* These drivers set a bit that is wrong for tensors under 128 KiB; later ones do not. */
        uint64_t word;
        memcpy(&word, map->bytes + 8, 8);
        word &= ~(UINT64_C(1) << 21);
        memcpy(map->bytes + 8, &word, 8);
    }
    return code;
}

static const char *describe_error(int code) {
    const char *name = NULL;
    return cuda.cuGetErrorName && !cuda.cuGetErrorName(code, &name) && name ? name : "an error of no name";
}

static const precast_driver driver = {
    PRECAST_CUDA, "CUDA", 2, current, enter, push, pop, describe, load, unload, get_context, find, prepare, launch,
    direct, allocate, release, clear, read_back, extent, encode, describe_error,
};

static const struct { const char *name; void *place; int needed; } symbols[] = {
    {"cuInit", &cuda.cuInit, 1},
    {"cuDriverGetVersion", &cuda.cuDriverGetVersion, 1},
    {"cuDeviceGetCount", &cuda.cuDeviceGetCount, 1},
    {"cuDeviceGet", &cuda.cuDeviceGet, 1},
    {"cuDeviceGetAttribute", &cuda.cuDeviceGetAttribute, 1},
    {"cuDevicePrimaryCtxRetain", &cuda.cuDevicePrimaryCtxRetain, 1},
    {"cuCtxGetCurrent", &cuda.cuCtxGetCurrent, 1},
    {"cuCtxSetCurrent", &cuda.cuCtxSetCurrent, 1},
    {"cuCtxGetDevice", &cuda.cuCtxGetDevice, 1},
    {"cuStreamGetCtx", &cuda.cuStreamGetCtx, 1},
    {"cuStreamSynchronize", &cuda.cuStreamSynchronize, 1},
    {"cuModuleLoadData", &cuda.cuModuleLoadData, 1},
    {"cuModuleUnload", &cuda.cuModuleUnload, 1},
    {"cuModuleGetFunction", &cuda.cuModuleGetFunction, 1},
    {"cuFuncSetAttribute", &cuda.cuFuncSetAttribute, 1},
    {"cuFuncGetAttribute", &cuda.cuFuncGetAttribute, 1},
    {"cuLaunchKernel", &cuda.cuLaunchKernel, 1},
    {"cuMemsetD8Async", &cuda.cuMemsetD8Async, 1},
    {"cuMemcpyDtoHAsync_v2", &cuda.cuMemcpyDtoHAsync, 1},
    {"cuMemGetAddressRange_v2", &cuda.cuMemGetAddressRange, 1},
    {"cuGetErrorName", &cuda.cuGetErrorName, 1},
    {"cuCtxGetId", &cuda.cuCtxGetId, 0},
    {"cuFuncGetParamInfo", &cuda.cuFuncGetParamInfo, 0},
    {"cuLaunchKernelEx", &cuda.cuLaunchKernelEx, 0},
    {"cuDeviceGetName", &cuda.cuDeviceGetName, 0},
    {"cuMemAllocAsync", &cuda.cuMemAllocAsync, 0},
    {"cuMemFreeAsync", &cuda.cuMemFreeAsync, 0},
    {"cuThreadExchangeStreamCaptureMode", &cuda.cuThreadExchangeStreamCaptureMode, 0},
    {"cuTensorMapEncodeTiled", &cuda.cuTensorMapEncodeTiled, 0},
};

/* Why the library cannot be used; empty where it can. */
static char useless[256];
static int absent;
static _Atomic int running;

static void open_library(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        absent = 1;
        snprintf(useless, sizeof useless, "the CUDA driver is not to be had: %.180s", dlerror());
    }
    for (size_t i = 0; library && i < sizeof symbols / sizeof *symbols; i++) {
        void *symbol = dlsym(library, symbols[i].name);
        if (!symbol && symbols[i].needed) {
            snprintf(useless, sizeof useless, "the CUDA driver is too old: it has no %s", symbols[i].name);
            return;
        }
        memcpy(symbols[i].place, &symbol, sizeof symbol);
    }
}

static precast_found start(void) {
    int count = 0, version = 0, code = cuda.cuInit(0);
    if (!code)
        code = cuda.cuDeviceGetCount(&count);
    if (code == CUDA_NO_DEVICE || (!code && !count)) {
        precast_fail(PRECAST_NO_DEVICE, "the CUDA driver finds no device");
        return (precast_found){NULL, 1};
    }
    if (code) {
        precast_fail(PRECAST_NO_DEVICE, "CUDA does not start: %s (%d)", describe_error(code), code);
        return (precast_found){NULL, code == CUDA_STUB_LIBRARY};
    }
    atomic_store(&driver_version, cuda.cuDriverGetVersion(&version) ? 0 : version);
    atomic_store_explicit(&running, 1, memory_order_release);
    return (precast_found){&driver, 0};
}

precast_found precast_cuda(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_library);
    if (useless[0]) {
        precast_fail(PRECAST_NO_DEVICE, "%s", useless);
        return (precast_found){NULL, absent};
    }
    return atomic_load_explicit(&running, memory_order_acquire) ? (precast_found){&driver, 0} : start();
}
