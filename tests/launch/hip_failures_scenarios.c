/* Launches against the HIP runtime for tests: all that can go wrong, and threads at once. */
#include "gpu.h"

static precast_status launch_cluster(void) { return small_features(k, stream, FEATURE(CLUSTER), NULL, 3); }
static precast_status launch_cooperative(void) { return small_features(k, stream, FEATURE(COOPERATIVE), NULL, 3); }

static void failing_functions(void) {
    static const failure of_scale[] = {
        {"hipModuleLoadData", 218, "HIP: hipErrorOther (218) while loading the image of "
                                   "scale:dtype=fp32,BLOCK=64@hip:gfx942"},
        {"hipModuleGetFunction", 500, "HIP: hipErrorOther (500) while looking for the kernel's symbol in the image of "
                                      "scale:dtype=fp32,BLOCK=64@hip:gfx942"},
        {"hipModuleLaunchKernel", 719, "HIP: hipErrorOther (719) while launching scale:dtype=fp32,BLOCK=64@hip:gfx942"},
        {"hipGetDevice", 999, "HIP: hipErrorOther (999) while looking for the current device"},
        {"hipGetDeviceProperties", 1, "HIP: hipErrorOther (1) while asking for the device's facts"},
        {"hipDeviceGetAttribute", 1, "HIP: hipErrorOther (1) while asking for the device's facts"},
        {NULL, 0, NULL},
    };
    static const failure of_cluster[] = {
        {"hipDrvLaunchKernelEx", 719, "HIP: hipErrorOther (719) while launching features:FEATURE=cluster@hip:gfx942"},
        {NULL, 0, NULL},
    };
    static const failure of_cooperative[] = {
        {"hipModuleLaunchCooperativeKernel", 720,
         "HIP: hipErrorOther (720) while launching features:FEATURE=cooperative@hip:gfx942"},
        {NULL, 0, NULL},
    };
    fail_at(of_scale, NULL, scale, PRECAST_DRIVER_FAILED);
    fail_at(of_cluster, NULL, launch_cluster, PRECAST_DRIVER_FAILED);
    fail_at(of_cooperative, NULL, launch_cooperative, PRECAST_DRIVER_FAILED);
}

/* What a launch can do without. */
static void failures_without_harm(void) {
    static const char *const functions[] = {"hipThreadExchangeStreamCaptureMode", "hipMemGetAddressRange"};
    for (int i = 0; i < 2; i++) {
        open_release();
        fake_fail(functions[i], 1, 0);
        OK(scale());
        OK(scale());
        CHECK(fake_count(functions[i]) > 0);
        small_close(k);
    }
    k = NULL;
}

static void failing_unload(void) {
    with_devices(2, 0, 0);
    OK(scale());
    fake_fail("hipModuleUnload", 400, 0);
    FAILS(small_unload(k), PRECAST_DRIVER_FAILED,
          "HIP: hipErrorInvalidHandle (400) while unloading an image from hip:gfx942");
    OK(scale_on(PRECAST_HIP, 1));
    fake_fail("hipSetDevice", 400, 0);
    FAILS(small_unload(k), PRECAST_DRIVER_FAILED,
          "HIP: hipErrorInvalidHandle (400) while unloading an image from hip:gfx942");
    fake_fail("hipSetDevice", 400, 0);
    FAILS(scale_on(PRECAST_HIP, 1), PRECAST_DRIVER_FAILED,
          "HIP: hipErrorInvalidHandle (400) while going to the tensors' device");
    OK(scale());
}

static void out_of_memory(void) {
    open_release();
    fake_fail("hipModuleLoadData", 2, 0);
    FAILS(scale(), PRECAST_OUT_OF_MEMORY,
          "HIP: hipErrorOutOfMemory (2) while loading the image of scale:dtype=fp32,BLOCK=64@hip:gfx942");
    fake_fail("hipMallocAsync", 2, 0);
    FAILS(small_features(k, stream, FEATURE(SCRATCH), NULL, 3), PRECAST_OUT_OF_MEMORY,
          "HIP: hipErrorOutOfMemory (2) while allocating global scratch");
    fake_fail("hipMemsetAsync", 700, 0);
    FAILS(small_features(k, stream, FEATURE(PROFILE), NULL, 3), PRECAST_DRIVER_FAILED,
          "HIP: hipErrorOther (700) while clearing profile scratch");
    fake_fail("hipFreeAsync", 700, 0);
    FAILS(small_features(k, stream, FEATURE(SCRATCH), NULL, 3), PRECAST_DRIVER_FAILED,
          "HIP: hipErrorOther (700) while giving scratch back");
    OK(small_set_buffer_reader(k, read_nothing, NULL));
    fake_fail("hipMemcpyDtoHAsync", 700, 0);
    FAILS(small_features(k, stream, FEATURE(BUFFER), NULL, 3), PRECAST_DRIVER_FAILED,
          "HIP: hipErrorOther (700) while reading a pass's buffer");
    fake_fail("hipStreamSynchronize", 700, 0);
    FAILS(small_features(k, stream, FEATURE(BUFFER), NULL, 3), PRECAST_DRIVER_FAILED,
          "HIP: hipErrorOther (700) while reading a pass's buffer");
    CHECK(fake_live_allocations() == 1); /* the one whose release was made to fail */
    FAILS(small_features_grid(k, stream, FEATURE(SCRATCH), (precast_grid){1 << 29, 65535, 65535}, NULL, 3),
          PRECAST_OUT_OF_MEMORY, "global scratch of this grid does not fit in memory");
}

static void no_cooperative_launch(void) {
    open_release();
    fake_cooperative(0);
    FAILS(launch_cooperative(), PRECAST_NO_UNIT,
          "features:FEATURE=cooperative@hip:gfx942 needs a cooperative launch, which this device does not have");
    OK(small_features(k, stream, FEATURE(PLAIN), NULL, 3));
}

static void no_device(void) {
    int archs[] = {0};
    fake_devices(0, archs);
    open_release();
    x[3] = 4;
    OK(small_scale(k, NULL, scale64, out, x, 2, 64));
    CHECK(out[3] == 8 && fake_launch_count() == 0);
    FAILS(scale(), PRECAST_NO_DEVICE, "the CUDA driver finds no device; the HIP runtime finds no device");
    FAILS(scale_on(PRECAST_HIP, 0), PRECAST_NO_DEVICE, "the HIP runtime finds no device");
    fake_devices(1, archs);
    OK(scale());
    CHECK(fake_launch_count() == 1);
}

static void failing_start(void) {
    static const failure table[] = {
        {"hipInit", 999, "HIP does not start: hipErrorOther (999)"},
        {"hipGetDeviceCount", 2, "HIP does not start: hipErrorOutOfMemory (2)"},
        {NULL, 0, NULL},
    };
    open_release();
    for (const failure *each = table; each->function; each++) {
        fake_fail(each->function, each->code, 0);
        FAILS(small_scale(k, NULL, scale64, out, x, 2, 64), PRECAST_NO_DEVICE, each->expected);
        fake_fail(each->function, each->code, 0);
        FAILS(scale(), PRECAST_NO_DEVICE, each->expected);
    }
    fake_fail("hipGetDeviceCount", 100, 0);
    FAILS(scale(), PRECAST_NO_DEVICE, "the CUDA driver finds no device; the HIP runtime finds no device");
    OK(small_scale(k, NULL, scale64, out, x, 2, 64));
    CHECK(fake_launch_count() == 1);
}

static void old_runtime(void) {
    open_release();
    OK(scale());
    FAILS(launch_cluster(), PRECAST_DRIVER_FAILED,
          "HIP: hipErrorOther (801) while launching features:FEATURE=cluster@hip:gfx942");
}

static void many_threads_slow_loads(void) {
    open_release();
    fake_slow_loads(30);
    on_threads(launch_both_hints);
    CHECK(fake_count("hipModuleLoadData") == 3 && fake_count("hipModuleLaunchKernel") == 64 * 50);
    CHECK(fake_live_allocations() == 0);
}

static void changed_callbacks(void) {
    open_release();
    on_threads(change_callbacks);
    CHECK(fake_live_allocations() == 0);
}

int main(int argc, char **argv) {
    static const scenario all[] = {
        {"failing_functions", failing_functions}, {"failures_without_harm", failures_without_harm},
        {"failing_unload", failing_unload}, {"out_of_memory", out_of_memory},
        {"no_cooperative_launch", no_cooperative_launch}, {"no_device", no_device}, {"failing_start", failing_start},
        {"old_runtime", old_runtime}, {"many_threads_slow_loads", many_threads_slow_loads},
        {"unload_between_launches", unload_between_launches}, {"changed_callbacks", changed_callbacks}, {NULL, NULL},
    };
    return run_scenario(all, argc, argv);
}
