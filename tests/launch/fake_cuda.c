/* A CUDA driver for tests. */
#include "fake_driver.h"

static int archs[MOST_DEVICES] = {90, 90, 90, 90}, shared_limit = 227 * 1024;
static char contexts[MOST_DEVICES];
static unsigned long long generation[MOST_DEVICES] = {1, 2, 3, 4};
static _Thread_local int current = -1;

void fake_devices(int count, const int *arch) {
    device_count = count;
    for (int i = 0; i < count; i++)
        archs[i] = arch[i];
}

void fake_shared_limit(int bytes) { shared_limit = bytes; }
void fake_reset_context(int device) { generation[device] += 100; if (current == device) current = -1; }
int fake_current_device(void) { return current; }

int cuInit(unsigned flags) { (void)flags; CALL(cuInit); return 0; }
int cuDriverGetVersion(int *version) { CALL(cuDriverGetVersion); *version = 13000; return 0; }
int cuDeviceGetCount(int *count) { CALL(cuDeviceGetCount); *count = device_count; return 0; }
int cuDeviceGet(int *device, int ordinal) { CALL(cuDeviceGet); *device = ordinal; return ordinal < device_count ? 0 : 101; }

int cuDeviceGetAttribute(int *value, int attribute, int device) {
    CALL(cuDeviceGetAttribute);
    switch (attribute) {
    case 75: *value = archs[device] / 10; return 0;
    case 76: *value = archs[device] % 10; return 0;
    case 97: *value = shared_limit; return 0;
    case 95: *value = cooperative; return 0;
    case 5: *value = 2147483647; return 0;
    case 6: case 7: *value = 65535; return 0;
    default: return INVALID_VALUE;
    }
}

int cuDevicePrimaryCtxRetain(void **context, int device) {
    CALL(cuDevicePrimaryCtxRetain);
    *context = &contexts[device];
    return 0;
}

int cuCtxGetCurrent(void **context) {
    CALL(cuCtxGetCurrent);
    *context = current < 0 ? NULL : &contexts[current];
    return 0;
}

int cuCtxSetCurrent(void *context) {
    CALL(cuCtxSetCurrent);
    current = context ? (int)((char *)context - contexts) : -1;
    return 0;
}

int cuCtxGetDevice(int *device) {
    CALL(cuCtxGetDevice);
    *device = current;
    return current < 0 ? 201 : 0;
}

int cuStreamGetCtx(void *stream, void **context) {
    CALL(cuStreamGetCtx);
    *context = &contexts[((size_t)stream >> 16) - 1];
    return 0;
}

int cuStreamSynchronize(void *stream) { (void)stream; CALL(cuStreamSynchronize); return 0; }

int cuModuleLoadData(void **found, const void *image) {
    CALL(cuModuleLoadData);
    return current < 0 ? 201 : load_module(found, image, current);
}

int cuModuleUnload(void *which) { CALL(cuModuleUnload); return unload_module(which, current); }

int cuModuleGetFunction(void **function, void *which, const char *symbol) {
    CALL(cuModuleGetFunction);
    return find_function(function, which, symbol);
}

int cuFuncSetAttribute(void *function, int attribute, int value) {
    (void)function, (void)attribute, (void)value;
    CALL(cuFuncSetAttribute);
    return 0;
}

int cuFuncGetAttribute(int *value, int attribute, void *function) {
    (void)attribute, (void)function;
    *value = 0;
    return 0;
}

int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **parameters, void **extra) {
    const fake_config with = {{x, y, z}, {bx, by, bz}, shared, stream, NULL, 0};
    CALL(cuLaunchKernel);
    return record(function, current, &with, parameters, extra);
}

int cuMemsetD8Async(unsigned long long memory, unsigned char value, size_t bytes, void *stream) {
    (void)stream;
    CALL(cuMemsetD8Async);
    memset((void *)memory, value, bytes);
    return 0;
}

int cuMemcpyDtoHAsync_v2(void *to, unsigned long long memory, size_t bytes, void *stream) {
    (void)stream;
    CALL(cuMemcpyDtoHAsync);
    memcpy(to, (void *)memory, bytes);
    return 0;
}

int cuMemGetAddressRange_v2(unsigned long long *base, size_t *size, unsigned long long memory) {
    *base = memory, *size = 4096;
    return 0;
}

int cuGetErrorName(int code, const char **name) {
    *name = code == OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : code == INVALID_HANDLE ? "CUDA_ERROR_INVALID_HANDLE"
                                                                                        : "CUDA_ERROR_OTHER";
    return 0;
}

#ifndef OLD
int cuCtxGetId(void *context, unsigned long long *id) {
    int device = context ? (int)((char *)context - contexts) : current;
    CALL(cuCtxGetId);
    if (device < 0)
        return 201;
    *id = generation[device];
    return 0;
}

int cuFuncGetParamInfo(void *which, size_t parameter, size_t *offset, size_t *bytes) {
    const module *function = which;
    CALL(cuFuncGetParamInfo);
    if (parameter >= (size_t)function->count)
        return INVALID_VALUE;
    *offset = (size_t)place_of(function, (int)parameter);
    *bytes = (size_t)function->sizes[parameter];
    return 0;
}

int cuLaunchKernelEx(const fake_config *with, void *function, void **parameters, void **extra) {
    CALL(cuLaunchKernelEx);
    return record(function, current, with, parameters, extra);
}

int cuMemAllocAsync(unsigned long long *memory, size_t bytes, void *stream) {
    void *block;
    (void)stream;
    CALL(cuMemAllocAsync);
    int code = allocate_block(&block, bytes);
    *memory = (unsigned long long)(size_t)block;
    return code;
}

int cuMemFreeAsync(unsigned long long memory, void *stream) {
    (void)stream;
    free((void *)memory); /* also where it is to fail: leaks are looked for */
    CALL(cuMemFreeAsync);
    add_locked(&live, -1);
    return 0;
}

int cuThreadExchangeStreamCaptureMode(int *mode) { (void)mode; CALL(cuThreadExchangeStreamCaptureMode); return 0; }

int cuTensorMapEncodeTiled(void *map, int type, unsigned rank, void *base, const unsigned long long *shape,
                           const unsigned long long *strides, const unsigned *box, const unsigned *steps,
                           int interleave, int swizzle, int promotion, int fill) {
    CALL(cuTensorMapEncodeTiled);
    unsigned long long words[16] = {(unsigned long long)(size_t)base, 1ull << 21 | 1, (unsigned long long)type, rank,
                                    shape[0], rank > 1 ? shape[1] : 0, rank > 1 ? strides[0] : 0, box[0],
                                    rank > 1 ? box[1] : 0, steps[0], (unsigned long long)interleave,
                                    (unsigned long long)swizzle, (unsigned long long)promotion,
                                    (unsigned long long)fill, 0, 0};
    memcpy(map, words, sizeof words);
    return 0;
}
#endif
