/* Launches against the HIP runtime for tests. No AMD device runs them: this is what the project can check. */
#include "check.h"

int fake_hip_cooperative(void);
int fake_hip_live(void);
void fake_hip_arch(const char *name);
void fake_hip_fail(const char *function, int code);
void fake_hip_allocation(size_t bytes);
const unsigned *fake_hip_grid(void);
unsigned fake_hip_threads(void);
const unsigned char *fake_hip_bytes(void);

static _Alignas(64) float x[64], out[64];
static void *const stream = (void *)0x1234;
static const small_scale_axes scale64 = {.dtype = PRECAST_FP32, .BLOCK = 64};

static void plain(void) {
    uint64_t first;
    open_release();
    OK(small_scale(k, stream, scale64, out, x, 2.5f, 1000));
    memcpy(&first, fake_hip_bytes(), 8);
    CHECK(fake_hip_grid()[0] == 16 && fake_hip_threads() == 256 && first == (uint64_t)(uintptr_t)out);
    OK(small_unload(k));
    OK(small_scale(k, stream, scale64, out, x, 2.5f, 1000));
}

static void another_architecture(void) {
    fake_hip_arch("gfx90a:sramecc+");
    open_release();
    FAILS(small_scale(k, stream, scale64, out, x, 2.5f, 1000), PRECAST_NO_UNIT,
          "no unit of `scale` runs on hip:gfx90a; it is built for cpu:x86-64-v2, cpu:x86-64-v3, cuda:80, "
          "cuda:86, cuda:90, hip:gfx942");
}

static void range32(void) {
    open_release();
    OK(small_scale(k, stream, scale64, out, x, 2.5f, 1000));
    fake_hip_allocation((size_t)1 << 31);
    FAILS(small_scale(k, stream, scale64, out, x, 2.5f, 1000), PRECAST_BAD_ARGUMENT,
          "argument `x` of `scale` promises range32, and its buffer is longer than 2 GiB");
    fake_hip_allocation(((size_t)1 << 31) - 1);
    OK(small_scale(k, stream, scale64, out, x, 2.5f, 1000));
}

static void failures(void) {
    open_release();
    fake_hip_fail("hipModuleLoadData", 2);
    FAILS(small_scale(k, stream, scale64, out, x, 1, 7), PRECAST_OUT_OF_MEMORY,
          "HIP: hipErrorOutOfMemory (2) while loading the image of scale:dtype=fp32,BLOCK=64@hip:gfx942");
    fake_hip_fail("hipModuleGetFunction", 500);
    CHECK(small_scale(k, stream, scale64, out, x, 1, 7) == PRECAST_DRIVER_FAILED);
    fake_hip_fail("hipModuleLaunchKernel", 1);
    FAILS(small_scale(k, stream, scale64, out, x, 1, 7), PRECAST_DRIVER_FAILED,
          "HIP: hipErrorOther (1) while launching scale:dtype=fp32,BLOCK=64@hip:gfx942");
    OK(small_scale(k, stream, scale64, out, x, 1, 7));
}

static void cooperative(void) {
    small_features_axes axes = {.FEATURE = SMALL_FEATURES_FEATURE_COOPERATIVE};
    open_release();
    OK(small_features(k, stream, axes, NULL, 3));
    CHECK(fake_hip_cooperative() == 1 && fake_hip_grid()[0] == 3);
    axes.FEATURE = SMALL_FEATURES_FEATURE_SCRATCH;
    OK(small_features(k, stream, axes, NULL, 3));
    CHECK(fake_hip_live() == 0);
}

int main(int argc, char **argv) {
    static const scenario all[] = {
        {"plain", plain}, {"another_architecture", another_architecture}, {"range32", range32},
        {"cooperative", cooperative},
        {"failures", failures}, {NULL, NULL},
    };
    return run_scenario(all, argc, argv);
}
