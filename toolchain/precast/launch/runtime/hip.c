/* HIP through its runtime library, opened when the first launch needs it. The numbers are hip_runtime_api.h's. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "driver.h"
#include "error.h"

enum { HIP_NO_DEVICE = 100, HIP_NOT_SUPPORTED = 801, ATTRIBUTE_COOPERATIVE = 10 };
enum { LAUNCH_COOPERATIVE = 2, LAUNCH_CLUSTER = 4, CAPTURE_RELAXED = 2 };
enum { PROPERTIES_BYTES = 4096, PROPERTIES_ARCH = 1160 }; /* hipDeviceProp_tR0600: 1472 bytes, gcnArchName at 1160 */

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

static struct {
    int (*hipInit)(unsigned);
    int (*hipGetDeviceCount)(int *);
    int (*hipGetDevice)(int *);
    int (*hipSetDevice)(int);
    int (*hipDeviceGetAttribute)(int *, int, int);
    int (*hipGetDeviceProperties)(void *, int);
    int (*hipStreamSynchronize)(void *);
    int (*hipModuleLoadData)(void **, const void *);
    int (*hipModuleUnload)(void *);
    int (*hipModuleGetFunction)(void **, void *, const char *);
    int (*hipModuleLaunchKernel)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
                                 void **, void **);
    int (*hipModuleLaunchCooperativeKernel)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                            unsigned, void *, void **);
    int (*hipMallocAsync)(void **, size_t, void *);
    int (*hipFreeAsync)(void *, void *);
    int (*hipMemsetAsync)(void *, int, size_t, void *);
    int (*hipMemcpyDtoHAsync)(void *, const void *, size_t, void *);
    int (*hipMemGetAddressRange)(void **, size_t *, const void *);
    const char *(*hipGetErrorName)(int);
    /* Absent from older runtimes. */
    int (*hipDrvLaunchKernelEx)(const launch_config *, void *, void **, void **);
    int (*hipThreadExchangeStreamCaptureMode)(int *);
} hip;

/* HIP has one context for each device: its ordinal, from 1, is its identity. */
static int current(uint64_t *identity) {
    int device = 0, code = hip.hipGetDevice(&device);
    *identity = code ? 0 : (uint64_t)device + 1;
    return code;
}

static int enter(void *stream) {
    (void)stream;
    return 0;
}

static int get_context(void **context) {
    uint64_t identity = 0;
    int code = current(&identity);
    *context = (void *)(uintptr_t)identity;
    return code;
}

static int push(int ordinal, precast_visit *visit) {
    int code = get_context(&visit->before);
    visit->moved = 0;
    if (code || (int)(uintptr_t)visit->before == ordinal + 1 || (code = hip.hipSetDevice(ordinal)))
        return code;
    visit->moved = 1;
    return 0;
}

static int pop(const precast_visit *visit) {
    return visit->moved ? hip.hipSetDevice((int)(uintptr_t)visit->before - 1) : 0;
}

static int describe(precast_device_facts *facts) {
    _Alignas(16) char properties[PROPERTIES_BYTES];
    int device, code;
    memset(properties, 0, sizeof properties);
    if ((code = hip.hipGetDevice(&device)) || (code = hip.hipGetDeviceProperties(properties, device)) ||
        (code = hip.hipDeviceGetAttribute(&facts->cooperative, ATTRIBUTE_COOPERATIVE, device)))
        return code;
    facts->ordinal = device;
    snprintf(facts->product, sizeof facts->product, "%.95s", properties); /* the name comes first */
    facts->shared_limit = 160 * 1024; /* the most that any of them has; the runtime refuses what a device lacks */
    for (int i = 0; i < 3; i++)
        facts->grid_limits[i] = INT32_MAX;
    /* gfx942:sramecc+:xnack-: units are built for the part before the colon. */
    int length = (int)strcspn(properties + PROPERTIES_ARCH, ":");
    snprintf(facts->name, sizeof facts->name, "hip:%.*s", length > 40 ? 40 : length, properties + PROPERTIES_ARCH);
    return 0;
}

static int load(const void *image, void **module) {
    int mode = CAPTURE_RELAXED;
    int exchanged = hip.hipThreadExchangeStreamCaptureMode && !hip.hipThreadExchangeStreamCaptureMode(&mode);
    int code = hip.hipModuleLoadData(module, image);
    if (exchanged)
        hip.hipThreadExchangeStreamCaptureMode(&mode);
    return code;
}

static int unload(uint64_t identity, void *context, void *module) {
    (void)context;
    precast_visit visit;
    int code = push((int)identity - 1, &visit);
    if (code)
        return code;
    code = hip.hipModuleUnload(module);
    pop(&visit);
    return code;
}

static int find(void *module, const char *symbol, void **function) {
    return hip.hipModuleGetFunction(function, module, symbol);
}

static int prepare(void *function, const precast_unit_record *unit) {
    (void)function, (void)unit; /* shared memory needs no asking here */
    return 0;
}

static int launch_with_cluster(void *function, const precast_launch_shape *shape, const int64_t grid[3], void *stream,
                               void **parameters) {
    launch_attribute attributes[2];
    launch_config config = {{(unsigned)grid[0] * shape->ctas, (unsigned)grid[1], (unsigned)grid[2]},
                            {shape->threads, 1, 1}, shape->shared_bytes, stream, attributes, 2};
    memset(attributes, 0, sizeof attributes);
    attributes[0].id = LAUNCH_CLUSTER;
    attributes[0].value.cluster.x = shape->ctas;
    attributes[0].value.cluster.y = attributes[0].value.cluster.z = 1;
    attributes[1].id = LAUNCH_COOPERATIVE;
    attributes[1].value.number = (shape->flags & PRECAST_COOPERATIVE) != 0;
    return hip.hipDrvLaunchKernelEx ? hip.hipDrvLaunchKernelEx(&config, function, parameters, NULL) : HIP_NOT_SUPPORTED;
}

static int launch(void *function, const precast_launch_shape *shape, const int64_t size[3], void *stream,
                  void **parameters) {
    unsigned grid[3] = {(unsigned)size[0], (unsigned)size[1], (unsigned)size[2]};
    if (shape->ctas > 1)
        return launch_with_cluster(function, shape, size, stream, parameters);
    if (shape->flags & PRECAST_COOPERATIVE)
        return hip.hipModuleLaunchCooperativeKernel(function, grid[0], grid[1], grid[2], shape->threads, 1, 1,
                                                    shape->shared_bytes, stream, parameters);
    return hip.hipModuleLaunchKernel(function, grid[0], grid[1], grid[2], shape->threads, 1, 1, shape->shared_bytes,
                                     stream, parameters, NULL);
}

static int allocate(void **memory, size_t bytes, void *stream) {
    return hip.hipMallocAsync(memory, bytes, stream);
}

static int release(void *memory, void *stream) {
    return hip.hipFreeAsync(memory, stream);
}

static int clear(void *memory, size_t bytes, void *stream) {
    return hip.hipMemsetAsync(memory, 0, bytes, stream);
}

static int read_back(void *to, const void *memory, size_t bytes, void *stream) {
    int code = hip.hipMemcpyDtoHAsync(to, memory, bytes, stream);
    return code ? code : hip.hipStreamSynchronize(stream);
}

static int extent(const void *memory, uint64_t *bytes_after) {
    void *base = NULL;
    size_t size = 0;
    int code = hip.hipMemGetAddressRange(&base, &size, memory);
    *bytes_after = (uint64_t)(uintptr_t)base + size - (uint64_t)(uintptr_t)memory;
    return code;
}

static int encode(precast_tensor_map *map, const precast_descriptor_record *descriptor, const precast_tensor *tensor) {
    (void)map, (void)descriptor, (void)tensor;
    return HIP_NOT_SUPPORTED;
}

static const char *describe_error(int code) {
    const char *name = hip.hipGetErrorName ? hip.hipGetErrorName(code) : NULL;
    return name ? name : "an error of no name";
}

static const precast_driver driver = {
    PRECAST_HIP, "HIP", 2, current, enter, push, pop, describe, load, unload, get_context, find, prepare, launch,
    NULL, allocate, release, clear, read_back, extent, encode, describe_error,
};

static const struct { const char *name; void *place; int needed; } symbols[] = {
    {"hipInit", &hip.hipInit, 1},
    {"hipGetDeviceCount", &hip.hipGetDeviceCount, 1},
    {"hipGetDevice", &hip.hipGetDevice, 1},
    {"hipSetDevice", &hip.hipSetDevice, 1},
    {"hipDeviceGetAttribute", &hip.hipDeviceGetAttribute, 1},
    {"hipGetDevicePropertiesR0600", &hip.hipGetDeviceProperties, 1},
    {"hipStreamSynchronize", &hip.hipStreamSynchronize, 1},
    {"hipModuleLoadData", &hip.hipModuleLoadData, 1},
    {"hipModuleUnload", &hip.hipModuleUnload, 1},
    {"hipModuleGetFunction", &hip.hipModuleGetFunction, 1},
    {"hipModuleLaunchKernel", &hip.hipModuleLaunchKernel, 1},
    {"hipModuleLaunchCooperativeKernel", &hip.hipModuleLaunchCooperativeKernel, 1},
    {"hipMallocAsync", &hip.hipMallocAsync, 1},
    {"hipFreeAsync", &hip.hipFreeAsync, 1},
    {"hipMemsetAsync", &hip.hipMemsetAsync, 1},
    {"hipMemcpyDtoHAsync", &hip.hipMemcpyDtoHAsync, 1},
    {"hipMemGetAddressRange", &hip.hipMemGetAddressRange, 1},
    {"hipGetErrorName", &hip.hipGetErrorName, 1},
    {"hipDrvLaunchKernelEx", &hip.hipDrvLaunchKernelEx, 0},
    {"hipThreadExchangeStreamCaptureMode", &hip.hipThreadExchangeStreamCaptureMode, 0},
};

/* Why the library cannot be used; empty where it can. */
static char useless[256];
static int absent;
static _Atomic int running;

/* The one that the process has already (a framework brings its own) goes before the system's. */
static void *find_library(void) {
    static const char *const names[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so"};
    void *library = NULL;
    for (int i = 0; i < 6 && !library; i++)
        library = dlopen(names[i % 3], RTLD_NOW | RTLD_LOCAL | (i < 3 ? RTLD_NOLOAD : 0));
    return library;
}

static void open_library(void) {
    void *library = find_library();
    if (!library) {
        absent = 1;
        snprintf(useless, sizeof useless, "the HIP runtime is not to be had: %.180s", dlerror());
    }
    for (size_t i = 0; library && i < sizeof symbols / sizeof *symbols; i++) {
        void *symbol = dlsym(library, symbols[i].name);
        if (!symbol && symbols[i].needed) {
            snprintf(useless, sizeof useless, "the HIP runtime is too old: it has no %s", symbols[i].name);
            return;
        }
        memcpy(symbols[i].place, &symbol, sizeof symbol);
    }
}

static precast_found start(void) {
    int count = 0, code = hip.hipInit(0);
    if (!code)
        code = hip.hipGetDeviceCount(&count);
    if (code == HIP_NO_DEVICE || (!code && !count)) {
        precast_fail(PRECAST_NO_DEVICE, "the HIP runtime finds no device");
        return (precast_found){NULL, 1};
    }
    if (code) {
        precast_fail(PRECAST_NO_DEVICE, "HIP does not start: %s (%d)", describe_error(code), code);
        return (precast_found){NULL, 0};
    }
    atomic_store_explicit(&running, 1, memory_order_release);
    return (precast_found){&driver, 0};
}

precast_found precast_hip(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_library);
    if (useless[0]) {
        precast_fail(PRECAST_NO_DEVICE, "%s", useless);
        return (precast_found){NULL, absent};
    }
    return atomic_load_explicit(&running, memory_order_acquire) ? (precast_found){&driver, 0} : start();
}
