/* Launches against the CUDA driver for tests: all that can go wrong, and threads at once. */
#include <sys/wait.h>

#include "gpu.h"

static void lose_context(void) { fake_reset_context(0); }
static precast_status launch_shared(void) { return small_features(k, stream, FEATURE(SHARED), NULL, 3); }
static precast_status launch_pdl(void) { return small_features(k, stream, FEATURE(PDL), NULL, 3); }

static void failing_functions(void) {
    static const failure of_scale[] = {
        {"cuModuleLoadData", 218, "CUDA: CUDA_ERROR_OTHER (218) while loading the image of "
                                  "scale:dtype=fp32,BLOCK=64@cuda:90"},
        {"cuModuleGetFunction", 500, "CUDA: CUDA_ERROR_OTHER (500) while looking for the kernel's symbol in the image of "
                                     "scale:dtype=fp32,BLOCK=64@cuda:90"},
        {"cuLaunchKernel", 719, "CUDA: CUDA_ERROR_OTHER (719) while launching scale:dtype=fp32,BLOCK=64@cuda:90"},
        {"cuStreamGetCtx", 400, "CUDA: CUDA_ERROR_INVALID_HANDLE (400) while looking for the current device"},
        {"cuCtxSetCurrent", 400, "CUDA: CUDA_ERROR_INVALID_HANDLE (400) while looking for the current device"},
        {"cuCtxGetId", 999, "CUDA: CUDA_ERROR_OTHER (999) while looking for the current device"},
        {"cuCtxGetCurrent", 400, "CUDA: CUDA_ERROR_INVALID_HANDLE (400) while asking for the device's facts"},
        {"cuCtxGetDevice", 999, "CUDA: CUDA_ERROR_OTHER (999) while asking for the device's facts"},
        {"cuDeviceGetAttribute", 1, "CUDA: CUDA_ERROR_OTHER (1) while asking for the device's facts"},
        {NULL, 0, NULL},
    };
    static const failure of_shared[] = {
        {"cuFuncSetAttribute", 1, "CUDA: CUDA_ERROR_OTHER (1) while setting the attributes of "
                                  "features:FEATURE=shared@cuda:90"},
        {NULL, 0, NULL},
    };
    static const failure of_pdl[] = {
        {"cuLaunchKernelEx", 719, "CUDA: CUDA_ERROR_OTHER (719) while launching features:FEATURE=pdl@cuda:90"},
        {NULL, 0, NULL},
    };
    fail_at(of_scale, lose_context, scale, PRECAST_DRIVER_FAILED);
    fail_at(of_shared, lose_context, launch_shared, PRECAST_DRIVER_FAILED);
    fail_at(of_pdl, lose_context, launch_pdl, PRECAST_DRIVER_FAILED);
}

/* What a launch can do without. */
static void failures_without_harm(void) {
    static const char *const functions[] = {"cuDriverGetVersion", "cuThreadExchangeStreamCaptureMode",
                                            "cuFuncGetParamInfo"};
    for (int i = 0; i < 3; i++) {
        open_release();
        fake_fail(functions[i], 1, 0);
        OK(scale());
        OK(scale());
        CHECK(fake_count(functions[i]) > 0 && fake_last_launch()->parameter_count == 6);
        small_close(k);
    }
    k = NULL;
}

static void failing_primary_context(void) {
    open_release();
    fake_fail("cuDeviceGet", 101, 0);
    FAILS(small_scale(k, NULL, scale64, out, x, 1, 7), PRECAST_DRIVER_FAILED,
          "CUDA: CUDA_ERROR_OTHER (101) while looking for the current device");
    fake_fail("cuDevicePrimaryCtxRetain", 2, 0);
    FAILS(small_scale(k, NULL, scale64, out, x, 1, 7), PRECAST_OUT_OF_MEMORY,
          "CUDA: CUDA_ERROR_OUT_OF_MEMORY (2) while looking for the current device");
    OK(small_scale(k, NULL, scale64, out, x, 1, 7));
}

static void failing_unload(void) {
    open_release();
    OK(scale());
    fake_fail("cuModuleUnload", 400, 0);
    FAILS(small_unload(k), PRECAST_DRIVER_FAILED,
          "CUDA: CUDA_ERROR_INVALID_HANDLE (400) while unloading an image from cuda:90");
    OK(scale());
    CHECK(fake_count("cuModuleLoadData") == 2);
}

static void lost_context(void) {
    open_release();
    OK(scale());
    fake_reset_context(0);
    OK(scale());
    CHECK(fake_count("cuModuleLoadData") == 2);
    OK(small_unload(k));
    CHECK(fake_count("cuModuleUnload") == 1); /* the lost context's module went with it */
}

static void out_of_memory(void) {
    open_release();
    fake_fail("cuModuleLoadData", 2, 0);
    FAILS(scale(), PRECAST_OUT_OF_MEMORY,
          "CUDA: CUDA_ERROR_OUT_OF_MEMORY (2) while loading the image of scale:dtype=fp32,BLOCK=64@cuda:90");
    fake_fail("cuMemAllocAsync", 2, 0);
    FAILS(small_features(k, stream, FEATURE(SCRATCH), NULL, 3), PRECAST_OUT_OF_MEMORY,
          "CUDA: CUDA_ERROR_OUT_OF_MEMORY (2) while allocating global scratch");
    fake_fail("cuMemsetD8Async", 700, 0);
    FAILS(small_features(k, stream, FEATURE(PROFILE), NULL, 3), PRECAST_DRIVER_FAILED,
          "CUDA: CUDA_ERROR_OTHER (700) while clearing profile scratch");
    fake_fail("cuMemFreeAsync", 700, 0);
    FAILS(small_features(k, stream, FEATURE(SCRATCH), NULL, 3), PRECAST_DRIVER_FAILED,
          "CUDA: CUDA_ERROR_OTHER (700) while giving scratch back");
    OK(small_set_buffer_reader(k, read_nothing, NULL));
    fake_fail("cuMemcpyDtoHAsync", 700, 0);
    FAILS(small_features(k, stream, FEATURE(BUFFER), NULL, 3), PRECAST_DRIVER_FAILED,
          "CUDA: CUDA_ERROR_OTHER (700) while reading a pass's buffer");
    fake_fail("cuStreamSynchronize", 700, 0);
    FAILS(small_features(k, stream, FEATURE(BUFFER), NULL, 3), PRECAST_DRIVER_FAILED,
          "CUDA: CUDA_ERROR_OTHER (700) while reading a pass's buffer");
    CHECK(fake_live_allocations() == 1); /* the one whose release was made to fail */
    FAILS(small_features_grid(k, stream, FEATURE(SCRATCH), (precast_grid){1 << 28, 65535, 65535}, NULL, 3),
          PRECAST_OUT_OF_MEMORY, "global scratch of this grid does not fit in memory");
}

static void no_cooperative_launch(void) {
    open_release();
    fake_cooperative(0);
    FAILS(small_features(k, stream, FEATURE(COOPERATIVE), NULL, 3), PRECAST_NO_UNIT,
          "features:FEATURE=cooperative@cuda:90 needs a cooperative launch, which this device does not have");
    OK(small_features(k, stream, FEATURE(PLAIN), NULL, 3));
}

/* NULL goes on to the CPU; a stream is a GPU's, and what it is launched with lies there. */
static void no_device(void) {
    int archs[] = {90};
    fake_devices(0, archs);
    open_release();
    x[3] = 4;
    OK(small_scale(k, NULL, scale64, out, x, 2, 64));
    CHECK(out[3] == 8 && fake_launch_count() == 0);
    FAILS(small_features(k, NULL, FEATURE(PLAIN), NULL, 3), PRECAST_NO_UNIT,
          "no unit of `features` runs on " HOST "; it is built for cuda:90, hip:gfx942");
    for (int i = 0; i < 2; i++)
        FAILS(scale(), PRECAST_NO_DEVICE, "the CUDA driver finds no device; the HIP runtime finds no device");
    FAILS(small_preload(k, stream, NULL), PRECAST_NO_DEVICE,
          "the CUDA driver finds no device; the HIP runtime finds no device");
    fake_devices(1, archs);
    OK(scale());
    CHECK(fake_launch_count() == 1);
}

/* A driver that fails to start is no reason to run on the CPU, and is tried again. */
static void failing_start(void) {
    static const failure table[] = {
        {"cuInit", 999, "CUDA does not start: CUDA_ERROR_OTHER (999)"},
        {"cuDeviceGetCount", 2, "CUDA does not start: CUDA_ERROR_OUT_OF_MEMORY (2)"},
        {NULL, 0, NULL},
    };
    open_release();
    for (const failure *each = table; each->function; each++) {
        fake_fail(each->function, each->code, 0);
        FAILS(small_scale(k, NULL, scale64, out, x, 2, 64), PRECAST_NO_DEVICE, each->expected);
        fake_fail(each->function, each->code, 0);
        FAILS(scale(), PRECAST_NO_DEVICE, each->expected);
    }
    fake_fail("cuInit", 34, 0); /* the library that programs are linked with where there is no driver */
    FAILS(scale(), PRECAST_NO_DEVICE,
          "CUDA does not start: CUDA_ERROR_OTHER (34); the HIP runtime finds no device");
    fake_fail("cuInit", 100, 0);
    x[3] = 4;
    OK(small_scale(k, NULL, scale64, out, x, 2, 64));
    CHECK(out[3] == 8 && fake_launch_count() == 0);
    OK(scale());
    OK(small_scale(k, NULL, scale64, out, x, 2, 64));
    CHECK(fake_launch_count() == 2);
}

static void old_driver(void) {
    open_release();
    OK(scale());
    FAILS(small_features(k, stream, FEATURE(PDL), NULL, 3), PRECAST_DRIVER_FAILED,
          "CUDA: CUDA_ERROR_OTHER (801) while launching features:FEATURE=pdl@cuda:90");
    FAILS(small_features(k, stream, FEATURE(SCRATCH), NULL, 3), PRECAST_DRIVER_FAILED,
          "CUDA: CUDA_ERROR_OTHER (801) while allocating global scratch");
}

static void many_threads_slow_loads(void) {
    open_release();
    fake_slow_loads(30);
    on_threads(launch_both_hints);
    CHECK(fake_count("cuModuleLoadData") == 3 && fake_count("cuLaunchKernel") == 64 * 50);
    CHECK(fake_live_allocations() == 0);
}

static void changed_callbacks(void) {
    open_release();
    on_threads(change_callbacks);
    CHECK(fake_live_allocations() == 0);
}

static void *scale_once(void *argument) {
    (void)argument;
    OK(scale());
    return NULL;
}

/* The child has not the thread that loads, and must not wait for it. */
static void forked_while_loading(void) {
    pthread_t thread;
    int status;
    open_release();
    fake_slow_loads(200);
    CHECK(!pthread_create(&thread, NULL, scale_once, NULL));
    while (!fake_count("cuModuleLoadData"))
        usleep(1000);
    pid_t child = fork();
    if (!child) {
        alarm(20);
        OK(scale());
        OK(small_set_allocator(k, NULL));
        OK(small_scale(k, stream, scale64, out, x, 1, 16));
        _exit(fake_count("cuModuleLoadData") == 2 ? 0 : 1);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    pthread_join(thread, NULL);
    OK(scale());
}

int main(int argc, char **argv) {
    static const scenario all[] = {
        {"failing_functions", failing_functions}, {"failures_without_harm", failures_without_harm},
        {"failing_primary_context", failing_primary_context}, {"failing_unload", failing_unload},
        {"lost_context", lost_context}, {"out_of_memory", out_of_memory},
        {"no_cooperative_launch", no_cooperative_launch}, {"no_device", no_device}, {"failing_start", failing_start},
        {"old_driver", old_driver}, {"many_threads_slow_loads", many_threads_slow_loads},
        {"unload_between_launches", unload_between_launches}, {"changed_callbacks", changed_callbacks},
        {"forked_while_loading", forked_while_loading}, {NULL, NULL},
    };
    return run_scenario(all, argc, argv);
}
