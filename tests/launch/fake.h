/* What tests ask of the drivers for tests. Function names are the driver's own. */
#ifndef FAKE_H
#define FAKE_H

#include <stddef.h>

typedef struct fake_attribute { int id, padding, value[16]; } fake_attribute;

typedef struct fake_config {
    unsigned grid[3], block[3], shared_bytes;
    void *stream;
    fake_attribute *attributes;
    unsigned attribute_count;
} fake_config;

typedef struct fake_launch {
    char symbol[256];
    unsigned grid[3], threads, shared_bytes;
    void *stream;
    int device, parameter_count, offsets[128], map_misaligned;
    unsigned char bytes[4096]; /* the parameters one after another, each from its offset */
    int attribute_count;
    fake_attribute attributes[4];
} fake_launch;

void fake_devices(int count, const int *arch); /* HIP takes the count alone */
void fake_fail(const char *function, int code, int after); /* the call after `after` others fails once */
void fake_slow_loads(int milliseconds);
void fake_shared_limit(int bytes);
void fake_cooperative(int can);
void fake_forget(void);
int fake_current_device(void); /* the calling thread's; -1: none */
int fake_count(const char *function);
int fake_live_allocations(void);
int fake_live_modules(void);
int fake_launch_count(void);
const fake_launch *fake_last_launch(void); /* of the calling thread */

void fake_reset_context(int device); /* CUDA: as if destroyed and made again at the same address */
void fake_hip_arch(const char *name);
void fake_hip_allocation(size_t bytes); /* what any address lies at the start of */

#endif
