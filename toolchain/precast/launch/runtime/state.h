/* The inside of an open release, shared by the runtime's files. */
#ifndef PRECAST_STATE_H
#define PRECAST_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "driver.h"
#include "pool.h"
#include "release.h"

/* Units of one kernel with the same axis values that run on a device, best first: newer architecture, more hints. */
typedef struct precast_cell {
    uint64_t key[2], mask[2]; /* a byte for each axis: value number, and 255 where the unit has the axis */
    precast_span order;       /* in the device's `order` and `candidates` */
} precast_cell;

/* Slots next to each other that promise the same alignment. */
typedef struct precast_run {
    uint32_t first, count;
    uint64_t mask;
} precast_run;

#define PRECAST_HIDDEN 65535

/* One of the things that decide between the units of a cell: whether (slot & mask) == value, or that it is not. */
typedef struct precast_question {
    uint64_t mask;
    uint32_t value;
    uint16_t slot, negated;
} precast_question;

/* A parameter's slot, and its first byte in the buffer that the driver takes. */
typedef struct precast_move {
    uint16_t slot, place;
} precast_move;

/* How a launch knows that it means this unit again, and all that the driver must be told. `direct.start` is NULL where
 * launches of the unit need more than that. */
typedef struct precast_shortcut {
    precast_direct direct;
    uint64_t identity; /* of the context */
    void *function;
    uint32_t grid[3]; /* 0 where it is not the same for all launches */
    uint32_t threads, shared_bytes;
    uint8_t axis_count, question_count;
    uint8_t requires; /* the unit has requirements, which each launch must meet */
    uint16_t last_need;
    uint16_t move_count, hidden_at, parameter_bytes; /* the hidden ones come last and are zero */
    uint16_t sole_axes, typed_axes;    /* bits: of one value; told by the arguments' types */
    const precast_move *moves;         /* by place */
    const int64_t *axes;               /* payloads */
    const precast_question *questions; /* of the cell; answers are bits */
    const uint32_t *needs; /* of the cell's units up to this one, what must be answered yes: the first that fits counts */
    struct precast_device *device;
    uint32_t unit;
    int ordinal;
} precast_shortcut;

/* A loaded unit with all that each of its launches needs, worked out once. One block of memory. */
typedef struct precast_ready {
    precast_shortcut shortcut;
    uint32_t slot_count, parameter_count;
    uint32_t in_order; /* so many first parameters are the first slots */
    uint32_t run_count;
    const precast_run *runs;
    const uint16_t *slots; /* of each parameter; PRECAST_HIDDEN: of none */
    const uint8_t *types;  /* of each slot, as a call gives them; 0: a number's */
    void *function;
    precast_launch_shape shape;
    int64_t grid[3];        /* the spec's, where `constant_grid` */
    uint8_t constant_grid;
    uint8_t plain;  /* every parameter is a slot as it comes, or hidden scratch that is not used */
    uint8_t simple; /* `runs` hold all promises */
    uint8_t varied; /* the type of some number depends on the variant */
} precast_ready;

/* A unit of a cell with the hints that it asks of the arguments. */
typedef struct precast_candidate {
    uint32_t unit;
    precast_span tests; /* in the device's `tests` */
} precast_candidate;

typedef struct precast_table precast_table; /* table.h */

typedef struct precast_kernel_cells {
    uint32_t first, count; /* in the device's `cells` */
    uint32_t sole;         /* the kernel has no axes and runs here: there is nothing to choose */
} precast_kernel_cells;

/* One context of a driver, or the CPU. Its tables never change once it is in a release's list. What every launch reads
 * comes first and lies close together: the driver's own work leaves little in the nearest cache. */
typedef struct precast_device {
    struct precast_device *next;
    const precast_driver *driver; /* NULL: the CPU */
    uint64_t identity;
    _Atomic(precast_ready *) *ready; /* by unit; NULL until loaded */
    precast_kernel_cells *cells_of_kernel;
    precast_cell *cells;
    precast_candidate *candidates; /* of the cells, one after another */
    precast_hint_record *tests;
    precast_table **tables; /* by kernel; NULL where it has no rows here */
    uint32_t kernel_count;
    _Atomic uint32_t *rows; /* by unit: the rule that chose it last, from 1; 0: none */
    precast_device_facts facts;
    void *context;
    uint32_t *order; /* unit numbers, as in `candidates` */
    pthread_mutex_t loading;
    void **modules; /* by image; guarded by `loading` */
    precast_view *images; /* by image: what the driver may go on reading; guarded by `loading` */
} precast_device;

/* The caller's functions, as a launch finds them when it begins. */
typedef struct precast_callbacks {
    precast_allocator allocator;
    precast_buffer_reader reader;
    void *reader_context;
} precast_callbacks;

#define PRECAST_CALLBACK_WORDS (sizeof(precast_callbacks) / sizeof(uintptr_t))

struct precast_release {
    _Atomic(const precast_ready *) *usual; /* by kernel: the unit of its last launch, where that has a shortcut */
    _Atomic int automatic; /* the backend of calls that name none; 0: not decided yet */
    _Atomic(const precast_driver *) driver; /* of the last launch that had one */
    _Atomic(precast_device *) devices;
    precast_index index;
    char *folder;
    _Atomic int demanding; /* a signature was asked for: code that could be exchanged meanwhile does not run */
    unsigned backends; /* bit n: there are units of backend n */
    /* Taken in this order: `meeting`, a device's `loading`, `lock`; a fork takes all of them. */
    pthread_mutex_t meeting; /* `devices` while it grows */
    pthread_mutex_t lock;    /* `changes` and `callbacks` while they change */
    _Atomic unsigned changes; /* odd while `callbacks` changes */
    _Atomic uintptr_t callbacks[PRECAST_CALLBACK_WORDS];
    precast_pool *pool;
    struct precast_release *next_open; /* fork.c */
};

/* device.c */
precast_status precast_find_device(precast_release *release, const precast_driver *driver, precast_stream stream,
                                   precast_device **device);
/* The known device that is current; NULL where none is, or it was not met before. */
precast_device *precast_current_device(precast_release *release, const precast_driver *driver);
precast_status precast_load_unit(precast_release *release, precast_device *device, uint32_t unit,
                                 const precast_ready **ready);
int precast_runs_on(const precast_index *index, const precast_unit_record *unit, const precast_device *device);
void precast_free_devices(precast_release *release);

/* callbacks.c */
precast_callbacks precast_read_callbacks(const precast_release *release);

/* fork.c: a fork waits until nobody holds a lock of an open release, so that the child finds all of them free. */
void precast_list_open(precast_release *release);
void precast_unlist_open(precast_release *release);

/* launch.c: the driver that a call's stream and backend mean; NULL for the CPU. */
precast_status precast_choose_driver(precast_release *release, const precast_call *call, const precast_driver **driver);

/* ready.c */
precast_ready *precast_make_ready(const precast_index *index, precast_device *device, uint32_t unit, void *function);

/* All promises of a `simple` unit without a branch for each. */
static inline int precast_keeps(const precast_ready *ready, const uint64_t *slots) {
    uint64_t remains = 0;
    for (const precast_run *run = ready->runs, *end = run + ready->run_count; run < end; run++) {
        uint64_t all = 0;
        for (const uint64_t *slot = slots + run->first, *last = slot + run->count; slot < last; slot++)
            all |= *slot;
        remains |= all & run->mask;
    }
    return !remains;
}

/* Where a plain unit's parameters lie. */
static inline void precast_point(const precast_ready *ready, const uint64_t *slots, void **places) {
    static uint64_t nothing;
    const uint64_t *slot = slots;
    void **place = places, **end = places + (ready->in_order & ~3u);
    for (; place < end; place += 4, slot += 4) {
        place[0] = (void *)slot;
        place[1] = (void *)(slot + 1);
        place[2] = (void *)(slot + 2);
        place[3] = (void *)(slot + 3);
    }
    for (size_t i = (size_t)(place - places); i < ready->parameter_count; i++)
        places[i] = ready->slots[i] == PRECAST_HIDDEN ? &nothing : (void *)&slots[ready->slots[i]];
}

/* Whether the device does not take a grid of programs of `ctas` blocks each. */
static inline int precast_exceeds(const precast_device *device, uint32_t ctas, const int64_t grid[3]) {
    const int64_t *limits = device->facts.grid_limits;
    return grid[0] * ctas > limits[0] || grid[1] > limits[1] || grid[2] > limits[2];
}

/* shortcut.c */
enum { PRECAST_MOST_QUESTIONS = 32, PRECAST_MOST_DIRECT_BYTES = 1024, PRECAST_MOST_HIDDEN_BYTES = 16 };
/* The bytes that `precast_make_shortcut` fills after a unit's block. */
size_t precast_shortcut_bytes(const precast_index *index, const precast_device *device, uint32_t unit);
void precast_make_shortcut(const precast_index *index, precast_device *device, uint32_t unit, precast_ready *ready,
                           void *after);

static inline const precast_ready *precast_ready_unit(const precast_device *device, uint32_t unit) {
    return atomic_load_explicit(&device->ready[unit], memory_order_acquire);
}

/* image.c */
precast_status precast_load_image(precast_release *release, precast_device *device, uint32_t unit, void **module);
precast_status precast_unload_device(precast_release *release, precast_device *device);
precast_status precast_check_file(precast_release *release, uint32_t file);
precast_status precast_check_image(precast_release *release, uint32_t image, const char *unit);
precast_status precast_compare_digest(const unsigned char digest[32], const unsigned char expected[32],
                                      const char *what, const char *file);
/* A file of the index, of the size that it says; `path` is to be freed. Where it fails, there is neither. */
precast_status precast_open_listed(const precast_release *release, uint32_t file, char **path, precast_file *opened);

/* library.c */
precast_status precast_open_library(precast_release *release, uint32_t file, void **module);

/* candidates.c */
/* The cell of a unit and the unit's place in it; NULL where the device does not run it. */
const precast_cell *precast_find_cell(const precast_index *index, const precast_device *device, uint32_t unit,
                                      uint32_t *place);
/* Whether another unit is taken wherever this one fits, such as one for a newer architecture. */
int precast_is_superseded(const precast_index *index, const precast_device *device, uint32_t unit);
precast_status precast_list_candidates(const precast_index *index, precast_device *device);

/* select.c */
precast_status precast_select(const precast_release *release, const precast_device *device, const precast_call *call,
                              uint32_t *unit);

/* parameters.c */
#define PRECAST_MAXIMUM_PARAMETERS 1024

typedef struct precast_parameters {
    uint32_t count;
    uint64_t values[PRECAST_MAXIMUM_PARAMETERS];
    void *places[PRECAST_MAXIMUM_PARAMETERS]; /* for a driver: where each parameter lies */
    uint32_t buffers[16], global_scratch, profile_scratch; /* which parameter, from 1; 0: none */
    precast_tensor_map maps[PRECAST_MAXIMUM_DESCRIPTORS];
} precast_parameters;

precast_status precast_pack(const precast_release *release, const precast_device *device, uint32_t unit,
                            const precast_call *call, precast_parameters *parameters);

/* gpu.c, cpu.c */
precast_status precast_find_entry(void *module, const char *symbol, const char *unit, void **function);
precast_status precast_launch_gpu(precast_release *release, precast_device *device, uint32_t unit,
                                  const precast_ready *ready, const precast_call *call, const int64_t grid[3]);
precast_status precast_launch_cpu(precast_release *release, precast_device *device, uint32_t unit,
                                  const precast_ready *ready, const precast_call *call, const int64_t grid[3]);

/* cpuid.c: 1 to 4 for x86-64 to x86-64-v4, 5 with VNNI, 6 with BF16 too, 7 with AMX too, for which the process asks the
 * system; this for aarch64, 0 on any other machine. */
enum { PRECAST_AARCH64 = 8 };
int precast_cpu_level(void);
/* The processor's name as it says it itself, spaces as in one sentence; empty where it says none. */
void precast_cpu_name(char *name, size_t capacity);

/* manifest.c: whether manifest.json is there, whole, and names this index; of one that was read, and as a yes or no. */
precast_status precast_check_manifest(const char *folder, const precast_index *index);
precast_status precast_read_manifest(const char *folder, precast_view *manifest);
precast_status precast_check_whole(const char *folder, const precast_index *index, const precast_view *manifest);
int precast_manifest_names(const precast_view *manifest, const precast_index *index);
/* The text of a member of the manifest itself; 0 where it has none that is plain. */
int precast_manifest_text(const precast_view *manifest, const char *member, char *text, size_t capacity);

/* signature.c: whether one of `count` keys of 32 bytes signed the manifest; digits as bytes, 0 where one is none. */
precast_status precast_verify_manifest(const char *folder, const precast_view *manifest, const unsigned char *keys,
                                       size_t count);
int precast_parse_hex(const unsigned char *text, size_t bytes, unsigned char *data);

/* version.c: whether a text is `1.4.2`; whether a version is this one or a later one. */
int precast_is_minimum(const char *text);
int precast_is_at_least(const char *version, const char *minimum);

/* policy.c: whether the release is what is demanded, and names the index. */
int precast_demands_signature(const precast_policy *policy);
precast_status precast_check_policy(const char *folder, const precast_index *index, const precast_policy *policy);
precast_status precast_check_signature(const char *folder, const precast_index *index, const unsigned char key[32]);

#endif
