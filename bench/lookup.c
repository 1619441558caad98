/* What the selection table costs a call: `lookup FOLDER` for a tuned release of bench/tune_kernels.
 *
 * Compiled with the runtime in the release's sources. Every round asks for the unit of the same calls of `matmul`, in an
 * order that nothing learns: once without the tuned axes, so that the table names the unit, and once with those of that
 * unit. Prints nanoseconds of a call for each round, with the table and without. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/state.h"

enum { ROUNDS = 60, CALLS = 4096, SLOTS = 10 };

typedef struct question {
    uint64_t slots[SLOTS + 1];
    int64_t axes[PRECAST_MAXIMUM_AXES]; /* of the unit that the table names */
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

static uint32_t ask(const question *question, uint32_t given) {
    precast_call call = {.kernel = kernel, .axes = question->axes, .axes_given = given, .slots = question->slots};
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
    const precast_unit_record *unit = &index->units[ask(question, 0)];
    precast_span axes = index->kernels[kernel].axes;
    for (uint32_t i = 0; i < axes.count; i++)
        question->axes[i] = index->values[index->axes[axes.first + i].values.first + unit->axes[i] - 1].payload;
}

static double measure(uint32_t given) {
    double start = now();
    for (int i = 0; i < CALLS; i++)
        ask(&questions[i], given);
    return (now() - start) / CALLS;
}

int main(int count, char **words) {
    if (!start_driver())
        return fprintf(stderr, "there is no CUDA device\n"), 1;
    if (count != 2 || precast_open(words[1], NULL, NULL, NULL, &release) != PRECAST_OK)
        return fprintf(stderr, "lookup FOLDER: %s\n", precast_error()), 1;
    const precast_index *index = precast_index_of(release);
    while (strcmp(precast_text(index, index->kernels[kernel].name), "matmul"))
        kernel++;
    uint32_t all = (UINT32_C(1) << index->kernels[kernel].axes.count) - 1;
    srand(1);
    for (int i = 0; i < CALLS; i++)
        make(&questions[i], index);
    for (int i = 0; i < ROUNDS; i++) {
        double first = measure(i % 2 ? all : 0), second = measure(i % 2 ? 0 : all);
        printf("%.2f %.2f\n", i % 2 ? second : first, i % 2 ? first : second);
    }
    return 0;
}
