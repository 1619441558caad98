/* What the runtime needs of a GPU driver, the same for CUDA and HIP. Each function gives 0 or the driver's code. */
#ifndef PRECAST_DRIVER_H
#define PRECAST_DRIVER_H

#include "index.h"
#include "precast.h"

#define PRECAST_MAXIMUM_GRID ((int64_t)1 << 31)

/* A device as the driver describes it. */
typedef struct precast_device_facts {
    int ordinal;
    int arch;      /* CUDA: 90; HIP: 0 */
    int64_t grid_limits[3];
    uint32_t shared_limit; /* bytes of dynamic shared memory that a block can have */
    int cooperative;
    char name[64]; /* cuda:90, hip:gfx942 */
    char product[96]; /* as the driver calls it: NVIDIA H200; empty where it does not say */
} precast_device_facts;

/* What is the same in every launch of a unit. */
typedef struct precast_launch_shape {
    uint32_t threads;
    uint32_t ctas;
    uint32_t shared_bytes;
    uint16_t flags; /* PRECAST_COOPERATIVE, PRECAST_PDL */
} precast_launch_shape;

/* A host tensor descriptor for a device that has TMA: what the unit says and what the caller passed. */
typedef struct precast_tensor_map {
    _Alignas(64) unsigned char bytes[128];
} precast_tensor_map;

/* The driver's own functions for launches that need nothing in between; NULL where it has none that fit. */
typedef struct precast_direct {
    int (*identify)(void *context, unsigned long long *identity); /* as `current`, for NULL */
    int (*locate)(void *function, size_t parameter, size_t *offset, size_t *bytes); /* in the buffer of `extra` */
    int (*start)(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                 unsigned block_z, unsigned shared_bytes, void *stream, void **parameters, void **extra);
} precast_direct;

/* `extra`, which holds all parameters in one buffer: key and value in turn, and NULL. */
#define PRECAST_EXTRA_BUFFER ((void *)1)
#define PRECAST_EXTRA_BYTES ((void *)2)

/* What was current before a device was gone to. */
typedef struct precast_visit {
    void *before; /* NULL: nothing */
    int moved;    /* 0: it was the device already */
} precast_visit;

typedef struct precast_driver {
    uint8_t backend;
    const char *name;
    int out_of_memory; /* the driver's code for it */

    /* A number for the calling thread's context that is never used for another one; 0 when there is none. */
    int (*current)(uint64_t *identity);
    /* Makes a context current where there is none: the stream's, or device 0's. */
    int (*enter)(void *stream);
    /* Makes `ordinal` current, and undoes it. */
    int (*push)(int ordinal, precast_visit *visit);
    int (*pop)(const precast_visit *visit);
    int (*describe)(precast_device_facts *facts);

    int (*load)(const void *image, void **module);
    int (*unload)(uint64_t identity, void *context, void *module);
    int (*context)(void **context); /* the current context, for `unload` */
    int (*find)(void *module, const char *symbol, void **function);
    int (*prepare)(void *function, const precast_unit_record *unit);
    int (*launch)(void *function, const precast_launch_shape *shape, const int64_t grid[3], void *stream,
                  void **parameters);
    precast_direct (*direct)(void); /* NULL: every launch goes through `launch` */

    int (*allocate)(void **memory, size_t bytes, void *stream);
    int (*release)(void *memory, void *stream);
    int (*clear)(void *memory, size_t bytes, void *stream);
    int (*read)(void *to, const void *memory, size_t bytes, void *stream); /* waits for the stream */
    int (*extent)(const void *memory, uint64_t *bytes_after); /* from `memory` to the end of its allocation */
    int (*encode)(precast_tensor_map *map, const precast_descriptor_record *descriptor, const precast_tensor *tensor);

    const char *(*describe_error)(int code);
} precast_driver;

/* A driver as a call finds it. */
typedef struct precast_found {
    const precast_driver *driver; /* NULL, with an error kept: it cannot be used */
    int absent; /* and that is because the machine has no driver or no device of the kind */
} precast_found;

/* The driver, loaded at the first call and started; a start that fails is tried again by the next call. */
precast_found precast_cuda(void);
precast_found precast_hip(void);

/* Keeps "CUDA: out of memory (2) while <doing>" and gives the status that goes with the code. */
precast_status precast_driver_failed(const precast_driver *driver, int code, const char *doing, const char *what);

#endif
