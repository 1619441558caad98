/* What a call asks for: axes that it says, axes that its tensors' elements say, axes from the tuning table. */
#include <string.h>

#include "grid.h"
#include "number.h"
#include "select.h"

/* The value's number from 1; 0 when the axis has no such value. */
static uint8_t find_value(const precast_index *index, const precast_axis_record *axis, int64_t payload) {
    const precast_value_record *values = &index->values[axis->values.first];
    for (uint32_t i = 0; i < axis->values.count; i++)
        if (values[i].payload == payload)
            return (uint8_t)(i + 1);
    return 0;
}

static int is_said(const precast_call *call, uint32_t axis) {
    return call->axes_given == PRECAST_GIVEN_BY_VALUE ? call->axes[axis] != PRECAST_ANY : call->axes_given >> axis & 1;
}

static precast_status read_axes(const precast_index *index, const precast_call *call, precast_request *wanted) {
    const precast_kernel_record *kernel = &index->kernels[call->kernel];
    for (uint32_t i = 0; i < kernel->axes.count; i++) {
        if (!is_said(call, i))
            continue;
        uint8_t number = find_value(index, &index->axes[kernel->axes.first + i], call->axes[i]);
        if (!number)
            return precast_explain_value(index, call, i);
        wanted->key[i] = number;
        wanted->mask[i] = 255;
    }
    return PRECAST_OK;
}

/* An axis that says what a tensor's elements are is known from the tensor. */
static precast_status read_types(const precast_index *index, const precast_call *call, precast_request *wanted) {
    const precast_kernel_record *kernel = &index->kernels[call->kernel];
    if (!call->types || !kernel->axes.count)
        return PRECAST_OK;
    for (uint32_t i = 0; i < kernel->slots.count; i++) {
        const precast_slot_record *slot = &index->slots[kernel->slots.first + i];
        unsigned type = call->types[i] & PRECAST_ELEMENT;
        if (slot->dtype_axis == PRECAST_NO_AXIS || !type || type == PRECAST_NOTHING)
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

precast_status precast_read_request(const precast_index *index, const precast_call *call, precast_request *wanted) {
    memset(wanted, 0, sizeof *wanted);
    precast_status status = read_axes(index, call, wanted);
    return status == PRECAST_OK ? read_types(index, call, wanted) : status;
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

int precast_follow_rule(const precast_index *index, const precast_call *call, uint32_t number,
                        const precast_request *wanted, precast_request *changed) {
    const precast_rule_record *rule = &index->rules[index->kernels[call->kernel].rules.first + number];
    *changed = *wanted;
    for (uint32_t i = 0; i < rule->assignments.count; i++) {
        const precast_assignment_record *assignment = &index->assignments[rule->assignments.first + i];
        uint8_t *key = &changed->key[assignment->axis];
        if (*key && *key != assignment->value)
            return 0;
        *key = (uint8_t)assignment->value;
        changed->mask[assignment->axis] = 255;
    }
    return rule_holds(index, call, rule);
}
