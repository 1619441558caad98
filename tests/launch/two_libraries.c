/* Two releases of different launch ABI in one process, opened by path; and each refuses the other's folder. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "small.h"

typedef struct calls {
    precast_status (*open)(const char *, void **);
    void (*close)(void *);
    const char *(*error)(void);
    precast_status (*scale)(void *, precast_stream, small_scale_axes, void *, void *, float, int32_t);
} calls;

static int load(const char *folder, const char *name, calls *into) {
    char path[4096], symbol[64];
    snprintf(path, sizeof path, "%s/lib/lib%s.so", folder, name);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const char *const names[] = {"open", "close", "error", "scale"};
    void **places[] = {(void **)&into->open, (void **)&into->close, (void **)&into->error, (void **)&into->scale};
    for (int i = 0; i < 4 && library; i++) {
        snprintf(symbol, sizeof symbol, "%s_%s", name, names[i]);
        if (!(*places[i] = dlsym(library, symbol)))
            return 0;
    }
    return library != NULL;
}

int main(int argc, char **argv) {
    static _Alignas(16) float x[64], out[64];
    calls first, second;
    void *one, *two, *none;
    small_scale_axes axes = {.dtype = PRECAST_FP32, .BLOCK = 64};
    if (argc != 3 || !load(argv[1], "small", &first) || !load(argv[2], "other", &second))
        return 2;
    if (first.open(NULL, &one) || second.open(NULL, &two))
        return 3;
    x[5] = 5;
    if (first.scale(one, PRECAST_CPU, axes, out, x, 2, 64) || second.scale(two, PRECAST_CPU, axes, x, out, 3, 64))
        return 4;
    printf("%g %g\n", out[5], x[5]);
    printf("%d ", first.open(argv[2], &none));
    puts(first.error() + strlen(argv[2]));
    printf("%d ", second.open(argv[1], &none));
    puts(second.error() + strlen(argv[1]));
    first.close(one);
    second.close(two);
    return 0;
}
