/* Launches on the CPU, and everything that needs no device. */
#include <dirent.h>
#include <limits.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

/* HOST: this machine as a target, given by the test that compiles this. */
enum { N = 1000 };
static _Alignas(64) float x[N], out[N];

static void fill(void) {
    for (int i = 0; i < N; i++)
        x[i] = (float)i, out[i] = -1;
}

static small_scale_axes axes(precast_type dtype, int64_t block) {
    small_scale_axes made = {.dtype = dtype, .BLOCK = block};
    return made;
}

static void check_scaled(float alpha, int n) {
    for (int i = 0; i < N; i++)
        CHECK(out[i] == (i < n ? alpha * (float)i : -1));
}

static void right_numbers(void) {
    open_release();
    int lengths[] = {N, 999, 64, 1, 0};
    for (int i = 0; i < 5; i++) {
        fill();
        OK(small_scale(k, PRECAST_CPU, axes(PRECAST_FP32, i % 2 ? 64 : 256), out, x, 2.5f, lengths[i]));
        check_scaled(2.5f, lengths[i]);
    }
    double wide[4] __attribute__((aligned(16))) = {1, 2, 3, 4};
    OK(small_scale(k, PRECAST_CPU, axes(PRECAST_FP64, 64), wide, wide, 3, 4));
    CHECK(wide[3] == 12);
}

static void beside_the_library(void) {
    OK(small_open(NULL, &k));
    fill();
    OK(small_scale(k, PRECAST_CPU, axes(PRECAST_FP32, 64), out, x, 2, N));
    check_scaled(2, N);
}

static void explicit_grid(void) {
    open_release();
    fill();
    OK(small_scale_grid(k, PRECAST_CPU, axes(PRECAST_FP32, 64), (precast_grid){2, 1, 1}, out, x, 2, N));
    check_scaled(2, 128);
    fill();
    OK(small_scale_grid(k, PRECAST_CPU, axes(PRECAST_FP32, 64), (precast_grid){2, 0, 1}, out, x, 2, N));
    check_scaled(2, 0);
    FAILS(small_scale_grid(k, PRECAST_CPU, axes(PRECAST_FP32, 64), (precast_grid){1, -1, 1}, out, x, 2, N),
          PRECAST_BAD_GRID,
          "the grid of scale:dtype=fp32,BLOCK=64@cpu:x86-64-v3 is negative along y: -1");
    FAILS(small_scale_grid(k, PRECAST_CPU, axes(PRECAST_FP32, 64), (precast_grid){1, INT64_C(1) << 31, 1}, out, x, 2, N),
          PRECAST_BAD_GRID,
          "the grid of scale:dtype=fp32,BLOCK=64@cpu:x86-64-v3 is 2147483648 along y, more than 2147483647");
    FAILS(small_scale_grid(k, PRECAST_CPU, axes(PRECAST_FP32, 64), (precast_grid){INT32_MAX, INT32_MAX, 4}, out, x, 2, N),
          PRECAST_BAD_GRID, "the grid of scale:dtype=fp32,BLOCK=64@cpu:x86-64-v3 has too many programs");
    FAILS(small_scale(k, PRECAST_CPU, axes(PRECAST_FP32, 64), out, x, 2, -1000), PRECAST_BAD_GRID,
          "the grid of scale:dtype=fp32,BLOCK=64@cpu:x86-64-v3 is negative along x: -15");
}

static void messages(void) {
    open_release();
    FAILS(small_scale(k, PRECAST_CPU, axes(PRECAST_FP16, 64), out, x, 2, N), PRECAST_NO_UNIT,
          "`scale` has no variant with dtype=fp16; there are fp32, fp64");
    FAILS(small_scale(k, PRECAST_CPU, axes(PRECAST_FP32, 128), out, x, 2, N), PRECAST_NO_UNIT,
          "`scale` has no variant with BLOCK=128; there are 64, 256");
    FAILS(small_scale(k, PRECAST_CPU, axes(0, PRECAST_ANY), out, x, 2, N), PRECAST_NO_UNIT,
          "several units of `scale` fit on " HOST "; say which: dtype is one of fp32, fp64; BLOCK is one of 64, 256");
    FAILS(small_scale(k, PRECAST_CPU, axes(PRECAST_FP32, 0), out, x, 2, N), PRECAST_NO_UNIT,
          "`scale` has no variant with BLOCK=0; there are 64, 256");
    small_nothing_axes both = {.MODE = SMALL_NOTHING_MODE_SLOW, .SIZE = 1, .FLAG = true};
    FAILS(small_nothing(k, PRECAST_CPU, both, 1), PRECAST_NO_UNIT,
          "no unit of `nothing` with MODE=slow, SIZE=1, FLAG=true on " HOST "; nearest: "
          "nothing:MODE=slow,SIZE=1,FLAG=false@cpu:x86-64-v2, nothing:MODE=slow,SIZE=2,FLAG=true@cpu:x86-64-v2, "
          "nothing:MODE=fast,SIZE=1,FLAG=false@cpu:x86-64-v2");
    FAILS(small_features(k, PRECAST_CPU, (small_features_axes){.FEATURE = SMALL_FEATURES_FEATURE_PLAIN}, NULL, 1),
          PRECAST_NO_UNIT, "no unit of `features` runs on " HOST "; it is built for cuda:90, hip:gfx942");
}

static void broken_promise(void) {
    char expected[200];
    open_release();
    snprintf(expected, sizeof expected, "argument `x` of `scale` promises align = 16, and its address is %p",
             (void *)(x + 1));
    FAILS(small_scale(k, PRECAST_CPU, axes(PRECAST_FP32, 64), out, x + 1, 2, N), PRECAST_BAD_ARGUMENT, expected);
}

static void no_hint_holds(void) {
    int64_t slots[32];
    open_release();
    small_record_axes which = {.WIDTH = PRECAST_I32, .REAL = PRECAST_FP16};
    FAILS(small_record(k, PRECAST_CPU, which, slots, true, 2, 3, 4, 5, true, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, NULL,
                       18, 19, 20, NULL, 22),
          PRECAST_NO_UNIT,
          "no variant of `record` takes these arguments; nearest: "
          "record:WIDTH=i32,REAL=fp16,one==1@cpu:x86-64-v2, which asks for one==1 (it is 22)");
}

static void every_scalar(void) {
    int64_t slots[32];
    int place = 7;
    open_release();
    small_record_axes which = {.WIDTH = PRECAST_I32, .REAL = PRECAST_FP16};
    OK(small_record(k, PRECAST_CPU, which, slots, true, -2, -3, -4, -5, true, 200, 60000, 4000000000u, UINT64_MAX,
                    0x3c00, 0x3f80, 1.5f, -2.5, 0x3c, -16, &place, 0.5, -19, 1.0 / 3, NULL, 1));
    int64_t expected[] = {1, -2, -3, -4, -5, 1, 200, 60000, 4000000000, -1, 0x3c00, 0x3f80, 0x3fc00000,
                          (int64_t)0xc004000000000000, 0x3c, -16, (int64_t)(intptr_t)&place, 0x3fe0000000000000, -19,
                          0x3555};
    CHECK(!memcmp(slots, expected, sizeof expected));
    which.WIDTH = PRECAST_I64, which.REAL = PRECAST_FP64;
    OK(small_record(k, PRECAST_CPU, which, slots, true, -2, -3, -4, -5, true, 200, 60000, 4000000000u, UINT64_MAX,
                    0x3c00, 0x3f80, 1.5f, -2.5, 0x3c, -16, &place, 0.5, INT64_C(1) << 40, 1.0 / 3, NULL, 1));
    CHECK(slots[18] == INT64_C(1) << 40 && slots[19] == 0x3fd5555555555555);
    which.WIDTH = PRECAST_I32;
    FAILS(small_record(k, PRECAST_CPU, which, slots, true, -2, -3, -4, -5, true, 200, 60000, 4000000000u, UINT64_MAX,
                       0x3c00, 0x3f80, 1.5f, -2.5, 0x3c, -16, &place, 0.5, INT64_C(1) << 40, 1.0 / 3, NULL, 1),
          PRECAST_BAD_ARGUMENT, "argument `count` is 1099511627776, which does not fit in i32");
}

static void selection_table(void) {
    open_release();
    small_nothing_axes some = {.SIZE = PRECAST_ANY, .FLAG = PRECAST_ANY};
    OK(small_nothing(k, PRECAST_CPU, some, 1));
    some.FLAG = true;
    OK(small_nothing(k, PRECAST_CPU, some, 51));
    OK(small_nothing(k, PRECAST_CPU, some, 77)); /* no rule holds: the first that fits */
    some.SIZE = 1; /* contradicts the first rule; no unit is both */
    CHECK(small_nothing(k, PRECAST_CPU, some, 51) == PRECAST_NO_UNIT);
}

static int32_t counts[20000];

static void scratch_and_threads(void) {
    open_release();
    int threads[] = {1, 2, 7, 64, 0};
    for (int i = 0; i < 5; i++) {
        OK(small_set_threads(k, threads[i]));
        OK(small_count(k, PRECAST_CPU, (small_count_axes){0}, counts, 3000));
    }
    for (int i = 0; i < 3000; i++)
        CHECK(counts[i] == 5);
    OK(small_set_threads(k, 1024));
    const struct { int count; const char *expected; } wrong[] = {
        {-1, "a CPU launch cannot use -1 threads: 1 to 1024, or 0 for as many as the process may run on"},
        {1025, "a CPU launch cannot use 1025 threads: 1 to 1024, or 0 for as many as the process may run on"},
        {INT_MAX, "a CPU launch cannot use 2147483647 threads: 1 to 1024, or 0 for as many as the process may run on"},
    };
    for (int i = 0; i < 3; i++)
        FAILS(small_set_threads(k, wrong[i].count), PRECAST_BAD_ARGUMENT, wrong[i].expected);
}

static int count_threads(void) {
    DIR *tasks = opendir("/proc/self/task");
    int count = 0;
    CHECK(tasks);
    for (struct dirent *entry; (entry = readdir(tasks));)
        count += entry->d_name[0] != '.';
    closedir(tasks);
    return count;
}

/* What the process may run on is counted by the first launch that wants to know, and again when it is asked for. */
static void threads_by_affinity(void) {
    cpu_set_t before, one;
    open_release();
    CHECK(!sched_getaffinity(0, sizeof before, &before));
    CPU_ZERO(&one);
    for (int i = 0; !CPU_COUNT(&one); i++)
        if (CPU_ISSET(i, &before))
            CPU_SET(i, &one);
    CHECK(!sched_setaffinity(0, sizeof one, &one));
    OK(small_count(k, PRECAST_CPU, (small_count_axes){0}, counts, 3000));
    CHECK(count_threads() == 1 && !sched_setaffinity(0, sizeof before, &before));
    OK(small_count(k, PRECAST_CPU, (small_count_axes){0}, counts, 3000));
    CHECK(count_threads() == 1);
    OK(small_set_threads(k, 0));
    OK(small_count(k, PRECAST_CPU, (small_count_axes){0}, counts, 3000));
    CHECK(count_threads() == CPU_COUNT(&before));
}

static void *launch_many(void *argument) {
    int32_t own[40] = {0};
    (void)argument;
    for (int i = 0; i < 10; i++)
        OK(small_count(k, PRECAST_CPU, (small_count_axes){0}, own, 40));
    for (int i = 0; i < 40; i++)
        CHECK(own[i] == 10);
    return NULL;
}

static void concurrent_launches(void) {
    open_release();
    OK(small_set_threads(k, 4));
    on_threads(launch_many);
}

static void failed_assertion(void) {
    open_release();
    FAILS(small_fail(k, PRECAST_CPU, (small_fail_axes){0}, 77, 100), PRECAST_KERNEL_FAILED,
          "a device assertion failed in fail@cpu:x86-64-v2");
    OK(small_fail(k, PRECAST_CPU, (small_fail_axes){0}, 101, 100));
}

static int64_t tallied, tally_calls;

static void read_tally(void *context, const char *unit, const char *pass_name, const void *data, size_t each,
                       int64_t programs) {
    CHECK(context == &tallied && !strcmp(unit, "tally@cpu:x86-64-v2") && !strcmp(pass_name, "tally") && each == 8);
    for (int64_t i = 0; i < programs; i++)
        tallied += ((const int64_t *)data)[i];
    tally_calls++;
}

static void pass_buffer(void) {
    int32_t y = 0;
    open_release();
    OK(small_tally(k, PRECAST_CPU, (small_tally_axes){0}, &y, 10));
    OK(small_set_buffer_reader(k, read_tally, &tallied));
    OK(small_tally(k, PRECAST_CPU, (small_tally_axes){0}, &y, 10));
    CHECK(tally_calls == 1 && tallied == 99 * 100 / 2);
}

static void questions(void) {
    open_release();
    size_t count = small_query(k, NULL, 0);
    precast_unit *units = calloc(count, sizeof *units);
    CHECK(small_query(k, units, count) == count);
    OK(small_preload(k, PRECAST_CPU, NULL));
    small_query(k, units, count);
    int loaded = 0, cpu = 0;
    for (size_t i = 0; i < count; i++) {
        CHECK(strstr(units[i].unit, units[i].kernel) == units[i].unit && strstr(units[i].unit, units[i].target));
        cpu += !strncmp(units[i].target, "cpu:", 4);
        CHECK(!units[i].loaded || (!strncmp(units[i].target, "cpu:", 4) && units[i].fits));
        loaded += units[i].loaded;
        /* Where v3 runs, nothing chooses v2. */
        CHECK(units[i].loaded || strcmp(units[i].kernel, "scale") || strcmp(units[i].target, HOST));
    }
    CHECK(cpu == 98 && loaded == 98 - 8);
    free(units);
    OK(small_selfcheck(k));
    OK(small_unload(k));
    FAILS(small_preload(k, PRECAST_CPU, "scaly"), PRECAST_NO_UNIT, "the release has no kernel `scaly`");
    fill();
    OK(small_scale(k, PRECAST_CPU, axes(PRECAST_FP32, 64), out, x, 2, N));
    check_scaled(2, N);
}

static void forked_child(void) {
    open_release();
    OK(small_set_threads(k, 4));
    OK(small_count(k, PRECAST_CPU, (small_count_axes){0}, counts, 500));
    pid_t child = fork();
    if (!child) {
        OK(small_count(k, PRECAST_CPU, (small_count_axes){0}, counts, 500));
        small_close(k);
        _exit(counts[499] == 2 ? 0 : 1);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    OK(small_count(k, PRECAST_CPU, (small_count_axes){0}, counts, 500));
}

static void opened_many_times(void) {
    for (int i = 0; i < 20; i++) {
        small *own;
        OK(small_open(folder, &own));
        OK(small_set_threads(own, 3));
        OK(small_count(own, PRECAST_CPU, (small_count_axes){0}, counts, 100));
        small_close(own);
    }
    small_close(NULL);
    FAILS(small_open("/nowhere", &k), PRECAST_NO_RELEASE, "cannot open /nowhere/index.bin: No such file or directory");
    CHECK(!k);
}

#define NOT_OPEN(call) FAILS(call, PRECAST_NO_RELEASE, "the release is not open")

static void no_release(void) {
    precast_unit unit;
    NOT_OPEN(small_nothing(NULL, PRECAST_CPU, (small_nothing_axes){0}, 1));
    NOT_OPEN(small_preload(NULL, PRECAST_CPU, NULL));
    NOT_OPEN(small_unload(NULL));
    NOT_OPEN(small_selfcheck(NULL));
    NOT_OPEN(small_set_threads(NULL, 1));
    NOT_OPEN(small_set_allocator(NULL, NULL));
    NOT_OPEN(small_set_buffer_reader(NULL, NULL, NULL));
    CHECK(small_open(NULL, NULL) == PRECAST_BAD_ARGUMENT);
    CHECK(small_query(NULL, &unit, 1) == 0 && !strcmp(small_error(), "the release is not open"));
    open_release();
    CHECK(small_query(k, NULL, 1) > 1);
}

static void no_key(void) {
    FAILS(small_open_signed(folder, NULL, &k), PRECAST_UNTRUSTED,
          "a signature is required, and the key to check it with is NULL");
    CHECK(!k);
    FAILS(small_open_signed(folder, NULL, NULL), PRECAST_UNTRUSTED,
          "a signature is required, and the key to check it with is NULL");
}

/* A release is the folder that was opened, wherever the process and the link go. */
static void opened_by_another_name(void) {
    char place[4096], link[4096 + 16];
    const char *name = strrchr(folder, '/');
    small *linked;
    snprintf(place, sizeof place, "%s-links-XXXXXX", folder); /* beside the release, in the test's own folder */
    CHECK(mkdtemp(place) && name);
    snprintf(link, sizeof link, "%s/current", place);
    CHECK(!symlink(folder, link));
    OK(small_open(link, &linked));
    CHECK(!unlink(link) && !symlink("/nowhere", link));
    CHECK(!chdir(folder) && !chdir(".."));
    OK(small_open(name + 1, &k));
    CHECK(!chdir("/"));
    fill();
    OK(small_scale(k, PRECAST_CPU, axes(PRECAST_FP32, 64), out, x, 2, N));
    OK(small_scale(linked, PRECAST_CPU, axes(PRECAST_FP32, 64), out, out, 2, N));
    check_scaled(4, N);
    OK(small_selfcheck(linked));
    small_close(linked);
    CHECK(!unlink(link) && !rmdir(place));
}

static void *const stream = (void *)0x10007;

/* What is launched with a stream lies on a GPU: the CPU must not touch it. */
static void stream_without_device(void) {
    open_release();
    for (int i = 0; i < 2; i++) {
        FAILS(small_scale(k, stream, axes(PRECAST_FP32, 64), (void *)0x7f0000000000, (void *)0x7f0000000000, 2, N),
              PRECAST_NO_DEVICE, "the CUDA driver finds no device; the HIP runtime finds no device");
        fill();
        OK(small_scale(k, NULL, axes(PRECAST_FP32, 64), out, x, 2, N));
        check_scaled(2, N);
    }
}

/* With libraries of no functions, which an old driver is too: NULL does not go on to the CPU. */
static void cuda_without_functions(void) {
    open_release();
    FAILS(small_scale(k, stream, axes(PRECAST_FP32, 64), out, x, 2, N), PRECAST_NO_DEVICE,
          "the CUDA driver is too old: it has no cuInit");
    FAILS(small_scale(k, NULL, axes(PRECAST_FP32, 64), out, x, 2, N), PRECAST_NO_DEVICE,
          "the CUDA driver is too old: it has no cuInit");
    OK(small_scale(k, PRECAST_CPU, axes(PRECAST_FP32, 64), out, x, 2, N));
}

static void hip_without_functions(void) {
    open_release();
    FAILS(small_scale(k, NULL, axes(PRECAST_FP32, 64), out, x, 2, N), PRECAST_NO_DEVICE,
          "the HIP runtime is too old: it has no hipInit");
}

static void no_libraries(void) {
    open_release();
    CHECK(small_scale(k, stream, axes(PRECAST_FP32, 64), out, x, 2, N) == PRECAST_NO_DEVICE);
    const char *message = small_error(), *second = strstr(message, "; the HIP runtime is not to be had: ");
    CHECK(strstr(message, "the CUDA driver is not to be had: ") == message && second);
    CHECK(strstr(message, "libcuda.so.1: ") < second && strstr(second, "libamdhip64.so: "));
    fill();
    OK(small_scale(k, NULL, axes(PRECAST_FP32, 64), out, x, 2, N));
    check_scaled(2, N);
}

int main(int argc, char **argv) {
    static const scenario all[] = {
        {"right_numbers", right_numbers}, {"beside_the_library", beside_the_library},
        {"explicit_grid", explicit_grid}, {"messages", messages}, {"broken_promise", broken_promise},
        {"no_hint_holds", no_hint_holds}, {"every_scalar", every_scalar}, {"selection_table", selection_table},
        {"scratch_and_threads", scratch_and_threads}, {"concurrent_launches", concurrent_launches},
        {"failed_assertion", failed_assertion}, {"pass_buffer", pass_buffer}, {"questions", questions},
        {"forked_child", forked_child}, {"opened_many_times", opened_many_times},
        {"threads_by_affinity", threads_by_affinity}, {"no_release", no_release}, {"no_key", no_key},
        {"opened_by_another_name", opened_by_another_name}, {"stream_without_device", stream_without_device},
        {"cuda_without_functions", cuda_without_functions}, {"hip_without_functions", hip_without_functions},
        {"no_libraries", no_libraries}, {NULL, NULL},
    };
    return run_scenario(all, argc, argv);
}
