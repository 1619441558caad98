/* What the selection table costs a call: `lookup FOLDER` for a tuned release of bench/tune_kernels.
 *
 * Compiled with the runtime in the release's sources, which it takes apart: `select.c` stands in it. Every round chooses
 * the units of the same calls of `matmul`, in an order that nothing learns: once by the table, and once by the axes that
 * the table names. Prints nanoseconds of a call for each round, by the table and by axes. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/select.c"

enum { ROUNDS = 60, CALLS = 4096, SLOTS = 10 };

typedef struct question {
    uint64_t slots[SLOTS + 1];
    precast_request named; /* the axes of the unit that the table names */
} question;

static precast_release *release;
static uint32_t kernel;
static question questions[CALLS];

static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec * 1e9 + (double)at.tv_nsec;
}

static int start_driver(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *context;
    int (*initialize)(unsigned) = NULL, (*retain)(void **, int) = NULL, (*set)(void *) = NULL;
    return library && (*(void **)&initialize = dlsym(library, "cuInit")) &&
           (*(void **)&retain = dlsym(library, "cuDevicePrimaryCtxRetain")) &&
           (*(void **)&set = dlsym(library, "cuCtxSetCurrent")) && !initialize(0) && !retain(&context, 0) && !set(context);
}

static uint32_t ask(const question *question) {
    precast_call call = {.kernel = kernel, .slots = question->slots};
    precast_chosen chosen;
    if (precast_choose(release, &call, &chosen) != PRECAST_OK) {
        fprintf(stderr, "%s\n", precast_error());
        exit(1);
    }
    return chosen.unit;
}

/* Sizes that were measured, others between them, and beyond. */
static void make(question *question, const precast_index *index) {
    static const uint64_t ms[] = {1, 16, 40, 64, 128, 256, 700, 1024, 1536, 2048, 3000, 4096, 6000, 8192, 20000};
    static const uint64_t sides[] = {1024, 2048, 4096, 6144, 8192, 11008, 14336};
    uint64_t m = ms[rand() % 15], n = sides[rand() % 7], k = sides[rand() % 7];
    uint64_t slots[SLOTS] = {1 << 20, 1 << 21, 1 << 22, 0, m, n, k, n, k, n};
    memcpy(question->slots, slots, sizeof slots);
    const precast_unit_record *unit = &index->units[ask(question)];
    for (uint32_t i = 0; i < index->kernels[kernel].axes.count; i++)
        question->named.key[i] = unit->axes[i], question->named.mask[i] = 255;
}

static double measure(const precast_index *index, const precast_device *device, int by_table) {
    static const precast_request nothing;
    uintptr_t all = 0;
    double start = now();
    for (int i = 0; i < CALLS; i++) {
        precast_call call = {.kernel = kernel, .slots = questions[i].slots};
        choice found = by_table ? choose_by_table(index, device, &call, device->tables[kernel], &nothing)
                                : choose(index, device, &call, &questions[i].named);
        all += (uintptr_t)found.best;
    }
    start = (now() - start) / CALLS;
    return all ? start : -1;
}

int main(int count, char **words) {
    if (!start_driver())
        return fprintf(stderr, "there is no CUDA device\n"), 1;
    if (count != 2 || precast_open(words[1], NULL, NULL, NULL, &release) != PRECAST_OK)
        return fprintf(stderr, "lookup FOLDER: %s\n", precast_error()), 1;
    const precast_index *index = precast_index_of(release);
    while (strcmp(precast_text(index, index->kernels[kernel].name), "matmul"))
        kernel++;
    srand(1);
    for (int i = 0; i < CALLS; i++)
        make(&questions[i], index);
    const precast_device *device = atomic_load(&release->devices);
    for (int i = 0; i < ROUNDS; i++) {
        double first = measure(index, device, i % 2), second = measure(index, device, !(i % 2));
        printf("%.2f %.2f\n", i % 2 ? first : second, i % 2 ? second : first);
    }
    return 0;
}
