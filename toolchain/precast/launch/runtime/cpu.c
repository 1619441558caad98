/* A launch on the CPU: the same parameters as 8-byte values, and the grid on the release's threads. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "state.h"

precast_status precast_find_entry(void *module, const char *symbol, const char *unit, void **function) {
    *function = dlsym(module, symbol);
    return *function ? PRECAST_OK
                     : precast_fail(PRECAST_MISMATCH, "the CPU units have no symbol %s, which index.bin names for %s",
                                    symbol, unit);
}

static precast_status run(precast_release *release, const precast_unit_record *unit, void *function,
                          const precast_parameters *parameters, const int64_t grid[3]) {
    const char *text = precast_text(&release->index, unit->text);
    int32_t size[3] = {(int32_t)grid[0], (int32_t)grid[1], (int32_t)grid[2]};
    precast_entry entry;
    memcpy(&entry, &function, sizeof entry);
    precast_complaint complaint;
    int failed =
        precast_run_programs(release->pool, entry, parameters->values, size, unit->thread_scratch_bytes, &complaint);
    if (failed < 0)
        return precast_fail(PRECAST_OUT_OF_MEMORY, "there is no memory for %u bytes of scratch of %s",
                            unit->thread_scratch_bytes, text);
    if (!failed)
        return PRECAST_OK;
    if (!complaint.words)
        return precast_fail(PRECAST_KERNEL_FAILED, "a device assertion failed in %s", text);
    return precast_fail(PRECAST_KERNEL_FAILED, "a device assertion failed in %s: %s, in program (%u, %u, %u)", text,
                        complaint.words, complaint.program[0], complaint.program[1], complaint.program[2]);
}

/* Passes' buffers are plain memory here. */
static precast_status provide_buffers(precast_release *release, const precast_unit_record *unit, size_t programs,
                                      precast_parameters *parameters, void *memory[16]) {
    for (uint32_t i = 0; i < unit->buffers.count; i++) {
        uint32_t bytes = release->index.buffers[unit->buffers.first + i].bytes_per_program;
        memory[i] = calloc(programs, bytes ? bytes : 1);
        if (!memory[i])
            return precast_fail(PRECAST_OUT_OF_MEMORY, "there is no memory for a pass's buffer");
        parameters->values[parameters->buffers[i] - 1] = (uint64_t)(uintptr_t)memory[i];
    }
    return PRECAST_OK;
}

static void read_buffers(precast_release *release, const precast_unit_record *unit, int64_t programs,
                         void *memory[16]) {
    const precast_callbacks callbacks = precast_read_callbacks(release);
    for (uint32_t i = 0; i < unit->buffers.count && callbacks.reader; i++) {
        const precast_buffer_record *buffer = &release->index.buffers[unit->buffers.first + i];
        callbacks.reader(callbacks.reader_context, precast_text(&release->index, unit->text),
                         precast_text(&release->index, buffer->pass_name), memory[i], buffer->bytes_per_program,
                         programs);
    }
}

precast_status precast_launch_cpu(precast_release *release, precast_device *device, uint32_t unit,
                                  const precast_ready *ready, const precast_call *call, const int64_t grid[3]) {
    const precast_unit_record *record = &release->index.units[unit];
    int64_t programs = grid[0] * grid[1] * grid[2];
    precast_parameters parameters;
    void *memory[16] = {NULL};
    precast_status status = precast_pack(release, device, unit, call, &parameters);
    if (status == PRECAST_OK && record->buffers.count)
        status = provide_buffers(release, record, (size_t)programs, &parameters, memory);
    if (status == PRECAST_OK)
        status = run(release, record, ready->function, &parameters, grid);
    if (status == PRECAST_OK && record->buffers.count)
        read_buffers(release, record, programs, memory);
    for (uint32_t i = 0; i < record->buffers.count; i++)
        free(memory[i]);
    return status;
}
