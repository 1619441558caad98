/* What bench/launch.py measures from C: the same images through the driver alone, and through the launchers.
 *
 * Compiled against the header of the bench release. As a library it is called in batches; as a program,
 * `launch_raw start|resident bare|ours FOLDER IMAGES`, it stands for a whole process. IMAGES is a text file of lines
 * `pack offset symbol`. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"

enum { N = 1 << 16, MOST_SLOTS = 64 };

typedef int (*launch_function)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
                               void **, void **);

static struct {
    int (*cuInit)(unsigned);
    int (*cuDevicePrimaryCtxRetain)(void **, int);
    int (*cuCtxSetCurrent)(void *);
    int (*cuCtxSynchronize)(void);
    int (*cuModuleLoadData)(void **, const void *);
    int (*cuModuleGetFunction)(void **, void *, const char *);
    int (*cuMemAlloc)(uint64_t *, size_t);
    int (*cuMemcpyDtoH)(void *, uint64_t, size_t);
    launch_function cuLaunchKernel;
} cuda;

static bench *release;
static uint64_t memory;

static int open_driver(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    const struct { const char *name; void *place; } symbols[] = {
        {"cuInit", &cuda.cuInit}, {"cuDevicePrimaryCtxRetain", &cuda.cuDevicePrimaryCtxRetain},
        {"cuCtxSetCurrent", &cuda.cuCtxSetCurrent}, {"cuCtxSynchronize", &cuda.cuCtxSynchronize},
        {"cuModuleLoadData", &cuda.cuModuleLoadData}, {"cuModuleGetFunction", &cuda.cuModuleGetFunction},
        {"cuMemAlloc_v2", &cuda.cuMemAlloc}, {"cuMemcpyDtoH_v2", &cuda.cuMemcpyDtoH},
        {"cuLaunchKernel", &cuda.cuLaunchKernel},
    };
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++)
        if (!library || !(*(void **)symbols[i].place = dlsym(library, symbols[i].name)))
            return 1;
    void *context;
    return cuda.cuInit(0) || cuda.cuDevicePrimaryCtxRetain(&context, 0) || cuda.cuCtxSetCurrent(context) ||
           cuda.cuMemAlloc(&memory, N * sizeof(float));
}

static void *load_image(const char *pack, long offset, const char *symbol) {
    FILE *file = fopen(pack, "rb");
    void *module, *function = NULL;
    if (!file)
        return NULL;
    fseek(file, 0, SEEK_END);
    long size = ftell(file) - offset;
    char *data = malloc((size_t)size);
    fseek(file, offset, SEEK_SET);
    if (fread(data, 1, (size_t)size, file) == (size_t)size && !cuda.cuModuleLoadData(&module, data))
        cuda.cuModuleGetFunction(&function, module, symbol);
    fclose(file);
    free(data);
    return function;
}

static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec * 1e9 + (double)at.tv_nsec;
}

/* Batches: one function each for the driver and for the launchers, with nothing but launches inside the clock. */

static struct { void *function; int arguments; } raw;

int raw_prepare(const char *folder, const char *pack, long offset, const char *symbol, int arguments) {
    if (!memory && (open_driver() || bench_open(folder, &release)))
        return 1;
    raw.function = load_image(pack, offset, symbol);
    raw.arguments = arguments;
    return raw.function == NULL;
}

uint64_t device_memory(void) {
    return memory;
}

int synchronize(void) {
    return cuda.cuCtxSynchronize();
}

/* What one writes without a launcher: arguments that lie somewhere, and the array of their places made for the call. */
static __attribute__((noinline)) int launch_raw(const uint64_t *slots, int total) {
    void *parameters[MOST_SLOTS];
    for (int i = 0; i < total; i++)
        parameters[i] = (void *)&slots[i];
    return cuda.cuLaunchKernel(raw.function, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL);
}

double raw_batch(int pointers, int numbers, int count) {
    uint64_t slots[MOST_SLOTS] = {0};
    int total = pointers + numbers + 2;
    for (int i = 0; i < total; i++)
        slots[i] = i < pointers ? memory : i < pointers + numbers ? 7 : 0;
    double start = now();
    for (int i = 0; i < count; i++)
        if (launch_raw(slots, total))
            return -1;
    double elapsed = now() - start;
    synchronize();
    return elapsed / count;
}

#define P (void *)memory
#define P4 P, P, P, P
#define I8 7, 7, 7, 7, 7, 7, 7, 7

static precast_status launch_ours(int arguments) {
    switch (arguments) {
    case 0: return bench_args0(release, NULL, (bench_args0_axes){0});
    case 6: return bench_args6(release, NULL, (bench_args6_axes){0}, P, P, P, 7, 7, 7);
    case 19: return bench_args19(release, NULL, (bench_args19_axes){0}, P4, P4, I8, 7, 7, 7);
    default: return bench_args58(release, NULL, (bench_args58_axes){0}, P4, P4, P4, P4, P4, I8, I8, I8, I8, 7, 7, 7, 7, 7, 7);
    }
}

double ours_batch(int arguments, int count) {
    if (launch_ours(arguments))
        return -1;
    double start = now();
    for (int i = 0; i < count; i++)
        if (launch_ours(arguments))
            return -1;
    double elapsed = now() - start;
    synchronize();
    return elapsed / count;
}

/* What asking the driver for the current context costs, which every launch does once. */
double query_batch(int count) {
    int (*query)(void *, unsigned long long *) = NULL;
    unsigned long long identity;
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library || !(*(void **)&query = dlsym(library, "cuCtxGetId")))
        return -1;
    double start = now();
    for (int i = 0; i < count; i++)
        query(NULL, &identity);
    return (now() - start) / count;
}

/* On the CPU: an empty grid of one through the launcher, and the same unit through a pointer. */

typedef int32_t (*unit)(const uint64_t *, const int32_t *, int64_t, int64_t, void *);

double cpu_ours_batch(const char *folder, int count) {
    if (!release && bench_open(folder, &release))
        return -1;
    if (bench_args6(release, PRECAST_CPU, (bench_args6_axes){0}, NULL, NULL, NULL, 7, 7, 7))
        return -1;
    double start = now();
    for (int i = 0; i < count; i++)
        bench_args6(release, PRECAST_CPU, (bench_args6_axes){0}, NULL, NULL, NULL, 7, 7, 7);
    return (now() - start) / count;
}

double cpu_pointer_batch(const char *library, const char *symbol, int count) {
    static _Alignas(64) char scratch[1 << 16];
    uint64_t slots[6] = {0, 0, 0, 7, 7, 7};
    int32_t grid[3] = {1, 1, 1};
    void *opened = dlopen(library, RTLD_NOW);
    volatile unit call = opened ? (unit)dlsym(opened, symbol) : NULL;
    if (!call)
        return -1;
    double start = now();
    for (int i = 0; i < count; i++)
        call(slots, grid, 0, 1, scratch);
    return (now() - start) / count;
}

const char *ours_error(void) {
    return bench_error();
}

/* Whole processes. */

static int fill_bare(FILE *images) {
    char pack[4096], symbol[256];
    long offset;
    float value = 2.5f, last = 0;
    int32_t n = N;
    uint64_t none = 0;
    if (fscanf(images, "%4095s %ld %255s", pack, &offset, symbol) != 3 || open_driver())
        return 1;
    void *function = load_image(pack, offset, symbol), *parameters[] = {&memory, &value, &n, &none, &none};
    if (!function || cuda.cuLaunchKernel(function, N / 256, 1, 1, 128, 1, 1, 0, NULL, parameters, NULL) ||
        cuda.cuMemcpyDtoH(&last, memory + (N - 1) * sizeof last, sizeof last))
        return 1;
    return last != value;
}

static int fill_ours(const char *folder) {
    float last = 0;
    if (open_driver() || bench_open(folder, &release) ||
        bench_fill(release, NULL, (bench_fill_axes){.BLOCK = PRECAST_ANY}, (void *)memory, 2.5f, N) ||
        cuda.cuMemcpyDtoH(&last, memory + (N - 1) * sizeof last, sizeof last))
        return 1;
    return last != 2.5f;
}

static int wide_bare(FILE *images) {
    char pack[4096], symbol[256];
    long offset;
    int32_t n = 100;
    uint64_t none = 0;
    void *parameters[] = {&memory, &n, &none, &none};
    if (open_driver())
        return 1;
    while (fscanf(images, "%4095s %ld %255s", pack, &offset, symbol) == 3) {
        void *function = load_image(pack, offset, symbol);
        if (!function || cuda.cuLaunchKernel(function, 100, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL))
            return 1;
    }
    return cuda.cuCtxSynchronize();
}

static int wide_ours(const char *folder) {
    if (open_driver() || bench_open(folder, &release))
        return 1;
    for (int step = 1; step <= 3; step++)
        if (bench_wide(release, NULL, (bench_wide_axes){.STEP = step}, (void *)memory, 100))
            return 1;
    return cuda.cuCtxSynchronize();
}

static void print_resident(void) {
    char line[256];
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        if (!strncmp(line, "VmRSS:", 6))
            fputs(line + 6, stdout);
    if (status)
        fclose(status);
}

int main(int argc, char **argv) {
    if (argc != 5)
        return 2;
    int ours = !strcmp(argv[2], "ours"), resident = !strcmp(argv[1], "resident");
    FILE *images = fopen(argv[4], "r");
    if (!images)
        return 2;
    int failed = resident ? (ours ? wide_ours(argv[3]) : wide_bare(images)) : ours ? fill_ours(argv[3]) : fill_bare(images);
    fclose(images);
    if (failed)
        return fprintf(stderr, "failed: %s\n", bench_error()), 1;
    if (resident)
        print_resident();
    return 0;
}
