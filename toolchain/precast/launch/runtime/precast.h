/* Precast's launch interface: the types that every generated header shares. C99 and C++17.
 *
 * The functions stand in the generated header of a library, prefixed with its name. All of them may be called from
 * any thread; none exits, prints or writes a file. A function that returns a status other than PRECAST_OK leaves a
 * sentence for the calling thread, which `<name>_error()` gives. */
#ifndef PRECAST_H
#define PRECAST_H

#include <stddef.h>
#include <stdint.h>
#ifndef __cplusplus
#include <stdbool.h>
#endif

#define PRECAST_SCHEMA 2
#define PRECAST_LAUNCH_ABI 1

#if defined(__GNUC__) || defined(__clang__)
#define PRECAST_PUBLIC __attribute__((visibility("default")))
#else
#define PRECAST_PUBLIC
#endif

typedef enum precast_status {
    PRECAST_OK = 0,
    PRECAST_NO_RELEASE = 1,     /* the folder is not there, or is not a release */
    PRECAST_MISMATCH = 2,       /* library, manifest, index and packs are not of one schema, launch ABI, interface or
                                   release */
    PRECAST_DAMAGED = 3,        /* bytes do not match their digest */
    PRECAST_UNTRUSTED = 4,      /* a signature, name or version that was demanded is absent, wrong or not checkable */
    PRECAST_NO_DEVICE = 5,      /* no driver, one that does not start, or no device */
    PRECAST_NO_UNIT = 6,        /* no unit fits what was asked */
    PRECAST_BAD_ARGUMENT = 7,   /* an argument breaks a promise of the spec, or has the wrong type */
    PRECAST_BAD_GRID = 8,       /* the grid overflows, is negative, exceeds the device's limits or is not given */
    PRECAST_OUT_OF_MEMORY = 9,
    PRECAST_DRIVER_FAILED = 10, /* the driver's own error, named in the sentence */
    PRECAST_KERNEL_FAILED = 11, /* a device assertion failed (CPU) */
    PRECAST_SYSTEM_FAILED = 12, /* the operating system refused a thread, a mapping or a file */
    PRECAST_UNMET = 13          /* the arguments do not meet what the spec requires */
} precast_status;

/* A status as it is written here. */
static inline const char *precast_status_name(precast_status status) {
    switch (status) {
    case PRECAST_OK: return "PRECAST_OK";
    case PRECAST_NO_RELEASE: return "PRECAST_NO_RELEASE";
    case PRECAST_MISMATCH: return "PRECAST_MISMATCH";
    case PRECAST_DAMAGED: return "PRECAST_DAMAGED";
    case PRECAST_UNTRUSTED: return "PRECAST_UNTRUSTED";
    case PRECAST_NO_DEVICE: return "PRECAST_NO_DEVICE";
    case PRECAST_NO_UNIT: return "PRECAST_NO_UNIT";
    case PRECAST_BAD_ARGUMENT: return "PRECAST_BAD_ARGUMENT";
    case PRECAST_BAD_GRID: return "PRECAST_BAD_GRID";
    case PRECAST_OUT_OF_MEMORY: return "PRECAST_OUT_OF_MEMORY";
    case PRECAST_DRIVER_FAILED: return "PRECAST_DRIVER_FAILED";
    case PRECAST_KERNEL_FAILED: return "PRECAST_KERNEL_FAILED";
    case PRECAST_SYSTEM_FAILED: return "PRECAST_SYSTEM_FAILED";
    case PRECAST_UNMET: return "PRECAST_UNMET";
    }
    return "no status of precast.h";
}

/* Element types: values of dtype axes. */
typedef enum precast_type {
    PRECAST_I1 = 1, PRECAST_I8, PRECAST_I16, PRECAST_I32, PRECAST_I64,
    PRECAST_U1, PRECAST_U8, PRECAST_U16, PRECAST_U32, PRECAST_U64,
    PRECAST_FP16, PRECAST_BF16, PRECAST_FP32, PRECAST_FP64,
    PRECAST_FP8E4NV, PRECAST_FP8E5, PRECAST_FP8E4B8, PRECAST_FP8E5B16, PRECAST_FP8E4B15
} precast_type;

/* In a field of an axes struct whose axis is a number or a truth value: the call does not say it. */
#define PRECAST_ANY INT64_MIN

/* A CUstream, cudaStream_t or hipStream_t of the calling thread's current device; NULL is the default stream. Where
 * the release has units for several kinds of device, the first that the machine has is used: CUDA, HIP, and with NULL
 * alone the CPU. A driver that is there and does not start is PRECAST_NO_DEVICE, and the next call tries it again. */
typedef void *precast_stream;

/* In place of a stream: run on the CPU. */
#define PRECAST_CPU ((precast_stream)(intptr_t)-1)

/* Programs along each dimension; a grid with a zero in it launches nothing. */
typedef struct precast_grid {
    int64_t x, y, z;
} precast_grid;

/* A tensor for a kernel that takes a host tensor descriptor. Shape and strides in elements, outermost first; the
 * last stride is 1. */
typedef struct precast_tensor {
    void *base;
    int64_t shape[5];
    int64_t strides[5];
    int32_t rank;
    uint8_t pad_with_nan;  /* elements outside the tensor read as NaN, not as zero */
    uint8_t round_to_tf32; /* fp32 elements are rounded to tf32 when they are loaded */
    uint8_t reserved[2];
} precast_tensor;

/* Device memory for a launch's scratch. `device` is the driver's ordinal. `release` is called after the launch was
 * queued on `stream`, so it must free in stream order. A launch that runs while the allocator is changed ends with the
 * one that it began with, which must last so long. */
typedef struct precast_allocator {
    void *(*allocate)(void *context, size_t bytes, size_t alignment, precast_stream stream, int device);
    void (*release)(void *context, void *memory, precast_stream stream, int device);
    void *context;
} precast_allocator;

/* Gets a pass's device buffer after each launch of a unit that has one: `programs` times `bytes_per_program`. */
typedef void (*precast_buffer_reader)(void *context, const char *unit, const char *pass_name, const void *data,
                                      size_t bytes_per_program, int64_t programs);

/* What a release must be to be opened. What is left zero is not asked for; with a key or a key ring, one of the keys must
 * have signed the release. */
typedef struct precast_policy {
    const unsigned char *keys;   /* ed25519 public keys of 32 bytes, one after another */
    size_t key_count;
    const char *key_ring;        /* a file with a key of 64 hexadecimal digits in each line; `# …` is passed over */
    const char *name;            /* the project's */
    const char *minimum_version; /* of the project, as in "1.4.2": an older release is refused, signed or not */
} precast_policy;

/* One unit of a release. Sizes in bytes; -1 where not known. Text lives as long as the release is open. */
typedef struct precast_unit {
    const char *unit;   /* softmax:dtype=fp16,BLOCK=1024@cuda:90 */
    const char *kernel;
    const char *target;
    int32_t fits;       /* 1 when the current device runs it */
    int32_t loaded;     /* 1 when its image is loaded on the current device */
    int32_t warps, ctas;
    int64_t image_bytes, shared_bytes;
    int32_t registers, spill_bytes;
    const char *row;    /* of the selection table, that chose it when it was chosen last here; NULL: none did */
} precast_unit;

#endif
