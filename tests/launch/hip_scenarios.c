/* Launches against the HIP runtime for tests: all that a launch can carry. No AMD device runs them: this is what the
 * project can check. */
#include "gpu.h"

static void plain(void) {
    open_release();
    OK(small_scale(k, stream, scale64, out, x, 2.5f, 1000));
    const fake_launch *launch = fake_last_launch();
    CHECK(launch->grid[0] == 16 && launch->grid[1] == 1 && launch->grid[2] == 1);
    CHECK(launch->threads == 256 && launch->stream == stream && launch->attribute_count == 0);
    CHECK(launch->parameter_count == 6 && parameter(0) == (uint64_t)out && parameter(1) == (uint64_t)x);
    CHECK(parameter(2) == 0x40200000 && parameter(3) == 1000 && parameter(4) == 0 && parameter(5) == 0);
    for (int i = 0; i < 5; i++)
        OK(scale());
    CHECK(fake_count("hipModuleLoadData") == 1 && fake_launch_count() == 6);
    OK(small_unload(k));
    CHECK(fake_live_modules() == 0);
    OK(scale());
    CHECK(fake_count("hipModuleLoadData") == 2);
}

static void hints(void) {
    char first[256];
    open_release();
    OK(small_scale(k, stream, scale64, out, x, 1, 1000));
    strcpy(first, fake_last_launch()->symbol);
    OK(small_scale(k, stream, scale64, out, x, 1, 1024));
    CHECK(strcmp(first, fake_last_launch()->symbol) && fake_count("hipModuleLoadData") == 2);
}

static void grids(void) {
    open_release();
    OK(small_scale(k, stream, scale64, out, x, 1, 0));
    OK(small_scale_grid(k, stream, scale64, (precast_grid){1, 1, 0}, out, x, 1, 7));
    CHECK(fake_launch_count() == 0 && fake_count("hipModuleLoadData") == 0);
    OK(small_scale_grid(k, stream, scale64, (precast_grid){5, 65536, 2}, out, x, 1, 7));
    CHECK(fake_last_launch()->grid[0] == 5 && fake_last_launch()->grid[1] == 65536 && fake_last_launch()->grid[2] == 2);
    FAILS(small_features_grid(k, stream, FEATURE(CLUSTER), (precast_grid){1 << 30, 1, 1}, NULL, 7), PRECAST_BAD_GRID,
          "the grid of features:FEATURE=cluster@hip:gfx942 is 1073741824 along x, hip:gfx942 allows 1073741823");
}

static void another_architecture(void) {
    fake_hip_arch("gfx90a:sramecc+");
    open_release();
    FAILS(scale(), PRECAST_NO_UNIT,
          "no unit of `scale` runs on hip:gfx90a; it is built for cpu:x86-64-v2, cpu:x86-64-v3, cuda:80, "
          "cuda:86, cuda:90, hip:gfx942");
}

static void range32(void) {
    open_release();
    OK(scale());
    fake_hip_allocation((size_t)1 << 31);
    FAILS(scale(), PRECAST_BAD_ARGUMENT,
          "argument `x` of `scale` promises range32, and its buffer is longer than 2 GiB");
    fake_hip_allocation(((size_t)1 << 31) - 1);
    OK(scale());
}

static void clusters_and_cooperative_launches(void) {
    open_release();
    OK(small_features(k, stream, FEATURE(CLUSTER), NULL, 3));
    const fake_launch *launch = fake_last_launch();
    CHECK(launch->grid[0] == 6 && launch->grid[1] == 2 && launch->attribute_count == 2);
    CHECK(launch->attributes[0].id == 4 && launch->attributes[0].value[0] == 2);
    CHECK(launch->attributes[0].value[1] == 1 && launch->attributes[0].value[2] == 1);
    CHECK(launch->attributes[1].id == 2 && launch->attributes[1].value[0] == 0 && launch->stream == stream);
    CHECK(fake_count("hipDrvLaunchKernelEx") == 1 && parameter(0) == 3);
    OK(small_features(k, stream, FEATURE(COOPERATIVE), NULL, 3));
    CHECK(fake_count("hipModuleLaunchCooperativeKernel") == 1 && fake_last_launch()->grid[0] == 3);
    CHECK(fake_count("hipModuleLaunchKernel") == 0 && fake_last_launch()->stream == stream && parameter(0) == 3);
}

static void shared_memory(void) {
    open_release();
    OK(small_features(k, stream, FEATURE(SHARED), NULL, 3));
    CHECK(fake_last_launch()->shared_bytes == 100000);
    FAILS(small_features(k, stream, FEATURE(TOO_MUCH_SHARED), NULL, 3), PRECAST_NO_UNIT,
          "features:FEATURE=too_much_shared@hip:gfx942 needs 300000 bytes of shared memory, this device gives a block "
          "163840");
}

static void scratch(void) {
    open_release();
    OK(small_features(k, stream, FEATURE(SCRATCH), NULL, 3));
    CHECK(parameter(1) && !parameter(2) && fake_count("hipMallocAsync") == 1 && fake_count("hipFreeAsync") == 1);
    CHECK(fake_count("hipMemsetAsync") == 0);
    OK(small_features(k, stream, FEATURE(PROFILE), NULL, 3));
    CHECK(!parameter(1) && parameter(2) && fake_count("hipMemsetAsync") == 1 && fake_live_allocations() == 0);
}

static void allocator(void) {
    notes kept = {0, 0, 0, 0};
    precast_allocator mine = {give, take, &kept}, none = {refuse, NULL, NULL};
    open_release();
    OK(small_set_allocator(k, &mine));
    OK(small_features(k, stream, FEATURE(SCRATCH), NULL, 3));
    /* A part for each program, also of a cluster. */
    CHECK(kept.bytes == 100 * 3 * 2 && kept.alignment == 128 && kept.gave == 1 && kept.took == 1);
    fake_fail("hipDrvLaunchKernelEx", 719, 0);
    CHECK(small_features(k, stream, FEATURE(SCRATCH), NULL, 3) == PRECAST_DRIVER_FAILED && kept.took == 2);
    OK(small_features(k, stream, FEATURE(ALIGNED), NULL, 3));
    CHECK(kept.alignment == 512 && kept.took == 3 && fake_count("hipMallocAsync") == 0);
    OK(small_set_allocator(k, &none));
    FAILS(small_features(k, stream, FEATURE(SCRATCH), NULL, 3), PRECAST_OUT_OF_MEMORY,
          "the allocator gave no memory for 600 bytes of global scratch");
    OK(small_set_allocator(k, NULL));
    OK(small_features(k, stream, FEATURE(SCRATCH), NULL, 3));
    CHECK(fake_count("hipMallocAsync") == 1);
    FAILS(small_features(k, stream, FEATURE(ALIGNED), NULL, 3), PRECAST_BAD_ARGUMENT,
          "global scratch needs alignment 512: set an allocator");
}

static void allocator_changed_by_itself(void) { check_allocator_that_changes_itself("hipFreeAsync"); }

static int64_t read_programs;

static void read_counters(void *context, const char *unit, const char *pass_name, const void *data, size_t each,
                          int64_t programs) {
    CHECK(context == &read_programs && !strcmp(pass_name, "counters") && each == 8);
    CHECK(!strcmp(unit, "features:FEATURE=buffer@hip:gfx942"));
    for (int64_t i = 0; i < programs; i++)
        CHECK(((const int64_t *)data)[i] == 0);
    read_programs = programs;
}

static void pass_buffer(void) {
    open_release();
    OK(small_features(k, stream, FEATURE(BUFFER), NULL, 3));
    CHECK(parameter(1) && !parameter(2) && fake_count("hipStreamSynchronize") == 0);
    OK(small_set_buffer_reader(k, read_counters, &read_programs));
    OK(small_features(k, stream, FEATURE(BUFFER), NULL, 3));
    CHECK(read_programs == 6 && fake_count("hipStreamSynchronize") == 1 && fake_live_allocations() == 0);
}

static void tensor_descriptors(void) {
    precast_tensor tensor = {.base = x, .shape = {100, 60}, .strides = {64, 1}, .rank = 2, .pad_with_nan = 1};
    const uint64_t expanded[] = {(uint64_t)x, 100, 60, 64, 1, 1, 0, 100, 60, 64, 1, 3};
    open_release();
    OK(small_features(k, stream, FEATURE(EXPANDED), &tensor, 3));
    for (int i = 0; i < 12; i++)
        CHECK(parameter(i) == expanded[i]);
    FAILS(small_features(k, stream, FEATURE(DESCRIPTOR), &tensor, 3), PRECAST_DRIVER_FAILED,
          "HIP: hipErrorOther (801) while making the tensor map of argument x");
}

static void *on_second_device(void *argument) {
    (void)argument;
    CHECK(fake_current_device() == 0);
    OK(scale_on(PRECAST_HIP, 1));
    CHECK(fake_last_launch()->device == 1 && fake_current_device() == 0);
    OK(scale_on(PRECAST_HIP, 1));
    OK(scale_on(PRECAST_HIP, 0));
    CHECK(fake_last_launch()->device == 0 && fake_current_device() == 0);
    return NULL;
}

static void two_devices(void) {
    with_devices(2, 0, 0);
    on_a_thread(on_second_device);
    CHECK(fake_count("hipModuleLoadData") == 2 && fake_live_modules() == 2);
    FAILS(small_scale(k, (void *)0x20001, scale64, out, x, 1, 7), PRECAST_DRIVER_FAILED,
          "HIP: hipErrorInvalidHandle (400) while launching scale:dtype=fp32,BLOCK=64@hip:gfx942");
    FAILS(scale_on(PRECAST_HIP, 2), PRECAST_DRIVER_FAILED,
          "HIP: hipErrorOther (101) while going to the tensors' device");
    fake_fail("hipSetDevice", 400, 1);
    FAILS(scale_on(PRECAST_HIP, 1), PRECAST_DRIVER_FAILED,
          "HIP: hipErrorInvalidHandle (400) while going back to the current device");
    CHECK(fake_current_device() == 1);
    OK(small_scale(k, (void *)0x20001, scale64, out, x, 1, 7));
    OK(small_unload(k));
    CHECK(fake_live_modules() == 0 && fake_current_device() == 1);
}

static void preload(void) {
    open_release();
    OK(small_preload(k, stream, "scale"));
    CHECK(fake_count("hipModuleLoadData") == 8 && count_loaded("hip:gfx942") == 8);
    OK(scale());
    CHECK(fake_count("hipModuleLoadData") == 8);
    CHECK(small_preload(k, stream, NULL) == PRECAST_NO_UNIT); /* the unit that no device of this kind can run */
    CHECK(fake_count("hipThreadExchangeStreamCaptureMode") == 2 * fake_count("hipModuleLoadData"));
}

int main(int argc, char **argv) {
    static const scenario all[] = {
        {"plain", plain}, {"hints", hints}, {"grids", grids}, {"another_architecture", another_architecture},
        {"range32", range32}, {"clusters_and_cooperative_launches", clusters_and_cooperative_launches},
        {"shared_memory", shared_memory}, {"scratch", scratch}, {"allocator", allocator},
        {"allocator_changed_by_itself", allocator_changed_by_itself}, {"pass_buffer", pass_buffer},
        {"tensor_descriptors", tensor_descriptors}, {"two_devices", two_devices}, {"preload", preload}, {NULL, NULL},
    };
    return run_scenario(all, argc, argv);
}
