/* Why no unit fits, in the spec's words: what was asked, and the nearest that there are. */
#include <stdio.h>
#include <string.h>

#include "grid.h"
#include "number.h"
#include "select.h"
#include "slots.h"

enum { MOST_NEAREST = 3, MOST_VALUES = 12 };

static const char *kernel_name(const precast_index *index, const precast_call *call) {
    return precast_text(index, index->kernels[call->kernel].name);
}

static const precast_axis_record *axis_of(const precast_index *index, const precast_call *call, uint32_t axis) {
    return &index->axes[index->kernels[call->kernel].axes.first + axis];
}

static void add_values(const precast_index *index, const precast_axis_record *axis) {
    for (uint32_t i = 0; i < axis->values.count && i < MOST_VALUES; i++)
        precast_add_to_error("%s%s", i ? ", " : "", precast_text(index, index->values[axis->values.first + i].text));
    if (axis->values.count > MOST_VALUES)
        precast_add_to_error(", …");
}

precast_status precast_explain_value(const precast_index *index, const precast_call *call, uint32_t number) {
    const precast_axis_record *axis = axis_of(index, call, number);
    int64_t payload = call->axes[number];
    char value[40];
    if (axis->kind == PRECAST_AXIS_FLOAT)
        snprintf(value, sizeof value, "%g", precast_axis_real(payload) + 0.0);
    else if (axis->kind == PRECAST_AXIS_DTYPE)
        snprintf(value, sizeof value, "%s", precast_type_name((unsigned)payload));
    else if (axis->kind == PRECAST_AXIS_BOOL)
        snprintf(value, sizeof value, "%s", payload ? "true" : "false");
    else
        snprintf(value, sizeof value, "%lld", (long long)payload);
    precast_fail(PRECAST_NO_UNIT, "`%s` has no variant with %s=%s; there are ", kernel_name(index, call),
                 precast_text(index, axis->name), value);
    add_values(index, axis);
    return PRECAST_NO_UNIT;
}

/* " for dtype=fp16, BLOCK=1024", or nothing. */
static void add_request(const precast_index *index, const precast_call *call, const uint8_t *key, const uint8_t *mask) {
    const char *before = " with ";
    for (uint32_t i = 0; i < index->kernels[call->kernel].axes.count; i++) {
        const precast_axis_record *axis = axis_of(index, call, i);
        if (!mask[i])
            continue;
        precast_add_to_error("%s%s=%s", before, precast_text(index, axis->name),
                             precast_text(index, index->values[axis->values.first + key[i] - 1].text));
        before = ", ";
    }
}

static int count_differences(const uint8_t *cell, const uint8_t *key, const uint8_t *mask) {
    int count = 0;
    for (int i = 0; i < PRECAST_MAXIMUM_AXES; i++)
        count += mask[i] && cell[i] && cell[i] != key[i];
    return count;
}

/* The units that differ in the fewest axes. */
static void add_nearest(const precast_index *index, const precast_device *device, precast_kernel_cells cells,
                        const uint8_t *key, const uint8_t *mask) {
    int listed = 0;
    for (int distance = 0; distance <= PRECAST_MAXIMUM_AXES && listed < MOST_NEAREST; distance++)
        for (uint32_t i = cells.first; i < cells.first + cells.count && listed < MOST_NEAREST; i++) {
            uint8_t axes[PRECAST_MAXIMUM_AXES];
            memcpy(axes, device->cells[i].key, sizeof axes);
            if (count_differences(axes, key, mask) != distance)
                continue;
            uint32_t unit = device->order[device->cells[i].order.first];
            precast_add_to_error("%s%s", listed++ ? ", " : "; nearest: ", precast_text(index, index->units[unit].text));
        }
}

/* Every target that the kernel is built for, each once. */
static void add_targets(const precast_index *index, const precast_kernel_record *kernel) {
    int listed = 0;
    for (uint32_t i = kernel->units.first; i < kernel->units.first + kernel->units.count; i++) {
        const char *target = strrchr(precast_text(index, index->units[i].text), '@');
        int seen = 0;
        for (uint32_t j = kernel->units.first; j < i && !seen; j++) {
            const char *other = strrchr(precast_text(index, index->units[j].text), '@');
            seen = target && other && !strcmp(target, other);
        }
        if (!seen && target)
            precast_add_to_error("%s%s", listed++ ? ", " : "", target + 1);
    }
}

precast_status precast_explain_nothing(const precast_index *index, const precast_device *device,
                                       const precast_call *call, const precast_request *wanted) {
    precast_kernel_cells cells = device->cells_of_kernel[call->kernel];
    const uint8_t *key = wanted->key, *mask = wanted->mask;
    if (!cells.count) {
        precast_fail(PRECAST_NO_UNIT, "no unit of `%s` runs on %s; it is built for ", kernel_name(index, call),
                     device->facts.name);
        add_targets(index, &index->kernels[call->kernel]);
        return PRECAST_NO_UNIT;
    }
    precast_fail(PRECAST_NO_UNIT, "no unit of `%s`", kernel_name(index, call));
    add_request(index, call, key, mask);
    precast_add_to_error(" on %s", device->facts.name);
    add_nearest(index, device, cells, key, mask);
    return PRECAST_NO_UNIT;
}

precast_status precast_explain_choice(const precast_index *index, const precast_device *device,
                                      const precast_call *call, const precast_request *wanted) {
    precast_kernel_cells cells = device->cells_of_kernel[call->kernel];
    const uint8_t *key = wanted->key, *mask = wanted->mask;
    precast_fail(PRECAST_NO_UNIT, "several units of `%s`", kernel_name(index, call));
    add_request(index, call, key, mask);
    precast_add_to_error(" fit on %s; say which:", device->facts.name);
    int listed = 0;
    for (uint32_t i = 0; i < index->kernels[call->kernel].axes.count; i++) {
        uint8_t first = 0, several = 0;
        for (uint32_t j = cells.first; j < cells.first + cells.count; j++) {
            uint8_t axes[PRECAST_MAXIMUM_AXES];
            memcpy(axes, device->cells[j].key, sizeof axes);
            if (count_differences(axes, key, mask))
                continue;
            several |= first && axes[i] && axes[i] != first;
            first = first ? first : axes[i];
        }
        if (mask[i] || !several)
            continue;
        precast_add_to_error("%s%s is one of ", listed++ ? "; " : " ", precast_text(index, axis_of(index, call, i)->name));
        add_values(index, axis_of(index, call, i));
    }
    return PRECAST_NO_UNIT;
}

static const char *slot_name(const precast_index *index, const precast_call *call, uint32_t slot) {
    return precast_text(index, index->slots[index->kernels[call->kernel].slots.first + slot].name);
}

/* A number that the unit's type does not hold, or one that is given or not where the unit has it otherwise. */
static precast_status explain_number(const precast_index *index, const precast_call *call, const char *text,
                                     const precast_slot_record *slot, unsigned wanted, uint32_t place) {
    const char *name = precast_text(index, slot->name);
    unsigned given = call->types ? call->types[place] & PRECAST_ELEMENT : 0;
    char value[24];
    if (!wanted || given == PRECAST_NOTHING)
        return precast_fail(PRECAST_BAD_ARGUMENT, "argument `%s` of `%s` is %s, %s takes %s", name,
                            kernel_name(index, call), wanted ? "None" : "given", text,
                            wanted ? precast_type_name(wanted) : "None alone");
    precast_print_slot(call->slots[place], given == PRECAST_U64 ? given : slot->type, value, sizeof value);
    return precast_fail(PRECAST_BAD_ARGUMENT, "argument `%s` is %s, which does not fit in %s", name, value,
                        precast_type_name(wanted));
}

static precast_status explain_type(const precast_index *index, const precast_call *call,
                                   const precast_unit_record *unit, uint32_t place) {
    const precast_slot_record *slot = &index->slots[index->kernels[call->kernel].slots.first + place];
    const char *name = precast_text(index, slot->name), *owner = kernel_name(index, call);
    const char *text = precast_text(index, unit->text);
    unsigned wanted = index->slot_types[unit->slot_types + place];
    unsigned given = call->types ? call->types[place] & PRECAST_ELEMENT : 0;
    if (!(slot->type & (PRECAST_POINTER | PRECAST_DESCRIPTOR)))
        return explain_number(index, call, text, slot, wanted, place);
    if (!wanted)
        return precast_fail(PRECAST_BAD_ARGUMENT, "argument `%s` of `%s` is given, %s takes a null pointer or None alone",
                            name, owner, text);
    if (given == PRECAST_NOTHING && !(slot->flags & PRECAST_OPTIONAL))
        return precast_fail(PRECAST_BAD_ARGUMENT, "argument `%s` of `%s` is None, and no variant is without it; a null "
                                                  "pointer is said as 0", name, owner);
    if (given == PRECAST_NOTHING || (!given && !call->slots[place]))
        return precast_fail(PRECAST_BAD_ARGUMENT, "argument `%s` of `%s` is %s, %s takes a tensor", name, owner,
                            given ? "None" : "a null pointer", text);
    if (wanted & PRECAST_ELEMENT && given && given != (wanted & PRECAST_ELEMENT))
        return precast_fail(PRECAST_BAD_ARGUMENT, "argument `%s` of `%s` is %s, %s takes %s", name, owner,
                            precast_type_name(given), text, precast_type_name(wanted & PRECAST_ELEMENT));
    return precast_fail(PRECAST_BAD_ARGUMENT, "argument `%s` of `%s` is read-only, and %s writes to it", name, owner,
                        text);
}

static precast_status explain_promise(const precast_index *index, const precast_call *call,
                                      const precast_hint_record *promise) {
    const precast_slot_record *slot = &index->slots[index->kernels[call->kernel].slots.first + promise->slot];
    const char *name = precast_text(index, slot->name), *owner = kernel_name(index, call);
    char value[24];
    if (promise->kind == PRECAST_RANGE32)
        return precast_fail(PRECAST_BAD_ARGUMENT,
                            "argument `%s` of `%s` promises range32, and its buffer is longer than 2 GiB", name, owner);
    precast_print_slot(call->slots[promise->slot], slot->type, value, sizeof value);
    if (promise->kind == PRECAST_PINNED)
        return precast_fail(PRECAST_BAD_ARGUMENT, "argument `%s` of `%s` promises equal = %d, and it is %s", name, owner,
                            (int)(int32_t)promise->divisor, value);
    return precast_fail(PRECAST_BAD_ARGUMENT, "argument `%s` of `%s` promises align = %u, and %s %s", name, owner,
                        promise->divisor, slot->type & PRECAST_POINTER ? "its address is" : "it is", value);
}

static precast_status explain_hints(const precast_index *index, const precast_call *call,
                                    const precast_unit_record *unit) {
    const char *before = "";
    precast_fail(PRECAST_NO_UNIT, "no variant of `%s` takes these arguments; nearest: %s, which asks for",
                 kernel_name(index, call), precast_text(index, unit->text));
    for (uint32_t i = unit->hints.first; i < unit->hints.first + unit->hints.count; i++) {
        const precast_hint_record *hint = &index->hints[i];
        unsigned type = index->slots[index->kernels[call->kernel].slots.first + hint->slot].type;
        const char *name = slot_name(index, call, hint->slot);
        char value[24];
        if (hint->kind == PRECAST_ABSENT || hint->kind == PRECAST_PRESENT)
            continue;
        precast_print_slot(call->slots[hint->slot], type, value, sizeof value);
        precast_add_to_error(hint->kind == PRECAST_ONE ? "%s %s==%u" : "%s %s%%%u", before, name, hint->divisor);
        precast_add_to_error(" (it is %s)", value);
        before = ",";
    }
    return PRECAST_NO_UNIT;
}

/* The requirement as it is written, and its two sides. */
static precast_status explain_requirement(const precast_index *index, const precast_call *call,
                                          const precast_unit_record *unit,
                                          const precast_requirement_record *requirement) {
    const precast_slot_record *types = &index->slots[index->kernels[call->kernel].slots.first];
    const precast_step_record *steps = index->steps + requirement->steps.first;
    uint32_t last = requirement->steps.count - 1;
    int64_t sides[PRECAST_MAXIMUM_STACK];
    const char *wrong = precast_evaluate(steps, last, call->slots, types, sides);
    precast_fail(PRECAST_UNMET, "no variant of `%s` takes these arguments; nearest: %s, which requires %s (it ",
                 kernel_name(index, call), precast_text(index, unit->text), precast_text(index, requirement->text));
    if (wrong)
        precast_add_to_error("%s)", wrong);
    else
        precast_add_to_error("is %lld %s %lld)", (long long)sides[0], precast_comparison(steps[last].opcode),
                             (long long)sides[1]);
    return PRECAST_UNMET;
}

precast_status precast_explain_fault(const precast_index *index, const precast_call *call, uint32_t number,
                                     precast_fault fault) {
    const precast_unit_record *unit = &index->units[number];
    if (fault.stage == PRECAST_AT_TYPES)
        return explain_type(index, call, unit, fault.slot);
    if (fault.stage == PRECAST_AT_REQUIREMENTS)
        return explain_requirement(index, call, unit, fault.requirement);
    return fault.stage == PRECAST_AT_PROMISES ? explain_promise(index, call, fault.promise)
                                              : explain_hints(index, call, unit);
}
