/* A CUDA driver for tests: records calls, keeps real host memory as device memory, fails and dawdles on demand.
 *
 * An image is the text `fake <symbol> <parameter sizes, comma-separated>`; a launch copies its parameters by them. A
 * stream's address says its device: (device + 1) << 16 | number. Compiled with OLD it lacks what older drivers lack. */
#include "fake_cuda.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_DEVICES = 4, MOST_MODULES = 4096, MOST_RULES = 16 };

typedef struct module { char symbol[256]; int sizes[128]; int count, loaded, device; } module;
typedef struct rule { char function[64]; int code, after; } rule;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static fake_launch launches[64];
static int launch_count, device_count = 1, archs[MOST_DEVICES] = {90, 90, 90, 90}, load_delay_ms, live, live_modules;
static int shared_limit = 227 * 1024;
static module modules[MOST_MODULES];
static int module_count;
static rule rules[MOST_RULES];
typedef struct called { const char *name; int count; } called;
static called calls[64];
static char contexts[MOST_DEVICES];
static unsigned long long generation[MOST_DEVICES] = {1, 2, 3, 4};
static _Thread_local int current = -1;

/* Notes the call; the code that a rule gives it. */
static int note(const char *function) {
    int code = 0;
    pthread_mutex_lock(&lock);
    called *entry = calls;
    while (entry->name && strcmp(entry->name, function))
        entry++;
    entry->name = function;
    entry->count++;
    for (int i = 0; i < MOST_RULES; i++)
        if (rules[i].code && !strcmp(rules[i].function, function) && !rules[i].after--) {
            code = rules[i].code;
            rules[i].code = 0;
        }
    pthread_mutex_unlock(&lock);
    return code;
}

#define CALL(name) do { int code = note(#name); if (code) return code; } while (0)

void fake_devices(int count, const int *arch) {
    device_count = count;
    for (int i = 0; i < count; i++)
        archs[i] = arch[i];
}

void fake_fail(const char *function, int code, int after) {
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MOST_RULES; i++)
        if (!rules[i].code) {
            snprintf(rules[i].function, sizeof rules[i].function, "%s", function);
            rules[i].code = code, rules[i].after = after;
            break;
        }
    pthread_mutex_unlock(&lock);
}

int fake_count(const char *function) {
    int count = 0;
    pthread_mutex_lock(&lock);
    for (called *entry = calls; entry->name; entry++)
        count += strcmp(entry->name, function) ? 0 : entry->count;
    pthread_mutex_unlock(&lock);
    return count;
}

void fake_forget(void) {
    pthread_mutex_lock(&lock);
    memset(calls, 0, sizeof calls);
    launch_count = 0;
    pthread_mutex_unlock(&lock);
}

void fake_slow_loads(int milliseconds) { load_delay_ms = milliseconds; }
void fake_shared_limit(int bytes) { shared_limit = bytes; }
int fake_live_allocations(void) { return live; }
int fake_live_modules(void) { return live_modules; }
int fake_launch_count(void) { return launch_count; }
const fake_launch *fake_last_launch(void) { return &launches[(launch_count - 1) % 64]; }
void fake_reset_context(int device) { generation[device] += 100; if (current == device) current = -1; }
int fake_current_device(void) { return current; }

int cuInit(unsigned flags) { (void)flags; CALL(cuInit); return 0; }
int cuDriverGetVersion(int *version) { *version = 13000; return 0; }
int cuDeviceGetCount(int *count) { CALL(cuDeviceGetCount); *count = device_count; return 0; }
int cuDeviceGet(int *device, int ordinal) { CALL(cuDeviceGet); *device = ordinal; return ordinal < device_count ? 0 : 101; }

int cuDeviceGetAttribute(int *value, int attribute, int device) {
    CALL(cuDeviceGetAttribute);
    switch (attribute) {
    case 75: *value = archs[device] / 10; return 0;
    case 76: *value = archs[device] % 10; return 0;
    case 97: *value = shared_limit; return 0;
    case 95: *value = 1; return 0;
    case 5: *value = 2147483647; return 0;
    case 6: case 7: *value = 65535; return 0;
    default: return 1;
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
    if (load_delay_ms)
        usleep((useconds_t)load_delay_ms * 1000);
    if (current < 0)
        return 201;
    if (strncmp(image, "fake ", 5))
        return 200; /* CUDA_ERROR_INVALID_IMAGE */
    pthread_mutex_lock(&lock);
    module *made = &modules[module_count++];
    char sizes[512] = "";
    memset(made, 0, sizeof *made);
    sscanf(image, "fake %255s %511s", made->symbol, sizes);
    for (char *part = strtok(sizes, ","); part; part = strtok(NULL, ","))
        made->sizes[made->count++] = atoi(part);
    made->loaded = 1;
    made->device = current;
    live_modules++;
    pthread_mutex_unlock(&lock);
    *found = made;
    return 0;
}

int cuModuleUnload(void *which) {
    CALL(cuModuleUnload);
    module *gone = which;
    pthread_mutex_lock(&lock);
    int known = gone->loaded && gone->device == current;
    gone->loaded = 0;
    live_modules--;
    pthread_mutex_unlock(&lock);
    return known ? 0 : 400;
}

int cuModuleGetFunction(void **function, void *which, const char *symbol) {
    CALL(cuModuleGetFunction);
    *function = which;
    return strcmp(((module *)which)->symbol, symbol) ? 500 : 0;
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

/* Where a parameter lies in a buffer of all of them: each as its size aligns it. */
static int place_of(const module *function, int parameter) {
    int at = 0;
    for (int i = 0;; at += function->sizes[i++]) {
        int alignment = function->sizes[i] > 8 ? 64 : function->sizes[i];
        at = (at + alignment - 1) / alignment * alignment;
        if (i == parameter)
            return at;
    }
}

/* The buffer of `extra`, whose keys are 1 for it and 2 for its size; NULL when it is not as the function needs it. */
static const char *find_buffer(const module *function, void **extra) {
    int last = function->count - 1;
    if (extra[0] != (void *)1 || extra[2] != (void *)2 || extra[4])
        return NULL;
    size_t wanted = last < 0 ? 0 : (size_t)place_of(function, last) + (size_t)function->sizes[last];
    return *(size_t *)extra[3] == wanted ? extra[1] : NULL;
}

static int record(const module *function, const unsigned *grid, unsigned threads, unsigned shared, void *stream,
                  void **parameters, void **extra, const fake_attribute *attributes, unsigned attribute_count) {
    const char *buffer = extra ? find_buffer(function, extra) : NULL;
    if (!function->loaded || function->device != current)
        return 400;
    if ((size_t)stream > 2 && (int)((size_t)stream >> 16) - 1 != current)
        return 400;
    if ((extra && !buffer) || (extra && parameters))
        return 1; /* CUDA_ERROR_INVALID_VALUE */
    pthread_mutex_lock(&lock);
    fake_launch *launch = &launches[launch_count++ % 64];
    memset(launch, 0, sizeof *launch);
    snprintf(launch->symbol, sizeof launch->symbol, "%s", function->symbol);
    memcpy(launch->grid, grid, sizeof launch->grid);
    launch->threads = threads, launch->shared_bytes = shared, launch->stream = stream;
    launch->parameter_count = function->count, launch->device = current;
    for (int i = 0, at = 0; i < function->count; at += function->sizes[i++]) {
        launch->offsets[i] = at;
        if (!buffer && function->sizes[i] == 128)
            launch->map_misaligned |= (size_t)parameters[i] % 64 != 0;
        memcpy(launch->bytes + at, buffer ? buffer + place_of(function, i) : parameters[i], (size_t)function->sizes[i]);
    }
    launch->attribute_count = (int)attribute_count;
    if (attribute_count)
        memcpy(launch->attributes, attributes, attribute_count * sizeof *attributes);
    pthread_mutex_unlock(&lock);
    return 0;
}

int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **parameters, void **extra) {
    (void)by, (void)bz;
    CALL(cuLaunchKernel);
    unsigned grid[3] = {x, y, z};
    return record(function, grid, bx, shared, stream, parameters, extra, NULL, 0);
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
    *name = code == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : code == 400 ? "CUDA_ERROR_INVALID_HANDLE" : "CUDA_ERROR_OTHER";
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
    if (parameter >= (size_t)function->count)
        return 1;
    *offset = (size_t)place_of(function, (int)parameter);
    *bytes = (size_t)function->sizes[parameter];
    return 0;
}

int cuLaunchKernelEx(const fake_config *config, void *function, void **parameters, void **extra) {
    CALL(cuLaunchKernelEx);
    return record(function, config->grid, config->block[0], config->shared_bytes, config->stream, parameters, extra,
                  config->attributes, config->attribute_count);
}

int cuMemAllocAsync(unsigned long long *memory, size_t bytes, void *stream) {
    (void)stream;
    CALL(cuMemAllocAsync);
    void *block = aligned_alloc(256, (bytes + 255) / 256 * 256);
    if (!block)
        return 2;
    memset(block, 0xee, bytes);
    __atomic_add_fetch(&live, 1, __ATOMIC_SEQ_CST);
    *memory = (unsigned long long)(size_t)block;
    return 0;
}

int cuMemFreeAsync(unsigned long long memory, void *stream) {
    (void)stream;
    free((void *)memory); /* also where it is to fail: leaks are looked for */
    CALL(cuMemFreeAsync);
    __atomic_sub_fetch(&live, 1, __ATOMIC_SEQ_CST);
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
