/* What scenarios on the drivers for tests share. */
#ifndef GPU_H
#define GPU_H

#include <unistd.h>

#include "check.h"
#include "fake.h"
#include "runtime/release.h"

static _Alignas(64) float x[64], out[64];
static void *const stream = (void *)0x10007; /* number 7 of device 0 */
static const small_scale_axes scale64 = {.dtype = PRECAST_FP32, .BLOCK = 64};

static inline small_features_axes feature(int which) {
    small_features_axes axes = {.FEATURE = which};
    return axes;
}

#define FEATURE(name) feature(SMALL_FEATURES_FEATURE_##name)

/* A parameter of the calling thread's last launch. */
static inline uint64_t parameter(int number) {
    uint64_t value = 0;
    const fake_launch *launch = fake_last_launch();
    int end = launch->offsets[number + 1];
    int size = number + 1 < launch->parameter_count ? end - launch->offsets[number] : 8;
    memcpy(&value, launch->bytes + launch->offsets[number], (size_t)(size > 8 ? 8 : size));
    return value;
}

static inline void with_devices(int count, int first, int second) {
    int archs[] = {first, second};
    fake_devices(count, archs);
    open_release();
}

static inline precast_status scale(void) { return small_scale(k, stream, scale64, out, x, 1, 7); }

/* A launch on the device that the call names, as the Python extension asks for one. */
static inline precast_status scale_on(int backend, int device) {
    precast_release *release = (precast_release *)k;
    const precast_index *index = precast_index_of(release);
    const int64_t axes[] = {PRECAST_FP32, 64};
    const uint64_t slots[] = {(uint64_t)out, (uint64_t)x, 0, 7};
    precast_call call = {.axes = axes, .axes_given = 3, .slots = slots, .backend = backend, .device_given = 1,
                         .device = device};
    while (strcmp(precast_text(index, index->kernels[call.kernel].name), "scale"))
        call.kernel++;
    return precast_launch(release, &call);
}

static inline void on_a_thread(void *(*work)(void *)) {
    pthread_t thread;
    CHECK(!pthread_create(&thread, NULL, work, NULL));
    pthread_join(thread, NULL);
}

static inline int count_loaded(const char *target) {
    size_t count = small_query(k, NULL, 0);
    precast_unit *units = calloc(count, sizeof *units);
    int loaded = 0;
    CHECK(units && small_query(k, units, count) == count);
    for (size_t i = 0; i < count; i++)
        loaded += units[i].loaded && !strcmp(units[i].target, target);
    free(units);
    return loaded;
}

/* For launches whose buffers must not come back. */
static inline void read_nothing(void *context, const char *unit, const char *pass_name, const void *data, size_t each,
                                int64_t programs) {
    (void)context, (void)unit, (void)pass_name, (void)data, (void)each, (void)programs;
    CHECK(0);
}

/* An allocator that notes what it was asked for. */
typedef struct notes { size_t bytes, alignment; int gave, took; } notes;

static inline void *give(void *context, size_t bytes, size_t alignment, precast_stream on, int device) {
    notes *kept = context;
    CHECK(on == stream && device == 0);
    kept->bytes = bytes, kept->alignment = alignment, kept->gave++;
    return malloc(bytes);
}

static inline void take(void *context, void *memory, precast_stream on, int device) {
    CHECK(on == stream && device == 0);
    ((notes *)context)->took++;
    free(memory);
}

static inline void *refuse(void *context, size_t bytes, size_t alignment, precast_stream on, int device) {
    (void)context, (void)bytes, (void)alignment, (void)on, (void)device;
    return NULL;
}

/* Gives memory, and puts the driver's own in its place meanwhile. */
static inline void *give_and_go(void *context, size_t bytes, size_t alignment, precast_stream on, int device) {
    OK(small_set_allocator(k, NULL));
    return give(context, bytes, alignment, on, device);
}

/* What one allocator gave goes back to it, whichever is set meanwhile: the driver's own `free` has no part in it. */
static inline void check_allocator_that_changes_itself(const char *free) {
    notes kept = {0, 0, 0, 0};
    precast_allocator mine = {give_and_go, take, &kept};
    open_release();
    OK(small_set_allocator(k, &mine));
    OK(small_features(k, stream, FEATURE(SCRATCH), NULL, 3));
    CHECK(kept.gave == 1 && kept.took == 1 && fake_count(free) == 0);
}

/* Two allocators, each of which knows its own memory. */
static inline void *give_marked(void *context, size_t bytes, size_t alignment, precast_stream on, int device) {
    void **block = malloc(bytes + 16);
    (void)alignment, (void)on, (void)device;
    CHECK(block);
    block[0] = context;
    return block + 2;
}

static inline void take_marked(void *context, void *memory, precast_stream on, int device) {
    void **block = (void **)memory - 2;
    (void)on, (void)device;
    CHECK(block[0] == context);
    free(block);
}

static inline void read_marked(void *context, const char *unit, const char *pass_name, const void *data, size_t each,
                               int64_t programs) {
    (void)unit, (void)data;
    CHECK(context == k && !strcmp(pass_name, "counters") && each == 8 && programs == 6);
}

/* The first thread changes the callbacks while the others launch. */
static inline void *change_callbacks(void *argument) {
    static char first, second;
    const precast_allocator all[] = {{give_marked, take_marked, &first}, {give_marked, take_marked, &second}};
    for (int i = 0; i < 200; i++) {
        if (!argument) {
            OK(small_set_allocator(k, i % 3 ? &all[i % 3 - 1] : NULL));
            OK(small_set_buffer_reader(k, i % 2 ? read_marked : NULL, i % 2 ? k : NULL));
        } else if (i < 20) {
            OK(small_features(k, stream, FEATURE(SCRATCH), NULL, 3));
            OK(small_features(k, stream, FEATURE(BUFFER), NULL, 3));
        }
    }
    return NULL;
}

static inline void *launch_both_hints(void *argument) {
    intptr_t number = (intptr_t)argument;
    for (int i = 0; i < 50; i++) {
        OK(small_scale(k, stream, scale64, out, x, 1, number % 2 ? 1000 : 1024));
        if (i % 10 == 0)
            CHECK(small_scale(k, stream, scale64, (char *)out + 4, x, 1, 7) == PRECAST_BAD_ARGUMENT);
    }
    OK(small_features(k, stream, FEATURE(SCRATCH), NULL, 3));
    return NULL;
}

/* Launches of all threads, then an unloading by one, and so on. */
static pthread_barrier_t round_of_all;

static inline void *launch_and_unload(void *argument) {
    (void)argument;
    for (int i = 0; i < 10; i++) {
        OK(scale());
        OK(small_features(k, stream, FEATURE(SCRATCH), NULL, 3));
        if (pthread_barrier_wait(&round_of_all) == PTHREAD_BARRIER_SERIAL_THREAD) {
            OK(small_unload(k));
            CHECK(fake_live_modules() == 0 && fake_live_allocations() == 0);
        }
        pthread_barrier_wait(&round_of_all);
    }
    return NULL;
}

static inline void unload_between_launches(void) {
    open_release();
    CHECK(!pthread_barrier_init(&round_of_all, NULL, 64));
    on_threads(launch_and_unload);
    pthread_barrier_destroy(&round_of_all);
}

/* What a driver's function does when it fails, one after another. */
typedef struct failure { const char *function; int code; const char *expected; } failure;

static inline void fail_at(const failure *table, void (*prepare)(void), precast_status (*call)(void),
                           precast_status status) {
    for (; table->function; table++) {
        int before = fake_count(table->function);
        if (prepare)
            prepare();
        OK(small_open(folder, &k));
        fake_fail(table->function, table->code, 0);
        FAILS(call(), status, table->expected);
        CHECK(fake_count(table->function) > before);
        OK(call());
        small_close(k);
        CHECK(fake_live_modules() == 0);
    }
    k = NULL;
}

#endif
