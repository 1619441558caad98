/* Runs kernels of a release from C: runner cpu|cuda FOLDER...
 *
 * Each folder is one problem: the file `call` has a line for each scalar and for the kernel's name; every other file is
 * an array, which the kernel reads and writes. Generated `calls.h` holds `call`, one typed call per kernel. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels.h"

#define MAXIMUM_ARRAYS 64

typedef struct {
    void *host;
    size_t bytes;
    unsigned long long device; /* 0 on the CPU */
} mapping;

static const char *folder;
static char scalars[1 << 16];
static mapping arrays[MAXIMUM_ARRAYS];
static int array_count;
static precast_tensor tensors[MAXIMUM_ARRAYS];
static int on_gpu;

static struct {
    int (*init)(unsigned), (*get)(int *, int), (*retain)(void **, int), (*set)(void *), (*synchronize)(void);
    int (*allocate)(unsigned long long *, size_t), (*release)(unsigned long long);
    int (*upload)(unsigned long long, const void *, size_t), (*download)(void *, unsigned long long, size_t);
} driver;

static void fail(const char *what, const char *why) {
    fprintf(stderr, "%s: %s: %s\n", folder ? folder : "runner", what, why);
    exit(1);
}

static void check(int result, const char *what) {
    if (result)
        fail(what, "the driver refused");
}

static void open_driver(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *context;
    int device;
    if (!library)
        fail("driver", dlerror());
    const struct { void *place; const char *name; } wanted[] = {
        {&driver.init, "cuInit"}, {&driver.get, "cuDeviceGet"}, {&driver.retain, "cuDevicePrimaryCtxRetain"},
        {&driver.set, "cuCtxSetCurrent"}, {&driver.synchronize, "cuCtxSynchronize"},
        {&driver.allocate, "cuMemAlloc_v2"}, {&driver.release, "cuMemFree_v2"},
        {&driver.upload, "cuMemcpyHtoD_v2"}, {&driver.download, "cuMemcpyDtoH_v2"},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        void *found = dlsym(library, wanted[i].name);
        if (!found)
            fail(wanted[i].name, "not in the driver");
        memcpy(wanted[i].place, &found, sizeof found);
    }
    check(driver.init(0), "cuInit");
    check(driver.get(&device, 0), "cuDeviceGet");
    check(driver.retain(&context, device), "cuDevicePrimaryCtxRetain");
    check(driver.set(context), "cuCtxSetCurrent");
}

/* The text after `name` in the file `call`. */
static const char *scalar(const char *name) {
    size_t length = strlen(name);
    for (const char *line = scalars; *line; line = strchr(line, '\n') + 1)
        if (!strncmp(line, name, length) && line[length] == ' ')
            return line + length + 1;
    fail(name, "not in the file `call`");
    return "";
}

static int64_t integer(const char *name) {
    const char *text = scalar(name);
    return *text == '-' ? strtoll(text, NULL, 10) : (int64_t)strtoull(text, NULL, 10);
}

static double number(const char *name) {
    return strtod(scalar(name), NULL);
}

static int is_kernel(const char *name) {
    const char *text = scalar("kernel");
    return !strncmp(text, name, strlen(name)) && text[strlen(name)] == '\n';
}

static int open_file(const char *name, size_t *bytes) {
    char path[4096];
    struct stat state;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int file = open(path, O_RDWR);
    if (file >= 0 && !fstat(file, &state))
        *bytes = (size_t)state.st_size;
    return file;
}

/* The array `name`, on the device if there is one; NULL when the problem has none. */
static void *array(const char *name) {
    mapping *next = &arrays[array_count];
    int file = open_file(name, &next->bytes);
    if (file < 0)
        return NULL;
    next->host = mmap(NULL, next->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (next->host == MAP_FAILED || array_count == MAXIMUM_ARRAYS - 1)
        fail(name, "cannot be mapped");
    next->device = 0;
    array_count++;
    if (!on_gpu)
        return next->host;
    check(driver.allocate(&next->device, next->bytes), "cuMemAlloc");
    check(driver.upload(next->device, next->host, next->bytes), "cuMemcpyHtoD");
    return (void *)(uintptr_t)next->device;
}

/* The array `name` as what a kernel with a host tensor descriptor takes. */
static const precast_tensor *tensor(const char *name) {
    char key[256];
    precast_tensor *made = &tensors[array_count];
    memset(made, 0, sizeof *made);
    made->base = array(name);
    snprintf(key, sizeof key, "%s.rank", name);
    made->rank = (int32_t)integer(key);
    for (int i = 0; i < made->rank; i++) {
        snprintf(key, sizeof key, "%s.shape%d", name, i);
        made->shape[i] = integer(key);
        snprintf(key, sizeof key, "%s.stride%d", name, i);
        made->strides[i] = integer(key);
    }
    return made;
}

#include "calls.h"

static void read_scalars(void) {
    size_t bytes = 0;
    int file = open_file("call", &bytes);
    if (file < 0 || bytes >= sizeof scalars || read(file, scalars, bytes) != (ssize_t)bytes)
        fail("call", "cannot be read");
    scalars[bytes] = 0;
    close(file);
}

static void give_back(void) {
    for (; array_count > 0; array_count--) {
        mapping *each = &arrays[array_count - 1];
        if (each->device) {
            check(driver.download(each->host, each->device, each->bytes), "cuMemcpyDtoH");
            check(driver.release(each->device), "cuMemFree");
        }
        munmap(each->host, each->bytes);
    }
}

int main(int count, char **words) {
    kernels *release;
    on_gpu = count > 1 && !strcmp(words[1], "cuda");
    if (on_gpu)
        open_driver();
    if (kernels_open(NULL, &release))
        fail("open", kernels_error());
    for (int i = 2; i < count; i++) {
        folder = words[i];
        read_scalars();
        if (call(release, on_gpu ? NULL : PRECAST_CPU))
            fail("launch", kernels_error());
        if (on_gpu)
            check(driver.synchronize(), "cuCtxSynchronize");
        give_back();
    }
    kernels_close(release);
    return 0;
}
