/* What a call asks for: axes that it says, axes that its tensors' elements say. */
#include <string.h>

#include "number.h"
#include "select.h"
#include "slots.h"

/* The value's number from 1; 0 when the axis has no such value. */
static uint8_t find_value(const precast_index *index, const precast_axis_record *axis, int64_t payload) {
    const precast_value_record *values = &index->values[axis->values.first];
    for (uint32_t i = 0; i < axis->values.count; i++)
        if (values[i].payload == payload)
            return (uint8_t)(i + 1);
    int is_minus_zero = axis->kind == PRECAST_AXIS_FLOAT && payload == PRECAST_MINUS_ZERO;
    return is_minus_zero ? find_value(index, axis, 0) : 0; /* 0.0, where there is no other */
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
