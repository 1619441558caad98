/* Launches against the CUDA driver for tests: all that a launch can carry. */
#include "gpu.h"

static void plain(void) {
    open_release();
    OK(small_scale(k, stream, scale64, out, x, 2.5f, 1000));
    const fake_launch *launch = fake_last_launch();
    CHECK(launch->grid[0] == 16 && launch->grid[1] == 1 && launch->grid[2] == 1);
    CHECK(launch->threads == 128 && launch->stream == stream && launch->attribute_count == 0);
    CHECK(launch->parameter_count == 6 && parameter(0) == (uint64_t)out && parameter(1) == (uint64_t)x);
    CHECK(parameter(2) == 0x40200000 && parameter(3) == 1000 && parameter(4) == 0 && parameter(5) == 0);
    for (int i = 0; i < 5; i++)
        OK(small_scale(k, stream, scale64, out, x, 1, 1000));
    CHECK(fake_count("cuModuleLoadData") == 1 && fake_launch_count() == 6);
    CHECK(fake_count("cuDevicePrimaryCtxRetain") == 0 && fake_count("cuStreamGetCtx") == 1);
}

static void hints(void) {
    char first[256];
    open_release();
    OK(small_scale(k, stream, scale64, out, x, 1, 1000));
    strcpy(first, fake_last_launch()->symbol);
    OK(small_scale(k, stream, scale64, out, x, 1, 1024));
    CHECK(strcmp(first, fake_last_launch()->symbol) && fake_count("cuModuleLoadData") == 2);
}

static void zero_grid(void) {
    open_release();
    OK(small_scale(k, stream, scale64, out, x, 1, 0));
    OK(small_scale_grid(k, stream, scale64, (precast_grid){1, 1, 0}, out, x, 1, 7));
    CHECK(fake_launch_count() == 0 && fake_count("cuModuleLoadData") == 0);
}

static void grid_limits(void) {
    open_release();
    FAILS(small_scale_grid(k, stream, scale64, (precast_grid){1, 65536, 1}, out, x, 1, 7), PRECAST_BAD_GRID,
          "the grid of scale:dtype=fp32,BLOCK=64@cuda:90 is 65536 along y, cuda:90 allows 65535");
    FAILS(small_features_grid(k, stream, FEATURE(CLUSTER), (precast_grid){1 << 30, 1, 1}, NULL, 7), PRECAST_BAD_GRID,
          "the grid of features:FEATURE=cluster@cuda:90 is 1073741824 along x, cuda:90 allows 1073741823");
    OK(small_scale_grid(k, stream, scale64, (precast_grid){INT32_MAX, 1, 1}, out, x, 1, 7));
    OK(small_scale_grid(k, stream, scale64, (precast_grid){1, 65535, 65535}, out, x, 1, 7));
    OK(small_features_grid(k, stream, FEATURE(CLUSTER), (precast_grid){(1 << 30) - 1, 1, 1}, NULL, 7));
    CHECK(fake_launch_count() == 3);
}

static void attributes(void) {
    open_release();
    OK(small_features(k, stream, FEATURE(CLUSTER), NULL, 3));
    const fake_launch *launch = fake_last_launch();
    CHECK(launch->grid[0] == 6 && launch->grid[1] == 2 && launch->attribute_count == 2);
    CHECK(launch->attributes[0].id == 4 && launch->attributes[0].value[0] == 2 && launch->attributes[0].value[1] == 1);
    CHECK(launch->attributes[1].id == 5 && launch->attributes[1].value[0] == 1);
    OK(small_features(k, stream, FEATURE(COOPERATIVE), NULL, 3));
    CHECK(fake_last_launch()->attribute_count == 1 && fake_last_launch()->attributes[0].id == 2);
    OK(small_features(k, stream, FEATURE(PDL), NULL, 3));
    CHECK(fake_last_launch()->attributes[0].id == 6 && fake_last_launch()->attributes[0].value[0] == 1);
}

static void shared_memory(void) {
    open_release();
    OK(small_features(k, stream, FEATURE(SHARED), NULL, 3));
    OK(small_features(k, stream, FEATURE(SHARED), NULL, 3));
    CHECK(fake_last_launch()->shared_bytes == 100000 && fake_count("cuFuncSetAttribute") == 1);
    FAILS(small_features(k, stream, FEATURE(TOO_MUCH_SHARED), NULL, 3), PRECAST_NO_UNIT,
          "features:FEATURE=too_much_shared@cuda:90 needs 300000 bytes of shared memory, this device gives a block "
          "232448");
}

static void shared_memory_at_its_limit(void) {
    fake_shared_limit(100000);
    open_release();
    OK(small_features(k, stream, FEATURE(SHARED), NULL, 3));
}

static void shared_memory_beyond_its_limit(void) {
    fake_shared_limit(99999);
    open_release();
    FAILS(small_features(k, stream, FEATURE(SHARED), NULL, 3), PRECAST_NO_UNIT,
          "features:FEATURE=shared@cuda:90 needs 100000 bytes of shared memory, this device gives a block 99999");
}

static void scratch(void) {
    open_release();
    OK(small_features(k, stream, FEATURE(SCRATCH), NULL, 3));
    CHECK(parameter(1) && !parameter(2) && fake_count("cuMemAllocAsync") == 1 && fake_count("cuMemFreeAsync") == 1);
    CHECK(fake_count("cuMemsetD8Async") == 0);
    OK(small_features(k, stream, FEATURE(PROFILE), NULL, 3));
    CHECK(!parameter(1) && parameter(2) && fake_count("cuMemsetD8Async") == 1 && fake_live_allocations() == 0);
}

static void allocator(void) {
    notes kept = {0, 0, 0, 0};
    precast_allocator mine = {give, take, &kept}, nothing = {NULL, NULL, NULL}, none = {refuse, NULL, NULL};
    open_release();
    OK(small_set_allocator(k, &mine));
    OK(small_features(k, stream, FEATURE(SCRATCH), NULL, 3));
    CHECK(kept.bytes == 100 * 3 * 2 * 2 && kept.alignment == 128 && kept.gave == 1 && kept.took == 1);
    CHECK(fake_count("cuMemAllocAsync") == 0);
    fake_fail("cuLaunchKernelEx", 719, 0);
    CHECK(small_features(k, stream, FEATURE(SCRATCH), NULL, 3) == PRECAST_DRIVER_FAILED && kept.took == 2);
    OK(small_features(k, stream, FEATURE(ALIGNED), NULL, 3));
    CHECK(kept.alignment == 512 && kept.took == 3);
    OK(small_set_allocator(k, &none));
    FAILS(small_features(k, stream, FEATURE(SCRATCH), NULL, 3), PRECAST_OUT_OF_MEMORY,
          "the allocator gave no memory for 1200 bytes of global scratch");
    FAILS(small_set_allocator(k, &nothing), PRECAST_BAD_ARGUMENT, "an allocator needs a function that allocates");
    OK(small_set_allocator(k, NULL));
    OK(small_features(k, stream, FEATURE(SCRATCH), NULL, 3));
    CHECK(fake_count("cuMemAllocAsync") == 1);
    FAILS(small_features(k, stream, FEATURE(ALIGNED), NULL, 3), PRECAST_BAD_ARGUMENT,
          "global scratch needs alignment 512: set an allocator");
}

static void allocator_changed_by_itself(void) { check_allocator_that_changes_itself("cuMemFreeAsync"); }

static int64_t read_programs;

static void read_counters(void *context, const char *unit, const char *pass_name, const void *data, size_t each,
                          int64_t programs) {
    (void)context;
    CHECK(!strcmp(unit, "features:FEATURE=buffer@cuda:90") && !strcmp(pass_name, "counters") && each == 8);
    for (int64_t i = 0; i < programs; i++)
        CHECK(((const int64_t *)data)[i] == 0);
    read_programs = programs;
}

static void pass_buffer(void) {
    open_release();
    OK(small_features(k, stream, FEATURE(BUFFER), NULL, 3));
    CHECK(parameter(1) && !parameter(2) && fake_count("cuStreamSynchronize") == 0);
    OK(small_set_buffer_reader(k, read_counters, NULL));
    OK(small_features(k, stream, FEATURE(BUFFER), NULL, 3));
    CHECK(read_programs == 6 && fake_count("cuStreamSynchronize") == 1 && fake_live_allocations() == 0);
}

static void tensor_descriptors(void) {
    precast_tensor tensor = {.base = x, .shape = {100, 60}, .strides = {64, 1}, .rank = 2, .pad_with_nan = 1};
    uint64_t words[16];
    open_release();
    OK(small_features(k, stream, FEATURE(DESCRIPTOR), &tensor, 3));
    const fake_launch *launch = fake_last_launch();
    CHECK(launch->parameter_count == 8 && !launch->map_misaligned);
    memcpy(words, launch->bytes, sizeof words);
    /* base; the fault of older drivers mended; fp16; rank; sizes, stride and box from the innermost; fill. */
    uint64_t expected[16] = {(uint64_t)x, 1, 6, 2, 60, 100, 128, 32, 64, 1, 0, 3, 2, 1, 0, 0};
    CHECK(!memcmp(words, expected, sizeof words));
    CHECK(parameter(1) == 100 && parameter(2) == 60 && parameter(3) == 64 && parameter(4) == 1 && parameter(5) == 3);
    tensor.round_to_tf32 = 1, tensor.pad_with_nan = 0, tensor.shape[0] = 100000;
    OK(small_features(k, stream, FEATURE(DESCRIPTOR), &tensor, 3));
    memcpy(words, fake_last_launch()->bytes, sizeof words);
    CHECK(words[2] == 11 && words[13] == 0 && words[1] == (1 << 21 | 1));
    OK(small_features(k, stream, FEATURE(EXPANDED), &tensor, 3));
    uint64_t expanded[] = {(uint64_t)x, 100000, 60, 64, 1, 0, 1, 100000, 60, 64, 1, 3};
    for (int i = 0; i < 12; i++)
        CHECK(parameter(i) == expanded[i]);
    FAILS(small_features(k, stream, FEATURE(DESCRIPTOR), NULL, 3), PRECAST_BAD_ARGUMENT,
          "argument `x` needs a tensor, and it is NULL");
    tensor.strides[1] = 2;
    FAILS(small_features(k, stream, FEATURE(DESCRIPTOR), &tensor, 3), PRECAST_BAD_ARGUMENT,
          "argument `x` has stride 2 along its last dimension, not 1");
    tensor.rank = 3;
    FAILS(small_features(k, stream, FEATURE(DESCRIPTOR), &tensor, 3), PRECAST_BAD_ARGUMENT,
          "argument `x` needs a tensor of rank 2, and its rank is 3");
    tensor.rank = 2, tensor.strides[1] = 1;
    fake_fail("cuTensorMapEncodeTiled", 1, 0);
    FAILS(small_features(k, stream, FEATURE(DESCRIPTOR), &tensor, 3), PRECAST_DRIVER_FAILED,
          "CUDA: CUDA_ERROR_OTHER (1) while making the tensor map of argument x");
}

static void default_streams(void) {
    open_release();
    for (uintptr_t each = 0; each < 3; each++)
        OK(small_scale(k, (void *)each, scale64, out, x, 1, 7));
    CHECK(fake_count("cuDevicePrimaryCtxRetain") == 1 && fake_last_launch()->stream == (void *)2);
}

static void two_devices(void) {
    with_devices(2, 90, 86);
    OK(small_scale(k, (void *)0x10001, scale64, out, x, 1, 7));
    FAILS(small_scale(k, (void *)0x20001, scale64, out, x, 1, 7), PRECAST_DRIVER_FAILED,
          "CUDA: CUDA_ERROR_INVALID_HANDLE (400) while launching scale:dtype=fp32,BLOCK=64@cuda:90");
    small_unload(k);
    OK(small_scale(k, (void *)0x10001, scale64, out, x, 1, 7));
    CHECK(fake_count("cuModuleUnload") == 1 && fake_live_modules() == 1);
}

static void *on_second_device(void *argument) {
    (void)argument;
    OK(small_scale(k, (void *)0x20001, scale64, out, x, 1, 7));
    CHECK(fake_current_device() == 1 && fake_last_launch()->device == 1);
    return NULL;
}

static void a_device_for_each_thread(void) {
    with_devices(2, 90, 86);
    OK(small_scale(k, (void *)0x10001, scale64, out, x, 1, 7));
    on_a_thread(on_second_device);
    CHECK(fake_count("cuModuleLoadData") == 2);
    OK(small_unload(k));
    CHECK(fake_live_modules() == 0 && fake_current_device() == 0);
}

/* To the device that a call names and back, also to none. */
static void *on_the_tensors_device(void *argument) {
    (void)argument;
    OK(scale_on(PRECAST_CUDA, 1));
    CHECK(fake_last_launch()->device == 1 && fake_current_device() == -1);
    OK(scale_on(PRECAST_CUDA, 1));
    CHECK(fake_current_device() == -1 && fake_count("cuModuleLoadData") == 1);
    OK(small_scale(k, NULL, scale64, out, x, 1, 7));
    CHECK(fake_last_launch()->device == 0 && fake_current_device() == 0);
    OK(scale_on(PRECAST_CUDA, 1));
    OK(scale_on(PRECAST_CUDA, 0));
    CHECK(fake_last_launch()->device == 0 && fake_current_device() == 0 && fake_count("cuModuleLoadData") == 2);
    return NULL;
}

static void tensors_device(void) {
    with_devices(2, 90, 86);
    on_a_thread(on_the_tensors_device);
    FAILS(scale_on(PRECAST_CUDA, 2), PRECAST_DRIVER_FAILED,
          "CUDA: CUDA_ERROR_OTHER (101) while going to the tensors' device");
    fake_fail("cuCtxSetCurrent", 400, 1);
    FAILS(scale_on(PRECAST_CUDA, 1), PRECAST_DRIVER_FAILED,
          "CUDA: CUDA_ERROR_INVALID_HANDLE (400) while going back to the current device");
}

static void architectures(void) {
    static const struct { int arch; const char *unit; } table[] = {
        {90, "cuda:90"}, {89, "cuda:86"}, {86, "cuda:86"}, {80, "cuda:80"}, {82, "cuda:80"}, {87, NULL}, {75, NULL},
        {100, NULL}, {91, NULL},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        fake_reset_context(0);
        with_devices(1, table[i].arch, 0);
        precast_status status = small_scale(k, stream, scale64, out, x, 1, 7);
        CHECK(status == (table[i].unit ? PRECAST_OK : PRECAST_NO_UNIT));
        size_t count = small_query(k, NULL, 0);
        precast_unit *units = calloc(count, sizeof *units);
        small_query(k, units, count);
        for (size_t j = 0; j < count; j++)
            CHECK(strncmp(units[j].target, "cuda", 4) || units[j].loaded == (table[i].unit && units[j].loaded &&
                  !strcmp(units[j].target, table[i].unit)));
        free(units);
        if (!table[i].unit) {
            char expected[128];
            snprintf(expected, sizeof expected, "no unit of `scale` runs on cuda:%d; it is built for ", table[i].arch);
            CHECK(strstr(small_error(), expected) && strstr(small_error(), "cuda:80"));
        }
        small_close(k);
    }
    k = NULL;
}

static void preload(void) {
    open_release();
    OK(small_preload(k, stream, "scale"));
    CHECK(fake_count("cuModuleLoadData") == 8);
    OK(small_scale(k, stream, scale64, out, x, 1, 7));
    CHECK(fake_count("cuModuleLoadData") == 8);
    fake_shared_limit(400000);
    CHECK(small_preload(k, stream, NULL) == PRECAST_NO_UNIT); /* the unit that no device of this kind can run */
    CHECK(fake_count("cuThreadExchangeStreamCaptureMode") == 2 * fake_count("cuModuleLoadData"));
}

/* On cuda:86 the units of cuda:80 are never chosen. */
static void preload_what_can_be_chosen(void) {
    with_devices(1, 86, 0);
    OK(small_preload(k, stream, "scale"));
    CHECK(fake_count("cuModuleLoadData") == 8 && count_loaded("cuda:86") == 8 && count_loaded("cuda:80") == 0);
    OK(small_scale(k, stream, scale64, out, x, 1, 1024));
    OK(small_scale(k, stream, scale64, out, x, 1, 1000));
    CHECK(fake_count("cuModuleLoadData") == 8);
}

static void cpu_beside_cuda(void) {
    open_release();
    x[3] = 4;
    OK(small_scale(k, PRECAST_CPU, scale64, out, x, 2, 64));
    CHECK(out[3] == 8 && fake_count("cuInit") == 0);
}

/* Launch after launch of one kernel: each means its own unit, whatever the one before meant. */
static char symbols[8][256];

static void launch_steady(int which) {
    small_steady_axes axes = {.BLOCK = which & 4 ? 128 : 64};
    int n = which & 1 ? 32 : 33, m = which & 2 ? 48 : 50;
    OK(small_steady(k, stream, axes, x, n, m));
    const fake_launch *launch = fake_last_launch();
    CHECK(!symbols[which][0] || !strcmp(symbols[which], launch->symbol));
    CHECK(launch->stream == stream && launch->threads == 128);
    CHECK(launch->grid[0] == 2 && launch->grid[1] == 3 && launch->grid[2] == 1);
    CHECK(launch->parameter_count == 5 && parameter(0) == (uint64_t)x && (int)parameter(1) == n);
    CHECK((int)parameter(2) == m && !parameter(3) && !parameter(4));
}

static void learn_symbols(void) {
    for (int i = 0; i < 8; i++) {
        launch_steady(i);
        strcpy(symbols[i], fake_last_launch()->symbol);
        for (int j = 0; j < i; j++)
            CHECK(strcmp(symbols[i], symbols[j]));
    }
}

static void *launch_steadily(void *argument) {
    for (int round = 0; round < 200; round++)
        for (int i = 0; i < 1 + round % 3; i++)
            launch_steady((round + (int)(intptr_t)argument) * 7919 / 13 % 8);
    return NULL;
}

static void one_after_another(void) {
    with_devices(1, 90, 0);
    learn_symbols();
    launch_steadily(NULL);
    CHECK(fake_count("cuModuleLoadData") == 8);
    /* A constant is no promise: nothing but the choice itself keeps 50 from the unit for 1. */
    for (int i = 0; i < 2; i++) {
        OK(small_steady(k, stream, (small_steady_axes){64}, x, 33, 1));
        CHECK(fake_last_launch()->parameter_count == 4);
    }
    OK(small_steady(k, stream, (small_steady_axes){64}, x, 33, 50));
    CHECK(fake_last_launch()->parameter_count == 5 && !strcmp(symbols[0], fake_last_launch()->symbol));
}

/* A promised value too, where the unit of the launch before is taken at once. */
static void values_of_each_launch(void) {
    const small_tiled_axes axes = {0};
    with_devices(1, 90, 0);
    for (int i = 0; i < 3; i++) {
        OK(small_tiled(k, stream, axes, x, x, 64, 16));
        FAILS(small_tiled(k, stream, axes, x, x, 65, 16), PRECAST_BAD_ARGUMENT,
              "argument `size` of `tiled` promises equal = 64, and it is 65");
        OK(small_tiled(k, stream, axes, x, x, 64, 33));
        CHECK((int)parameter(2) == 64 && (int)parameter(3) == 33);
        FAILS(small_tiled(k, stream, axes, x, x, 63, 33), PRECAST_BAD_ARGUMENT,
              "argument `size` of `tiled` promises equal = 64, and it is 63");
    }
    CHECK(fake_launch_count() == 6);
}

/* What a launch must meet is looked at again where the unit of the one before is taken at once. */
static void requirements_of_each_launch(void) {
    const small_bounded_axes axes = {.BLOCK = 64};
    with_devices(1, 90, 0);
    for (int i = 0; i < 3; i++) {
        OK(small_bounded(k, stream, axes, x, 10, 0));
        FAILS(small_bounded(k, stream, axes, x, 65, 0), PRECAST_UNMET,
              "no variant of `bounded` takes these arguments; nearest: bounded:BLOCK=64@cuda:90, which requires "
              "n <= BLOCK (it is 65 <= 64)");
        OK(small_bounded(k, stream, axes, x, 10, 39));
        FAILS(small_bounded(k, stream, axes, x, 10, 40), PRECAST_UNMET,
              "no variant of `bounded` takes these arguments; nearest: bounded:BLOCK=64@cuda:90, which requires "
              "m // n < 4 (it is 4 < 4)");
    }
    CHECK(fake_launch_count() == 6);
}

static void one_after_another_on_all_threads(void) {
    with_devices(1, 90, 0);
    fake_slow_loads(1);
    on_threads(launch_steadily);
    CHECK(fake_count("cuModuleLoadData") == 8);
    learn_symbols();
    on_threads(launch_steadily);
    CHECK(fake_count("cuModuleLoadData") == 8);
}

/* Every parameter lies where its size aligns it, the hidden ones are zero, and an axis of one value may be left out. */
static void sizes_of_parameters(void) {
    const small_mixed_axes none = {0};
    open_release();
    for (int i = 0; i < 3; i++) {
        OK(small_mixed(k, stream, none, -3, x, -300, 1.5f, 1, -5000000000, 0x4000, 200, -70000, 0.5, 60000));
        const uint64_t expected[] = {0xfd, (uint64_t)x, 0xfed4, 0x3fc00000, 1, (uint64_t)-5000000000, 0x4000, 200,
                                     0xfffeee90, 0x3fe0000000000000, 60000, 0, 0};
        CHECK(fake_last_launch()->parameter_count == 13);
        for (int j = 0; j < 13; j++)
            CHECK(parameter(j) == expected[j]);
    }
    OK(small_typed(k, stream, (small_typed_axes){.dtype = PRECAST_FP16, .BLOCK = PRECAST_ANY}, out, x, 100));
    char half[256];
    strcpy(half, fake_last_launch()->symbol);
    OK(small_typed(k, stream, (small_typed_axes){.dtype = PRECAST_FP16, .BLOCK = 64}, out, x, 200));
    CHECK(!strcmp(half, fake_last_launch()->symbol) && fake_last_launch()->grid[0] == 4);
    OK(small_typed(k, stream, (small_typed_axes){.dtype = PRECAST_FP32, .BLOCK = PRECAST_ANY}, out, x, 200));
    CHECK(strcmp(half, fake_last_launch()->symbol));
    FAILS(small_typed(k, stream, (small_typed_axes){.BLOCK = PRECAST_ANY}, out, x, 200), PRECAST_NO_UNIT,
          "several units of `typed` fit on cuda:90; say which: dtype is one of fp16, fp32");
}

/* Launch after launch, each by its own pointer and axes. */
static void absent_or_not(void) {
    const small_biased_axes any = {0}, fp32 = {.W = SMALL_BIASED_W__FP32};
    const small_sole_axes said = {1, true, 0.5}, left = {PRECAST_ANY, PRECAST_ANY, PRECAST_ANY};
    int64_t unit;
    with_devices(1, 90, 0);
    for (int i = 0; i < 3; i++) {
        OK(small_biased(k, stream, any, &unit, NULL, 1));
        CHECK(fake_last_launch()->parameter_count == 4);
        OK(small_biased(k, stream, fp32, &unit, x, 1));
        CHECK(fake_last_launch()->parameter_count == 5);
        OK(small_biased(k, stream, fp32, &unit, x + 1, 1));
        FAILS(small_biased(k, stream, fp32, &unit, NULL, 1), PRECAST_BAD_ARGUMENT,
              "argument `w` of `biased` is a null pointer, biased:W=*fp32@cuda:90 takes a tensor");
        OK(small_sole(k, stream, i % 2 ? said : left, &unit, 1));
        FAILS(small_sole(k, stream, (small_sole_axes){1, false, 0.5}, &unit, 1), PRECAST_NO_UNIT,
              "`sole` has no variant with EVEN=false; there are true");
        FAILS(small_sole(k, stream, (small_sole_axes){0}, &unit, 1), PRECAST_NO_UNIT,
              "`sole` has no variant with CAUSAL=0; there are 1");
    }
}

static void *steady_on_second_device(void *argument) {
    (void)argument;
    OK(small_steady(k, (void *)0x20001, (small_steady_axes){64}, x, 33, 50));
    CHECK(fake_last_launch()->device == 1);
    return NULL;
}

/* What was right for the last launch is looked at again. */
static void nothing_is_taken_for_granted(void) {
    const small_steady_axes axes = {.BLOCK = 64};
    char expected[128];
    with_devices(2, 90, 86);
    OK(small_steady(k, stream, axes, x, 33, 50));
    snprintf(expected, sizeof expected, "argument `x` of `steady` promises align = 16, and its address is 0x%llx",
             (unsigned long long)(uintptr_t)(x + 1));
    FAILS(small_steady(k, stream, axes, x + 1, 33, 50), PRECAST_BAD_ARGUMENT, expected);
    FAILS(small_steady(k, stream, (small_steady_axes){65}, x, 33, 50), PRECAST_NO_UNIT,
          "`steady` has no variant with BLOCK=65; there are 64, 128");
    FAILS(small_steady(k, PRECAST_CPU, axes, x, 33, 50), PRECAST_NO_UNIT,
          "no unit of `steady` runs on " HOST "; it is built for cuda:86, cuda:90");
    OK(small_steady_grid(k, stream, axes, (precast_grid){5, 1, 1}, x, 33, 50));
    CHECK(fake_last_launch()->grid[0] == 5);
    OK(small_steady_grid(k, stream, axes, (precast_grid){0, 1, 1}, x, 33, 50));
    FAILS(small_steady_grid(k, stream, axes, (precast_grid){1, 65536, 1}, x, 33, 50), PRECAST_BAD_GRID,
          "the grid of steady:BLOCK=64@cuda:90 is 65536 along y, cuda:90 allows 65535");
    CHECK(fake_launch_count() == 2);
    fake_fail("cuLaunchKernel", 719, 0);
    FAILS(small_steady(k, stream, axes, x, 33, 50), PRECAST_DRIVER_FAILED,
          "CUDA: CUDA_ERROR_OTHER (719) while launching steady:BLOCK=64@cuda:90");
    fake_fail("cuCtxGetId", 999, 0);
    OK(small_steady(k, stream, axes, x, 33, 50)); /* asked once more */
    on_a_thread(steady_on_second_device);
    OK(small_steady(k, stream, axes, x, 33, 50));
    CHECK(fake_last_launch()->device == 0 && fake_count("cuModuleLoadData") == 2);
    OK(small_unload(k));
    OK(small_steady(k, stream, axes, x, 33, 50));
    CHECK(fake_count("cuModuleLoadData") == 3);
    fake_reset_context(0);
    OK(small_steady(k, stream, axes, x, 33, 50));
    CHECK(fake_count("cuModuleLoadData") == 4);
}

int main(int argc, char **argv) {
    static const scenario all[] = {
        {"plain", plain}, {"hints", hints}, {"zero_grid", zero_grid}, {"grid_limits", grid_limits},
        {"attributes", attributes}, {"shared_memory", shared_memory},
        {"shared_memory_at_its_limit", shared_memory_at_its_limit},
        {"shared_memory_beyond_its_limit", shared_memory_beyond_its_limit}, {"scratch", scratch}, {"allocator", allocator},
        {"allocator_changed_by_itself", allocator_changed_by_itself}, {"pass_buffer", pass_buffer},
        {"tensor_descriptors", tensor_descriptors}, {"default_streams", default_streams}, {"two_devices", two_devices},
        {"a_device_for_each_thread", a_device_for_each_thread}, {"tensors_device", tensors_device},
        {"architectures", architectures}, {"preload", preload},
        {"preload_what_can_be_chosen", preload_what_can_be_chosen}, {"cpu_beside_cuda", cpu_beside_cuda},
        {"one_after_another", one_after_another}, {"values_of_each_launch", values_of_each_launch},
        {"requirements_of_each_launch", requirements_of_each_launch},
        {"one_after_another_on_all_threads", one_after_another_on_all_threads},
        {"sizes_of_parameters", sizes_of_parameters}, {"nothing_is_taken_for_granted", nothing_is_taken_for_granted},
        {"absent_or_not", absent_or_not},
        {NULL, NULL},
    };
    return run_scenario(all, argc, argv);
}
