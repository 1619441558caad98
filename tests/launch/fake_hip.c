/* A HIP runtime for tests: the same idea as fake_cuda.c, smaller. Images are `fake <symbol> <sizes>`. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct module { char symbol[256]; int sizes[64]; int count; } module;

static char calls[1 << 16];
static char arch[64] = "gfx942:sramecc+:xnack-";
static char failing[64];
static int failing_code, live, cooperative_launches, cluster_launches;
static unsigned last_grid[3], last_threads;
static unsigned char last_bytes[1024];
static size_t allocation_bytes = 4096;
static _Thread_local int current;

static int note(const char *function) {
    strcat(calls, function);
    strcat(calls, "\n");
    if (failing_code && !strcmp(failing, function)) {
        int code = failing_code;
        failing_code = 0;
        return code;
    }
    return 0;
}

#define CALL(name) do { int code = note(#name); if (code) return code; } while (0)

void fake_hip_arch(const char *name) { snprintf(arch, sizeof arch, "%s", name); }
void fake_hip_fail(const char *function, int code) { snprintf(failing, sizeof failing, "%s", function); failing_code = code; }
void fake_hip_allocation(size_t bytes) { allocation_bytes = bytes; }
int fake_hip_cooperative(void) { return cooperative_launches; }
int fake_hip_live(void) { return live; }
const unsigned *fake_hip_grid(void) { return last_grid; }
unsigned fake_hip_threads(void) { return last_threads; }
const unsigned char *fake_hip_bytes(void) { return last_bytes; }

int hipInit(unsigned flags) { (void)flags; CALL(hipInit); return 0; }
int hipGetDeviceCount(int *count) { CALL(hipGetDeviceCount); *count = 2; return 0; }
int hipGetDevice(int *device) { CALL(hipGetDevice); *device = current; return 0; }
int hipSetDevice(int device) { CALL(hipSetDevice); current = device; return 0; }
int hipDeviceGetAttribute(int *value, int attribute, int device) { (void)attribute, (void)device; *value = 1; return 0; }
int hipGetDevicePropertiesR0600(void *properties, int device) {
    (void)device;
    CALL(hipGetDeviceProperties);
    memset(properties, 0, 1472);
    strcpy((char *)properties + 1160, arch);
    return 0;
}
int hipStreamSynchronize(void *stream) { (void)stream; CALL(hipStreamSynchronize); return 0; }
int hipModuleLoadData(void **found, const void *image) {
    CALL(hipModuleLoadData);
    if (strncmp(image, "fake ", 5))
        return 200;
    module *made = calloc(1, sizeof *made);
    char sizes[256] = "";
    sscanf(image, "fake %255s %255s", made->symbol, sizes);
    for (char *part = strtok(sizes, ","); part; part = strtok(NULL, ","))
        made->sizes[made->count++] = atoi(part);
    *found = made;
    return 0;
}
int hipModuleUnload(void *which) { CALL(hipModuleUnload); free(which); return 0; }
int hipModuleGetFunction(void **function, void *which, const char *symbol) {
    CALL(hipModuleGetFunction);
    *function = which;
    return strcmp(((module *)which)->symbol, symbol) ? 500 : 0;
}
static int record(const module *function, unsigned x, unsigned y, unsigned z, unsigned threads, void **parameters) {
    last_grid[0] = x, last_grid[1] = y, last_grid[2] = z, last_threads = threads;
    for (int i = 0, at = 0; i < function->count; at += function->sizes[i++])
        memcpy(last_bytes + at, parameters[i], (size_t)function->sizes[i]);
    return 0;
}
int hipModuleLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by, unsigned bz,
                          unsigned shared, void *stream, void **parameters, void **extra) {
    (void)by, (void)bz, (void)shared, (void)stream, (void)extra;
    CALL(hipModuleLaunchKernel);
    return record(function, x, y, z, bx, parameters);
}
int hipModuleLaunchCooperativeKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by,
                                     unsigned bz, unsigned shared, void *stream, void **parameters) {
    (void)by, (void)bz, (void)shared, (void)stream;
    CALL(hipModuleLaunchCooperativeKernel);
    cooperative_launches++;
    return record(function, x, y, z, bx, parameters);
}
typedef struct config { unsigned grid[3], block[3], shared; void *stream, *attributes; unsigned count; } config;
int hipDrvLaunchKernelEx(const config *with, void *function, void **parameters, void **extra) {
    (void)extra;
    CALL(hipDrvLaunchKernelEx);
    cluster_launches++;
    return record(function, with->grid[0], with->grid[1], with->grid[2], with->block[0], parameters);
}
int hipMallocAsync(void **memory, size_t bytes, void *stream) {
    (void)stream;
    CALL(hipMallocAsync);
    *memory = malloc(bytes);
    live++;
    return 0;
}
int hipFreeAsync(void *memory, void *stream) { (void)stream; CALL(hipFreeAsync); free(memory); live--; return 0; }
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
const char *hipGetErrorName(int code) { return code == 2 ? "hipErrorOutOfMemory" : "hipErrorOther"; }
int hipThreadExchangeStreamCaptureMode(int *mode) { (void)mode; return 0; }
