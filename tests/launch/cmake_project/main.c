/* The calls of the README: open the release beside the library, launch with and without a grid. */
#include <stdio.h>

#include "small.h"

static float x[64] __attribute__((aligned(16))), out[64] __attribute__((aligned(16)));

int main(void) {
    small *k;
    int n = 64;
    if (small_open(NULL, &k)) return fputs(small_error(), stderr), 1;
    for (int i = 0; i < n; i++) x[i] = (float)i;
    precast_status s = small_scale(k, PRECAST_CPU, (small_scale_axes){ .dtype = PRECAST_FP32, .BLOCK = 64 }, out, x, 2.0f, n);
    if (s) return fputs(small_error(), stderr), 1;
    s = small_scale_grid(k, PRECAST_CPU, (small_scale_axes){ .dtype = PRECAST_FP32, .BLOCK = 64 },
                         (precast_grid){ 1, 1, 1 }, out, out, 2.0f, n);
    if (s) return fputs(small_error(), stderr), 1;
    printf("%g\n", out[63]);
    small_close(k);
    return 0;
}
