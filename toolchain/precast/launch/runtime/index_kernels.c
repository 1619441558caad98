/* Whether a kernel's records in an index hold together: arguments, slots, axes, rules, and its units. */
#include <string.h>

#include "grid.h"
#include "index_fits.h"

static int condition_fits(const precast_index *index, const precast_kernel_record *kernel,
                          const precast_condition_record *condition) {
    return precast_span_fits(index, PRECAST_STEPS, condition->steps) && condition->steps.count <= PRECAST_MOST_STEPS &&
           condition->relation <= PRECAST_MORE &&
           precast_grid_fits(index->steps + condition->steps.first, condition->steps.count, kernel->slots.count);
}

static int assignment_fits(const precast_index *index, const precast_kernel_record *kernel,
                           const precast_assignment_record *assignment) {
    return assignment->axis < kernel->axes.count && assignment->value &&
           assignment->value <= index->axes[kernel->axes.first + assignment->axis].values.count;
}

static int rule_fits(const precast_index *index, const precast_kernel_record *kernel, const precast_rule_record *rule,
                     precast_ends *ends) {
    if (!precast_span_follows(index, PRECAST_CONDITIONS, rule->conditions, ends) ||
        !precast_span_follows(index, PRECAST_ASSIGNMENTS, rule->assignments, ends) ||
        !precast_text_fits(index, rule->device) || !precast_text_fits(index, rule->target) ||
        !precast_text_fits(index, rule->row))
        return 0;
    for (uint32_t i = 0; i < rule->conditions.count; i++)
        if (!condition_fits(index, kernel, &index->conditions[rule->conditions.first + i]))
            return 0;
    for (uint32_t i = 0; i < rule->assignments.count; i++)
        if (!assignment_fits(index, kernel, &index->assignments[rule->assignments.first + i]))
            return 0;
    return 1;
}

static int axis_fits(const precast_index *index, const precast_axis_record *axis, precast_ends *ends) {
    if (!precast_text_fits(index, axis->name) || axis->kind > PRECAST_AXIS_WORD || axis->values.count > 254 ||
        !precast_span_follows(index, PRECAST_AXIS_VALUES, axis->values, ends))
        return 0;
    for (uint32_t i = 0; i < axis->values.count; i++)
        if (!precast_text_fits(index, index->values[axis->values.first + i].text))
            return 0;
    return 1;
}

static int slot_fits(const precast_index *index, const precast_kernel_record *kernel, uint32_t argument,
                     const precast_slot_record *slot) {
    int is_pointer = slot->type == PRECAST_POINTER, is_descriptor = slot->type == PRECAST_DESCRIPTOR;
    return precast_text_fits(index, slot->name) && slot->argument == argument && slot->constant <= is_pointer &&
           (is_pointer || is_descriptor || precast_is_scalar(slot->type)) &&
           slot->flags <= (PRECAST_OPTIONAL | PRECAST_VARIED) &&
           (is_descriptor ? slot->rank >= 1 && slot->rank <= 5 : !slot->rank) &&
           (slot->dtype_axis == PRECAST_NO_AXIS ||
            (slot->dtype_axis < kernel->axes.count &&
             index->axes[kernel->axes.first + slot->dtype_axis].kind == PRECAST_AXIS_DTYPE));
}

/* Arguments share out the kernel's slots in order. */
static int arguments_fit(const precast_index *index, const precast_kernel_record *kernel) {
    uint32_t next = kernel->slots.first, end = kernel->slots.first + kernel->slots.count;
    for (uint32_t i = 0; i < kernel->arguments.count; i++) {
        const precast_argument_record *argument = &index->arguments[kernel->arguments.first + i];
        if (!precast_text_fits(index, argument->name) || argument->first_slot != next || argument->slots > end - next ||
            argument->default_kind > PRECAST_DEFAULT_NONE || (argument->default_kind && argument->slots != 1))
            return 0;
        for (uint32_t j = 0; j < argument->slots; j++, next++)
            if (!slot_fits(index, kernel, i, &index->slots[next]))
                return 0;
    }
    return next == end;
}

static int units_fit(const precast_index *index, uint32_t number, precast_ends *ends) {
    precast_span units = index->kernels[number].units;
    if (!precast_span_follows(index, PRECAST_UNITS, units, ends))
        return 0;
    for (uint32_t i = 0; i < units.count; i++)
        if (!precast_unit_fits(index, number, &index->units[units.first + i], ends))
            return 0;
    return 1;
}

/* Kernels have names of their own, in order. */
static int name_fits(const precast_index *index, uint32_t number) {
    const precast_kernel_record *kernel = &index->kernels[number];
    return precast_text_fits(index, kernel->name) && precast_text_fits(index, kernel->source) &&
           (!number || strcmp(precast_text(index, kernel[-1].name), precast_text(index, kernel->name)) < 0);
}

int precast_kernel_fits(const precast_index *index, uint32_t number, precast_ends *ends) {
    const precast_kernel_record *kernel = &index->kernels[number];
    if (!name_fits(index, number) || !precast_span_follows(index, PRECAST_ARGUMENTS, kernel->arguments, ends) ||
        !precast_span_follows(index, PRECAST_SLOTS, kernel->slots, ends) ||
        !precast_span_follows(index, PRECAST_AXES, kernel->axes, ends) ||
        !precast_span_follows(index, PRECAST_AXES, kernel->constants, ends) ||
        !precast_span_follows(index, PRECAST_RULES, kernel->rules, ends) ||
        kernel->rules.count > 4096 || kernel->slots.count > PRECAST_MAXIMUM_SLOTS || kernel->axes.count > PRECAST_MAXIMUM_AXES)
        return 0;
    for (uint32_t i = 0; i < kernel->axes.count; i++)
        if (!axis_fits(index, &index->axes[kernel->axes.first + i], ends))
            return 0;
    for (uint32_t i = 0; i < kernel->constants.count; i++)
        if (!axis_fits(index, &index->axes[kernel->constants.first + i], ends) ||
            index->axes[kernel->constants.first + i].values.count != 1)
            return 0;
    for (uint32_t i = 0; i < kernel->rules.count; i++)
        if (!rule_fits(index, kernel, &index->rules[kernel->rules.first + i], ends))
            return 0;
    return arguments_fit(index, kernel) && units_fit(index, number, ends);
}
