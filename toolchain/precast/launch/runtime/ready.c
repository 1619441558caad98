/* What every launch of a loaded unit needs, worked out when it is loaded. */
#include <stdlib.h>
#include <string.h>

#include "grid.h"
#include "state.h"

enum { CACHE_LINE = 64 };

static int is_plain(const precast_unit_record *unit, const precast_parameter_record *parameter,
                    const precast_slot_record *slots) {
    switch (parameter->kind) {
    case PRECAST_PARAMETER_ARGUMENT:
        return parameter->type & PRECAST_POINTER || parameter->type == slots[parameter->slot].type;
    case PRECAST_PARAMETER_GLOBAL_SCRATCH:
        return !unit->global_scratch_bytes;
    case PRECAST_PARAMETER_PROFILE_SCRATCH:
        return !unit->profile_scratch_bytes;
    default:
        return 0;
    }
}

static void list_parameters(const precast_index *index, const precast_unit_record *unit, precast_ready *ready,
                            uint16_t *slots) {
    const precast_parameter_record *parameter = &index->parameters[unit->parameters.first];
    const precast_slot_record *records = &index->slots[index->kernels[unit->kernel].slots.first];
    ready->plain = 1;
    ready->slots = slots;
    ready->parameter_count = unit->parameters.count;
    for (uint32_t i = 0; i < unit->parameters.count; i++, parameter++) {
        slots[i] = parameter->kind == PRECAST_PARAMETER_ARGUMENT ? parameter->slot : PRECAST_HIDDEN;
        ready->plain &= (uint8_t)is_plain(unit, parameter, records);
        ready->in_order += ready->in_order == i && slots[i] == i;
    }
}

static void list_promises(const precast_index *index, const precast_unit_record *unit, precast_ready *ready,
                          precast_run *runs) {
    const precast_hint_record *promise = &index->hints[unit->promises.first];
    ready->simple = 1;
    ready->runs = runs;
    for (uint32_t i = 0; i < unit->promises.count; i++, promise++) {
        uint64_t mask = (uint64_t)promise->divisor - 1;
        precast_run *last = ready->run_count ? &runs[ready->run_count - 1] : NULL;
        if (promise->kind != PRECAST_DIVISIBLE || promise->divisor & mask)
            ready->simple = 0;
        else if (last && last->mask == mask && last->first + last->count == promise->slot)
            last->count++;
        else
            runs[ready->run_count++] = (precast_run){promise->slot, 1, mask};
    }
}

static void list_types(const precast_index *index, const precast_unit_record *unit, precast_ready *ready,
                       uint8_t *types) {
    uint32_t count = index->kernels[unit->kernel].slots.count;
    ready->types = types;
    for (uint32_t i = 0; i < count; i++) {
        uint8_t type = index->slot_types[unit->slot_types + i];
        types[i] = !type ? PRECAST_NOTHING : type & (PRECAST_POINTER | PRECAST_DESCRIPTOR) ? type & PRECAST_ELEMENT : 0;
        ready->varied |= index->slots[index->kernels[unit->kernel].slots.first + i].flags & PRECAST_VARIED;
    }
}

static void find_constant_grid(const precast_index *index, const precast_unit_record *unit, precast_ready *ready) {
    ready->constant_grid = (uint8_t)precast_has_grid(unit);
    for (int i = 0; i < 3 && precast_has_grid(unit); i++) {
        const precast_step_record *steps = &index->steps[unit->grid_first[i]];
        ready->constant_grid &= (uint8_t)precast_is_constant(steps, unit->grid_count[i]);
        ready->grid[i] = steps->operand;
    }
}

/* NULL when there is no memory. */
precast_ready *precast_make_ready(const precast_index *index, precast_device *device, uint32_t number, void *function) {
    const precast_unit_record *unit = &index->units[number];
    size_t runs = unit->promises.count * sizeof(precast_run), slots = unit->parameters.count * sizeof(uint16_t);
    size_t types = ((index->kernels[unit->kernel].slots.count + slots + 7) & ~(size_t)7) - slots;
    size_t bytes = sizeof(precast_ready) + runs + slots + types + precast_shortcut_bytes(index, device, number);
    precast_ready *ready = aligned_alloc(CACHE_LINE, (bytes + CACHE_LINE - 1) & ~(size_t)(CACHE_LINE - 1));
    if (!ready)
        return NULL;
    memset(ready, 0, bytes);
    char *after = (char *)(ready + 1);
    ready->function = function;
    ready->shape = (precast_launch_shape){unit->warps * unit->warp_size, unit->ctas, unit->shared_bytes, unit->flags};
    ready->slot_count = index->kernels[unit->kernel].slots.count;
    find_constant_grid(index, unit, ready);
    list_promises(index, unit, ready, (precast_run *)after);
    list_parameters(index, unit, ready, (uint16_t *)(after + runs));
    list_types(index, unit, ready, (uint8_t *)(after + runs + slots));
    precast_make_shortcut(index, device, number, ready, after + runs + slots + types);
    return ready;
}
