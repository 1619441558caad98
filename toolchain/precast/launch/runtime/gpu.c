/* A launch on a GPU: parameters, scratch, the driver's call, and the buffers of passes read back. */
#include <stdlib.h>

#include "state.h"

enum { MOST_ALLOCATIONS = 18, DRIVER_ALIGNMENT = 256 };

/* Device memory that lives for one launch. */
typedef struct allocations {
    const precast_index *index;
    precast_device *device;
    precast_callbacks callbacks; /* one set for the whole launch: what one allocator gave goes back to it */
    precast_stream stream;
    uint32_t count;
    void *memory[MOST_ALLOCATIONS];
} allocations;

precast_status precast_driver_failed(const precast_driver *driver, int code, const char *doing, const char *what) {
    precast_status status = code == driver->out_of_memory ? PRECAST_OUT_OF_MEMORY : PRECAST_DRIVER_FAILED;
    return precast_fail(status, "%s: %s (%d) while %s%s%s", driver->name, driver->describe_error(code), code, doing,
                        what ? " " : "", what ? what : "");
}

static precast_status allocate(allocations *held, uint64_t bytes, uint32_t alignment, const char *what, void **memory) {
    const precast_allocator *allocator = &held->callbacks.allocator;
    const precast_driver *driver = held->device->driver;
    int code = 0;
    if (allocator->allocate) {
        *memory = allocator->allocate(allocator->context, bytes, alignment, held->stream, held->device->facts.ordinal);
        if (!*memory)
            return precast_fail(PRECAST_OUT_OF_MEMORY, "the allocator gave no memory for %llu bytes of %s",
                                (unsigned long long)bytes, what);
    } else {
        if (alignment > DRIVER_ALIGNMENT)
            return precast_fail(PRECAST_BAD_ARGUMENT, "%s needs alignment %u: set an allocator", what, alignment);
        code = driver->allocate(memory, bytes, held->stream);
    }
    if (code)
        return precast_driver_failed(driver, code, "allocating", what);
    held->memory[held->count++] = *memory;
    return PRECAST_OK;
}

/* Gives everything back in stream order; the first failure is told when nothing else is. */
static precast_status give_back(allocations *held, precast_status status) {
    const precast_allocator *allocator = &held->callbacks.allocator;
    for (uint32_t i = 0; i < held->count; i++) {
        if (allocator->allocate) {
            if (allocator->release)
                allocator->release(allocator->context, held->memory[i], held->stream, held->device->facts.ordinal);
            continue;
        }
        int code = held->device->driver->release(held->memory[i], held->stream);
        if (code && status == PRECAST_OK)
            status = precast_driver_failed(held->device->driver, code, "giving scratch back", NULL);
    }
    return status;
}

/* Scratch for one hidden parameter; `place` counts from 1, 0 is none. */
static precast_status provide(allocations *held, precast_parameters *parameters, uint32_t place, uint64_t each,
                              uint64_t programs, uint32_t alignment, int zeroed, const char *what) {
    void *memory = NULL;
    uint64_t bytes;
    if (!place || !each)
        return PRECAST_OK;
    if (__builtin_mul_overflow(each, programs, &bytes) || bytes > SIZE_MAX / 2)
        return precast_fail(PRECAST_OUT_OF_MEMORY, "%s of this grid does not fit in memory", what);
    precast_status status = allocate(held, bytes, alignment, what, &memory);
    if (status != PRECAST_OK)
        return status;
    parameters->values[place - 1] = (uint64_t)(uintptr_t)memory;
    int code = zeroed ? held->device->driver->clear(memory, bytes, held->stream) : 0;
    return code ? precast_driver_failed(held->device->driver, code, "clearing", what) : PRECAST_OK;
}

static precast_status provide_all(allocations *held, const precast_unit_record *unit, precast_parameters *parameters,
                                  uint64_t programs) {
    const precast_index *index = held->index;
    /* On CUDA a program of a cluster has one part for each of its blocks. */
    uint64_t parts = programs;
    if (held->device->driver->backend == PRECAST_CUDA && __builtin_mul_overflow(programs, unit->ctas, &parts))
        parts = UINT64_MAX;
    precast_status status = provide(held, parameters, parameters->global_scratch, unit->global_scratch_bytes, parts,
                                    unit->global_scratch_align, 0, "global scratch");
    if (status == PRECAST_OK)
        status = provide(held, parameters, parameters->profile_scratch, unit->profile_scratch_bytes, parts,
                         unit->profile_scratch_align, 1, "profile scratch");
    for (uint32_t i = 0; i < unit->buffers.count && status == PRECAST_OK; i++)
        status = provide(held, parameters, parameters->buffers[i],
                         index->buffers[unit->buffers.first + i].bytes_per_program, programs, DRIVER_ALIGNMENT, 1,
                         "a pass's buffer");
    return status;
}

static precast_status read_buffers(const allocations *held, const precast_unit_record *unit,
                                   const precast_parameters *parameters, uint64_t programs) {
    const precast_driver *driver = held->device->driver;
    for (uint32_t i = 0; i < unit->buffers.count; i++) {
        const precast_buffer_record *buffer = &held->index->buffers[unit->buffers.first + i];
        if (!buffer->bytes_per_program)
            continue;
        void *copy = malloc(buffer->bytes_per_program * programs);
        if (!copy)
            return precast_fail(PRECAST_OUT_OF_MEMORY, "there is no memory to read a pass's buffer into");
        const void *memory = (const void *)(uintptr_t)parameters->values[parameters->buffers[i] - 1];
        int code = driver->read(copy, memory, buffer->bytes_per_program * programs, held->stream);
        if (!code)
            held->callbacks.reader(held->callbacks.reader_context, precast_text(held->index, unit->text),
                                   precast_text(held->index, buffer->pass_name), copy, buffer->bytes_per_program,
                                   (int64_t)programs);
        free(copy);
        if (code)
            return precast_driver_failed(driver, code, "reading a pass's buffer", NULL);
    }
    return PRECAST_OK;
}

static precast_status explain_grid(const precast_device *device, const precast_unit_record *unit, const char *text,
                                   const int64_t grid[3]) {
    static const char names[] = "xyz";
    for (int i = 0; i < 3; i++) {
        int64_t blocks = i ? grid[i] : grid[i] * unit->ctas;
        if (blocks > device->facts.grid_limits[i])
            return precast_fail(PRECAST_BAD_GRID, "the grid of %s is %lld along %c, %s allows %lld", text,
                                (long long)grid[i], names[i], device->facts.name,
                                (long long)(device->facts.grid_limits[i] / (i ? 1 : unit->ctas ? unit->ctas : 1)));
    }
    return PRECAST_OK;
}

static precast_status launch(const precast_index *index, const precast_device *device, uint32_t unit,
                             const precast_ready *ready, const int64_t grid[3], precast_stream stream, void **places) {
    int code = device->driver->launch(ready->function, &ready->shape, grid, stream, places);
    return code ? precast_driver_failed(device->driver, code, "launching", precast_text(index, index->units[unit].text))
                : PRECAST_OK;
}

/* With numbers to narrow, descriptors to make or memory to provide. Its large frame is kept off the plain way. */
static __attribute__((noinline)) precast_status launch_with_memory(precast_release *release, precast_device *device,
                                                                   uint32_t unit, const precast_ready *ready,
                                                                   const precast_call *call, const int64_t grid[3]) {
    const precast_unit_record *record = &release->index.units[unit];
    uint64_t programs = (uint64_t)grid[0] * (uint64_t)grid[1] * (uint64_t)grid[2];
    allocations held = {.index = &release->index, .device = device, .callbacks = precast_read_callbacks(release),
                        .stream = call->stream, .count = 0};
    precast_parameters parameters;
    precast_status status = precast_pack(release, device, unit, call, &parameters);
    if (status == PRECAST_OK)
        status = provide_all(&held, record, &parameters, programs);
    if (status == PRECAST_OK)
        status = launch(&release->index, device, unit, ready, grid, call->stream, parameters.places);
    if (status == PRECAST_OK && held.callbacks.reader && record->buffers.count)
        status = read_buffers(&held, record, &parameters, programs);
    return held.count ? give_back(&held, status) : status;
}

precast_status precast_launch_gpu(precast_release *release, precast_device *device, uint32_t unit,
                                  const precast_ready *ready, const precast_call *call, const int64_t grid[3]) {
    void *places[PRECAST_MAXIMUM_PARAMETERS];
    if (precast_exceeds(device, ready->shape.ctas, grid))
        return explain_grid(device, &release->index.units[unit],
                            precast_text(&release->index, release->index.units[unit].text), grid);
    if (!ready->plain)
        return launch_with_memory(release, device, unit, ready, call, grid);
    precast_point(ready, call->slots, places);
    return launch(&release->index, device, unit, ready, grid, call->stream, places);
}
