/* The unit for a call: axes from the struct, from element types or from the tuning table; then hints; then promises. */
#include <string.h>

#include "grid.h"
#include "number.h"
#include "state.h"

/* What a call asks for: a value number for each axis that is given. */
typedef struct request {
    uint8_t key[PRECAST_MAXIMUM_AXES];
    uint8_t mask[PRECAST_MAXIMUM_AXES];
} request;

/* The value's number from 1; 0 when the axis has no such value. */
static uint8_t find_value(const precast_index *index, const precast_axis_record *axis, int64_t payload) {
    const precast_value_record *values = &index->values[axis->values.first];
    for (uint32_t i = 0; i < axis->values.count; i++)
        if (values[i].payload == payload)
            return (uint8_t)(i + 1);
    return 0;
}

static precast_status read_axes(const precast_index *index, const precast_call *call, request *wanted) {
    const precast_kernel_record *kernel = &index->kernels[call->kernel];
    memset(wanted, 0, sizeof *wanted);
    for (uint32_t i = 0; i < kernel->axes.count; i++) {
        if (!(call->axes_given >> i & 1))
            continue;
        uint8_t number = find_value(index, &index->axes[kernel->axes.first + i], call->axes[i]);
        if (!number && call->axes_given == PRECAST_GIVEN_BY_VALUE && !call->axes[i])
            continue;
        if (!number)
            return precast_explain_value(index, call, i);
        wanted->key[i] = number;
        wanted->mask[i] = 255;
    }
    return PRECAST_OK;
}

/* An axis that says what a tensor's elements are is known from the tensor. */
static precast_status read_types(const precast_index *index, const precast_call *call, request *wanted) {
    const precast_kernel_record *kernel = &index->kernels[call->kernel];
    if (!call->types || !kernel->axes.count)
        return PRECAST_OK;
    for (uint32_t i = 0; i < kernel->slots.count; i++) {
        const precast_slot_record *slot = &index->slots[kernel->slots.first + i];
        unsigned type = call->types[i] & 0x3f;
        if (slot->dtype_axis == PRECAST_NO_AXIS || !type)
            continue;
        const precast_axis_record *axis = &index->axes[kernel->axes.first + slot->dtype_axis];
        const char *name = precast_text(index, slot->name), *axis_name = precast_text(index, axis->name);
        uint8_t number = find_value(index, axis, type), *key = &wanted->key[slot->dtype_axis];
        if (!number)
            return precast_fail(PRECAST_NO_UNIT, "argument `%s` of `%s` is %s, and there is no variant with %s=%s", name,
                                precast_text(index, kernel->name), precast_type_name(type), axis_name,
                                precast_type_name(type));
        if (*key && *key != number)
            return precast_fail(PRECAST_BAD_ARGUMENT, "argument `%s` of `%s` is %s, and %s=%s", name,
                                precast_text(index, kernel->name), precast_type_name(type), axis_name,
                                precast_text(index, index->values[axis->values.first + *key - 1].text));
        *key = number;
        wanted->mask[slot->dtype_axis] = 255;
    }
    return PRECAST_OK;
}

static int fits(const precast_cell *cell, const uint64_t key[2], const uint64_t mask[2]) {
    return !(((cell->key[0] ^ key[0]) & cell->mask[0] & mask[0]) | ((cell->key[1] ^ key[1]) & cell->mask[1] & mask[1]));
}

/* How many cells fit; the first of them. */
static uint32_t find_cells(const precast_device *device, uint32_t kernel, const request *wanted,
                           const precast_cell **found) {
    precast_kernel_cells span = device->cells_of_kernel[kernel];
    uint64_t key[2], mask[2];
    uint32_t count = 0;
    memcpy(key, wanted->key, sizeof key);
    memcpy(mask, wanted->mask, sizeof mask);
    for (uint32_t i = span.first; i < span.first + span.count; i++)
        if (fits(&device->cells[i], key, mask) && !count++)
            *found = &device->cells[i];
    return count;
}

static int holds(const precast_condition_record *condition, int64_t value) {
    switch (condition->relation) {
    case PRECAST_LESS: return value < condition->bound;
    case PRECAST_AT_MOST: return value <= condition->bound;
    case PRECAST_EQUAL: return value == condition->bound;
    case PRECAST_UNEQUAL: return value != condition->bound;
    case PRECAST_AT_LEAST: return value >= condition->bound;
    default: return value > condition->bound;
    }
}

static int rule_holds(const precast_index *index, const precast_call *call, const precast_rule_record *rule) {
    const precast_kernel_record *kernel = &index->kernels[call->kernel];
    for (uint32_t i = 0; i < rule->conditions.count; i++) {
        const precast_condition_record *condition = &index->conditions[rule->conditions.first + i];
        int64_t value;
        if (precast_run_steps(index->steps + condition->steps.first, condition->steps.count, call->slots,
                              index->slots + kernel->slots.first, "a selection rule", &value) != PRECAST_OK ||
            !holds(condition, value))
            return 0;
    }
    return 1;
}

/* Puts the first rule's values that holds and goes with what is given into `wanted`. */
static int apply_rules(const precast_index *index, const precast_call *call, request *wanted) {
    const precast_kernel_record *kernel = &index->kernels[call->kernel];
    for (uint32_t i = 0; i < kernel->rules.count; i++) {
        const precast_rule_record *rule = &index->rules[kernel->rules.first + i];
        request changed = *wanted;
        int agrees = 1;
        for (uint32_t j = 0; j < rule->assignments.count; j++) {
            const precast_assignment_record *assignment = &index->assignments[rule->assignments.first + j];
            uint8_t *key = &changed.key[assignment->axis];
            agrees &= !*key || *key == assignment->value;
            *key = (uint8_t)assignment->value;
            changed.mask[assignment->axis] = 255;
        }
        if (agrees && rule_holds(index, call, rule)) {
            *wanted = changed;
            return 1;
        }
    }
    return 0;
}

static inline int hint_holds(const precast_hint_record *hint, const uint64_t *slots) {
    if (hint->kind == PRECAST_ONE)
        return slots[hint->slot] == 1;
    return (hint->divisor & (hint->divisor - 1)) ? slots[hint->slot] % hint->divisor == 0
                                                 : !(slots[hint->slot] & (hint->divisor - 1));
}

static int hints_hold(const precast_hint_record *hint, uint32_t count, const uint64_t *slots) {
    for (const precast_hint_record *end = hint + count; hint < end; hint++)
        if (!hint_holds(hint, slots))
            return 0;
    return 1;
}

/* Whether a buffer is known to end beyond 2 GiB. Where only its allocation is known, that is what is measured. */
static int beyond_range32(const precast_device *device, const precast_call *call, uint16_t slot) {
    uint64_t bytes = call->sizes ? call->sizes[slot] : 0;
    if (!bytes && device->driver && device->driver->backend == PRECAST_HIP && call->slots[slot] &&
        device->driver->extent((const void *)(uintptr_t)call->slots[slot], &bytes))
        bytes = 0;
    return bytes > INT32_MAX;
}

static precast_status check_promises(const precast_index *index, const precast_device *device,
                                     const precast_call *call, const precast_unit_record *unit) {
    const precast_kernel_record *kernel = &index->kernels[call->kernel];
    for (uint32_t i = unit->promises.first; i < unit->promises.first + unit->promises.count; i++) {
        const precast_hint_record *promise = &index->hints[i];
        const precast_slot_record *slot = &index->slots[kernel->slots.first + promise->slot];
        const char *name = precast_text(index, slot->name), *owner = precast_text(index, kernel->name);
        unsigned long long value = call->slots[promise->slot];
        if (promise->kind == PRECAST_RANGE32) {
            if (beyond_range32(device, call, promise->slot))
                return precast_fail(PRECAST_BAD_ARGUMENT,
                                    "argument `%s` of `%s` promises range32, and its buffer is longer than 2 GiB", name,
                                    owner);
        } else if (!hint_holds(promise, call->slots)) {
            return precast_fail(PRECAST_BAD_ARGUMENT,
                                slot->type & PRECAST_POINTER
                                    ? "argument `%s` of `%s` promises align = %u, and its address is 0x%llx"
                                    : "argument `%s` of `%s` promises align = %u, and it is %llu",
                                name, owner, promise->divisor, value);
        }
    }
    return PRECAST_OK;
}

static precast_status check_read_only(const precast_index *index, const precast_call *call,
                                      const precast_unit_record *unit) {
    const precast_kernel_record *kernel = &index->kernels[call->kernel];
    const precast_parameter_record *parameter = &index->parameters[unit->parameters.first];
    for (const precast_parameter_record *end = parameter + unit->parameters.count; parameter < end; parameter++)
        if (parameter->kind == PRECAST_PARAMETER_ARGUMENT && parameter->extra &&
            call->types[parameter->slot] & PRECAST_READ_ONLY)
            return precast_fail(PRECAST_BAD_ARGUMENT, "argument `%s` of `%s` is read-only, and %s writes to it",
                                precast_text(index, index->slots[kernel->slots.first + parameter->slot].name),
                                precast_text(index, kernel->name), precast_text(index, unit->text));
    return PRECAST_OK;
}

/* What the caller knows of its arguments' types must be what the unit was compiled for. */
static precast_status check_types(const precast_index *index, const precast_call *call,
                                  const precast_unit_record *unit) {
    const precast_kernel_record *kernel = &index->kernels[call->kernel];
    for (uint32_t i = 0; call->types && i < kernel->slots.count; i++) {
        unsigned wanted = index->slot_types[unit->slot_types + i], found = call->types[i];
        if (!(found & 0x3f) || !(wanted & 0x3f) || !(wanted & (PRECAST_POINTER | PRECAST_DESCRIPTOR)))
            continue;
        if ((found & 0x3f) != (wanted & 0x3f))
            return precast_fail(PRECAST_BAD_ARGUMENT, "argument `%s` of `%s` is %s, %s takes %s",
                                precast_text(index, index->slots[kernel->slots.first + i].name),
                                precast_text(index, kernel->name), precast_type_name(found & 0x3f),
                                precast_text(index, unit->text), precast_type_name(wanted & 0x3f));
    }
    return call->types ? check_read_only(index, call, unit) : PRECAST_OK;
}

/* Whether there is nothing to look at more closely. */
static int surely_keeps(const precast_ready *ready, const precast_call *call) {
    return ready && ready->simple && !(call->types && memcmp(call->types, ready->types, ready->slot_count)) &&
           precast_keeps(ready, call->slots);
}

static precast_status find_cell(const precast_index *index, const precast_device *device, const precast_call *call,
                                const precast_cell **cell) {
    request wanted;
    precast_status status = read_axes(index, call, &wanted);
    if (status == PRECAST_OK)
        status = read_types(index, call, &wanted);
    if (status != PRECAST_OK)
        return status;
    uint32_t count = find_cells(device, call->kernel, &wanted, cell);
    if (count > 1 && apply_rules(index, call, &wanted))
        count = find_cells(device, call->kernel, &wanted, cell);
    if (count == 1)
        return PRECAST_OK;
    return count ? precast_explain_choice(index, device, call, wanted.key, wanted.mask)
                 : precast_explain_nothing(index, device, call, wanted.key, wanted.mask);
}

precast_status precast_select(const precast_release *release, const precast_device *device, const precast_call *call,
                              uint32_t *unit) {
    const precast_index *index = &release->index;
    const precast_kernel_cells *cells = &device->cells_of_kernel[call->kernel];
    const precast_cell *cell = &device->cells[cells->first];
    precast_status status = cells->sole ? PRECAST_OK : find_cell(index, device, call, &cell);
    if (status != PRECAST_OK)
        return status;
    const precast_candidate *candidate = &device->candidates[cell->order.first], *end = candidate + cell->order.count;
    for (; candidate < end; candidate++) {
        if (!hints_hold(&device->tests[candidate->tests.first], candidate->tests.count, call->slots))
            continue;
        *unit = candidate->unit;
        if (surely_keeps(precast_ready_unit(device, *unit), call))
            return PRECAST_OK;
        status = check_types(index, call, &index->units[*unit]);
        return status == PRECAST_OK ? check_promises(index, device, call, &index->units[*unit]) : status;
    }
    return precast_explain_hints(index, device, call, cell);
}
