// The same from C++17.
#include <cstdio>
#include <vector>

#include "small.h"

int main() {
    alignas(16) static float x[64], out[64];
    small *k = nullptr;
    if (small_open(nullptr, &k) != PRECAST_OK) return std::fputs(small_error(), stderr), 1;
    for (int i = 0; i < 64; i++) x[i] = static_cast<float>(i);
    small_scale_axes axes{};
    axes.dtype = PRECAST_FP32;
    axes.BLOCK = 64;
    if (small_scale(k, PRECAST_CPU, axes, out, x, 4.0f, 64)) return std::fputs(small_error(), stderr), 1;
    std::printf("%g\n", out[63]);
    std::vector<precast_unit> units(small_query(k, nullptr, 0));
    small_query(k, units.data(), units.size());
    small_close(k);
}
