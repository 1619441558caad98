/* An open release: what generated launchers and the Python extension call. */
#ifndef PRECAST_RELEASE_H
#define PRECAST_RELEASE_H

#include "error.h"
#include "index.h"
#include "precast.h"

typedef struct precast_release precast_release;

#define PRECAST_GIVEN_BY_VALUE UINT32_MAX

/* One launch. NULL and zero mean "not given". */
typedef struct precast_call {
    uint32_t kernel;
    precast_stream stream;
    const int64_t *axes;        /* a payload for each axis of the kernel */
    uint32_t axes_given;        /* a bit for each; BY_VALUE: all but a payload of PRECAST_ANY */
    const uint64_t *slots;      /* one for each slot of the kernel */
    const uint8_t *types;       /* of the slots, as far as known, with PRECAST_READ_ONLY; NULL: unknown.
                                   Of numbers: what their value does not say, i1 and u64 */
    const uint64_t *sizes;      /* bytes from each pointer to the end of its buffer; 0 or NULL: unknown */
    const precast_grid *grid;   /* NULL: the spec's */
    int backend;                /* PRECAST_CUDA, PRECAST_HIP, PRECAST_HOST; 0: by stream and what is there */
    int device_given, device;   /* the driver's ordinal; else the current device */
    struct precast_chosen *chosen; /* `precast_choose`: what would be launched; nothing is */
} precast_call;

/* A loaded unit and its function, the driver's or an address in memory; the row of the selection table that chose it, or
 * NULL. */
typedef struct precast_chosen { uint32_t unit; void *function; const char *row; } precast_chosen;

/* `anchor` is an address in the library whose release NULL as folder means. `public_key` NULL: no signature asked. */
precast_status precast_open(const char *folder, const void *anchor, const unsigned char *interface,
                            const unsigned char *public_key, precast_release **release);
/* The same, and NULL is no key. */
precast_status precast_open_signed(const char *folder, const void *anchor, const unsigned char *interface,
                                   const unsigned char *public_key, precast_release **release);
/* The same, if it is what `policy` demands; NULL demands nothing. */
precast_status precast_open_with(const char *folder, const void *anchor, const unsigned char *interface,
                                 const precast_policy *policy, precast_release **release);
/* Whether an open release is what `policy` demands. */
precast_status precast_demand(precast_release *release, const precast_policy *policy);
/* A release of no kernels and no folder, whose threads run what comes from elsewhere; NULL: no memory. */
precast_release *precast_open_threads(void);
void precast_close(precast_release *release);

precast_status precast_launch(precast_release *release, const precast_call *call);
precast_status precast_launch_values(precast_release *release, uint32_t kernel, precast_stream stream,
                                     const int64_t *axes, const uint64_t *slots, const precast_grid *grid);
/* The unit that `precast_launch` would run, whatever the grid. */
precast_status precast_choose(precast_release *release, const precast_call *call, precast_chosen *chosen);

precast_status precast_preload(precast_release *release, precast_stream stream, const char *kernel);
precast_status precast_unload(precast_release *release);
size_t precast_query(precast_release *release, precast_unit *units, size_t capacity);
precast_status precast_selfcheck(precast_release *release);
precast_status precast_set_threads(precast_release *release, int count);
precast_status precast_set_allocator(precast_release *release, const precast_allocator *allocator);
precast_status precast_set_buffer_reader(precast_release *release, precast_buffer_reader reader, void *context);

/* What a rule is called, by its number from 1; NULL for 0. */
const char *precast_row_text(const precast_index *index, uint32_t rule);
const precast_index *precast_index_of(const precast_release *release);
const char *precast_folder(const precast_release *release);

#endif
