/* A HIP runtime for tests. Every thread starts on device 0. */
#include "fake_driver.h"

static char arch[64] = "gfx942:sramecc+:xnack-";
static size_t allocation_bytes = 4096;
static _Thread_local int current;

void fake_devices(int count, const int *archs) { (void)archs; device_count = count; }
void fake_hip_arch(const char *name) { snprintf(arch, sizeof arch, "%s", name); }
void fake_hip_allocation(size_t bytes) { allocation_bytes = bytes; }
int fake_current_device(void) { return current; }

int hipInit(unsigned flags) { (void)flags; CALL(hipInit); return 0; }
int hipGetDeviceCount(int *count) { CALL(hipGetDeviceCount); *count = device_count; return 0; }
int hipGetDevice(int *device) { CALL(hipGetDevice); *device = current; return 0; }

int hipSetDevice(int device) {
    CALL(hipSetDevice);
    if (device < 0 || device >= device_count)
        return 101;
    current = device;
    return 0;
}

int hipDeviceGetAttribute(int *value, int attribute, int device) {
    (void)device;
    CALL(hipDeviceGetAttribute);
    if (attribute != 10)
        return INVALID_VALUE;
    *value = cooperative;
    return 0;
}

int hipGetDevicePropertiesR0600(void *properties, int device) {
    (void)device;
    CALL(hipGetDeviceProperties);
    memset(properties, 0, 1472);
    strcpy((char *)properties + 1160, arch);
    return 0;
}

int hipStreamSynchronize(void *stream) { (void)stream; CALL(hipStreamSynchronize); return 0; }
int hipModuleLoadData(void **found, const void *image) { CALL(hipModuleLoadData); return load_module(found, image, current); }
int hipModuleUnload(void *which) { CALL(hipModuleUnload); return unload_module(which, current); }

int hipModuleGetFunction(void **function, void *which, const char *symbol) {
    CALL(hipModuleGetFunction);
    return find_function(function, which, symbol);
}

int hipModuleLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by, unsigned bz,
                          unsigned shared, void *stream, void **parameters, void **extra) {
    const fake_config with = {{x, y, z}, {bx, by, bz}, shared, stream, NULL, 0};
    CALL(hipModuleLaunchKernel);
    return record(function, current, &with, parameters, extra);
}

int hipModuleLaunchCooperativeKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by,
                                     unsigned bz, unsigned shared, void *stream, void **parameters) {
    const fake_config with = {{x, y, z}, {bx, by, bz}, shared, stream, NULL, 0};
    CALL(hipModuleLaunchCooperativeKernel);
    return record(function, current, &with, parameters, NULL);
}

int hipMallocAsync(void **memory, size_t bytes, void *stream) {
    (void)stream;
    CALL(hipMallocAsync);
    return allocate_block(memory, bytes);
}

int hipFreeAsync(void *memory, void *stream) {
    (void)stream;
    free(memory); /* also where it is to fail: leaks are looked for */
    CALL(hipFreeAsync);
    add_locked(&live, -1);
    return 0;
}

int hipMemsetAsync(void *memory, int value, size_t bytes, void *stream) {
    (void)stream;
    CALL(hipMemsetAsync);
    memset(memory, value, bytes);
    return 0;
}

int hipMemcpyDtoHAsync(void *to, const void *memory, size_t bytes, void *stream) {
    (void)stream;
    CALL(hipMemcpyDtoHAsync);
    memcpy(to, memory, bytes);
    return 0;
}

int hipMemGetAddressRange(void **base, size_t *size, const void *memory) {
    CALL(hipMemGetAddressRange);
    *base = (void *)memory;
    *size = allocation_bytes;
    return 0;
}

const char *hipGetErrorName(int code) {
    return code == OUT_OF_MEMORY ? "hipErrorOutOfMemory" : code == INVALID_HANDLE ? "hipErrorInvalidHandle" : "hipErrorOther";
}

#ifndef OLD
int hipDrvLaunchKernelEx(const fake_config *with, void *function, void **parameters, void **extra) {
    CALL(hipDrvLaunchKernelEx);
    return record(function, current, with, parameters, extra);
}

int hipThreadExchangeStreamCaptureMode(int *mode) { (void)mode; CALL(hipThreadExchangeStreamCaptureMode); return 0; }
#endif
