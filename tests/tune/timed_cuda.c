/* A CUDA driver for tests of tuning: memory is the host's, launches compute nothing and take as long on a clock of the
 * driver's own as their images say, events read that clock, and graphs run what was captured. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long address;
typedef struct event { double time; } event;
typedef struct graph { double milliseconds; } graph;
typedef struct function { double milliseconds; } function;

static char context;
static void *current;
static double now; /* milliseconds */
static graph *capturing;

static void spend(double milliseconds) {
    if (capturing)
        capturing->milliseconds += milliseconds;
    else
        now += milliseconds;
}

int cuInit(unsigned flags) { (void)flags; return 0; }
int cuDriverGetVersion(int *version) { *version = 13000; return 0; }
int cuDeviceGetCount(int *count) { *count = 1; return 0; }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return 0; }

int cuDeviceGetName(char *name, int bytes, int device) {
    const char *said = getenv("DEVICE_NAME");
    (void)device;
    snprintf(name, (size_t)bytes, "%s", said ? said : "Fake H1");
    return 0;
}

int cuDeviceGetAttribute(int *value, int attribute, int device) {
    (void)device;
    *value = attribute == 75 ? 9 : attribute == 76 ? 0 : attribute == 97 ? 227 << 10 : attribute == 38 ? 1 << 20 : 65535;
    return 0;
}

int cuDevicePrimaryCtxRetain(void **found, int device) { (void)device; *found = &context; return 0; }
int cuCtxGetCurrent(void **found) { *found = current; return 0; }
int cuCtxSetCurrent(void *given) { current = given; return 0; }
int cuCtxGetDevice(int *device) { *device = 0; return current ? 0 : 201; }
int cuCtxGetId(void *given, address *id) { (void)given; *id = 1; return 0; }
int cuCtxSynchronize(void) { return 0; }
int cuStreamCreate(void **stream, unsigned flags) { (void)flags; *stream = malloc(64); return 0; }
int cuStreamGetCtx(void *stream, void **found) { (void)stream; *found = &context; return 0; }
int cuStreamSynchronize(void *stream) { (void)stream; return 0; }

/* How long launches take is told by the bytes of an ELF file that stand before its sections' table: 1 to 1000
 * microseconds. */
int cuModuleLoadData(void **module, const void *image) {
    const unsigned char *bytes = image;
    unsigned long long sections;
    unsigned sum = 0;
    memcpy(&sections, bytes + 40, sizeof sections);
    for (unsigned long long i = 0; i < sections; i++)
        sum = sum * 31 + bytes[i];
    function *made = malloc(sizeof *made);
    made->milliseconds = 0.001 * (1 + sum % 1000);
    *module = made;
    return 0;
}

int cuModuleUnload(void *module) { free(module); return 0; }
int cuModuleGetFunction(void **found, void *module, const char *symbol) { (void)symbol; *found = module; return 0; }
int cuFuncSetAttribute(void *which, int attribute, int value) { (void)which, (void)attribute, (void)value; return 0; }
int cuFuncGetAttribute(int *value, int attribute, void *which) { (void)attribute, (void)which; *value = 0; return 0; }

int cuLaunchKernel(void *which, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                   void *stream, void **parameters, void **extra) {
    (void)x, (void)y, (void)z, (void)bx, (void)by, (void)bz, (void)shared, (void)stream, (void)parameters, (void)extra;
    spend(((function *)which)->milliseconds);
    return 0;
}

int cuMemAlloc_v2(address *memory, size_t bytes) {
    *memory = (address)(size_t)aligned_alloc(256, (bytes + 255) & ~(size_t)255);
    return 0;
}

int cuMemFree_v2(address memory) { free((void *)(size_t)memory); return 0; }
int cuMemcpyHtoD_v2(address to, const void *from, size_t bytes) { memcpy((void *)(size_t)to, from, bytes); return 0; }
int cuMemcpyDtoH_v2(void *to, address from, size_t bytes) { memcpy(to, (void *)(size_t)from, bytes); return 0; }

int cuMemcpyDtoHAsync_v2(void *to, address from, size_t bytes, void *stream) {
    (void)stream;
    return cuMemcpyDtoH_v2(to, from, bytes);
}

int cuMemcpyDtoDAsync_v2(address to, address from, size_t bytes, void *stream) {
    (void)stream;
    memcpy((void *)(size_t)to, (void *)(size_t)from, bytes);
    return 0;
}

int cuMemsetD8Async(address to, unsigned char value, size_t bytes, void *stream) {
    (void)stream;
    memset((void *)(size_t)to, value, bytes);
    return 0;
}

int cuMemsetD32Async(address to, unsigned value, size_t count, void *stream) {
    (void)stream, (void)value;
    memset((void *)(size_t)to, 0, 4 * count);
    spend(1);
    return 0;
}

int cuMemGetAddressRange_v2(address *base, size_t *size, address memory) { *base = memory, *size = 4096; return 0; }
int cuGetErrorName(int code, const char **name) { (void)code; *name = "CUDA_ERROR_OTHER"; return 0; }

int cuEventCreate(event **made, unsigned flags) { (void)flags; *made = calloc(1, sizeof **made); return 0; }
int cuEventDestroy_v2(event *which) { free(which); return 0; }
int cuEventRecord(event *which, void *stream) { (void)stream; which->time = now; return capturing ? 900 : 0; }
int cuEventSynchronize(event *which) { (void)which; return 0; }
int cuEventElapsedTime(float *elapsed, event *first, event *last) {
    *elapsed = (float)(last->time - first->time);
    return 0;
}

int cuStreamBeginCapture_v2(void *stream, int mode) {
    (void)stream;
    capturing = calloc(1, sizeof *capturing);
    return mode == 2 ? 0 : 1;
}

int cuStreamEndCapture(void *stream, graph **made) { (void)stream; *made = capturing; capturing = NULL; return 0; }
int cuGraphInstantiateWithFlags(graph **ready, graph *made, address flags) {
    (void)flags;
    *ready = malloc(sizeof **ready);
    **ready = *made;
    return 0;
}
int cuGraphLaunch(graph *ready, void *stream) { (void)stream; spend(ready->milliseconds); return 0; }
int cuGraphExecDestroy(graph *ready) { free(ready); return 0; }
int cuGraphDestroy(graph *made) { free(made); return 0; }
