/* A HIP runtime for tests of tuning: the same device as in `timed_cuda.c`, under HIP's names and numbers. */
#include "timed_cuda.c"

enum { INVALID_VALUE = 1, ATTRIBUTE_COOPERATIVE = 10, ATTRIBUTE_L2_BYTES = 19 };

int hipInit(unsigned flags) { return cuInit(flags); }
int hipGetDeviceCount(int *count) { return cuDeviceGetCount(count); }
int hipGetDevice(int *device) { *device = 0; return 0; }
int hipSetDevice(int device) { return device ? 101 : 0; }
int hipRuntimeGetVersion(int *version) { *version = 70051831; return 0; }
int hipDeviceSynchronize(void) { return cuCtxSynchronize(); }

int hipDeviceGetAttribute(int *value, int attribute, int device) {
    (void)device;
    *value = attribute == ATTRIBUTE_L2_BYTES ? 1 << 20 : 0;
    return attribute == ATTRIBUTE_L2_BYTES || attribute == ATTRIBUTE_COOPERATIVE ? 0 : INVALID_VALUE;
}

int hipGetDevicePropertiesR0600(void *properties, int device) {
    memset(properties, 0, 1472);
    cuDeviceGetName(properties, 256, device);
    strcpy((char *)properties + 1160, "gfx942:sramecc+:xnack-");
    return 0;
}

int hipStreamCreateWithFlags(void **stream, unsigned flags) { return cuStreamCreate(stream, flags); }
int hipStreamSynchronize(void *stream) { return cuStreamSynchronize(stream); }
int hipModuleLoadData(void **module, const void *image) { return cuModuleLoadData(module, image); }
int hipModuleUnload(void *module) { return cuModuleUnload(module); }
int hipModuleGetFunction(void **found, void *module, const char *name) { return cuModuleGetFunction(found, module, name); }

int hipModuleLaunchKernel(void *which, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by, unsigned bz,
                          unsigned shared, void *stream, void **parameters, void **extra) {
    return cuLaunchKernel(which, x, y, z, bx, by, bz, shared, stream, parameters, extra);
}

int hipModuleLaunchCooperativeKernel(void *which, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by,
                                     unsigned bz, unsigned shared, void *stream, void **parameters) {
    return cuLaunchKernel(which, x, y, z, bx, by, bz, shared, stream, parameters, NULL);
}

static address of(const void *memory) { return (address)(size_t)memory; }

int hipMalloc(void **memory, size_t bytes) { return cuMemAlloc_v2((address *)memory, bytes); }
int hipFree(void *memory) { return cuMemFree_v2(of(memory)); }
int hipMallocAsync(void **memory, size_t bytes, void *stream) { (void)stream; return hipMalloc(memory, bytes); }
int hipFreeAsync(void *memory, void *stream) { (void)stream; return hipFree(memory); }
int hipMemcpyHtoD(void *to, const void *from, size_t bytes) { return cuMemcpyHtoD_v2(of(to), from, bytes); }
int hipMemcpyDtoH(void *to, const void *from, size_t bytes) { return cuMemcpyDtoH_v2(to, of(from), bytes); }

int hipMemcpyDtoHAsync(void *to, const void *from, size_t bytes, void *stream) {
    return cuMemcpyDtoHAsync_v2(to, of(from), bytes, stream);
}

int hipMemcpyDtoDAsync(void *to, const void *from, size_t bytes, void *stream) {
    return cuMemcpyDtoDAsync_v2(of(to), of(from), bytes, stream);
}

int hipMemsetAsync(void *to, int value, size_t bytes, void *stream) {
    return cuMemsetD8Async(of(to), (unsigned char)value, bytes, stream);
}

int hipMemsetD32Async(void *to, int value, size_t count, void *stream) {
    return cuMemsetD32Async(of(to), (unsigned)value, count, stream);
}

int hipMemGetAddressRange(void **base, size_t *size, void *memory) { *base = memory, *size = 4096; return 0; }
const char *hipGetErrorName(int code) { (void)code; return "hipErrorOther"; }

int hipEventCreateWithFlags(event **made, unsigned flags) { return cuEventCreate(made, flags); }
int hipEventDestroy(event *which) { return cuEventDestroy_v2(which); }
int hipEventRecord(event *which, void *stream) { return cuEventRecord(which, stream); }
int hipEventSynchronize(event *which) { return cuEventSynchronize(which); }
int hipEventElapsedTime(float *elapsed, event *first, event *last) { return cuEventElapsedTime(elapsed, first, last); }
int hipStreamBeginCapture(void *stream, int mode) { return cuStreamBeginCapture_v2(stream, mode); }
int hipStreamEndCapture(void *stream, graph **made) { return cuStreamEndCapture(stream, made); }
int hipGraphLaunch(graph *ready, void *stream) { return cuGraphLaunch(ready, stream); }
int hipGraphExecDestroy(graph *ready) { return cuGraphExecDestroy(ready); }
int hipGraphDestroy(graph *made) { return cuGraphDestroy(made); }

int hipGraphInstantiateWithFlags(graph **ready, graph *made, address flags) {
    return cuGraphInstantiateWithFlags(ready, made, flags);
}
