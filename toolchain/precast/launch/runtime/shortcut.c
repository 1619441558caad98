/* What a launch needs to know that it means the unit of the one before, and to go straight to the driver. */
#include "state.h"

/* Whether a call that gives every axis as this cell has it can mean no other cell. */
static int is_alone(const precast_device *device, const precast_kernel_cells *span, const precast_cell *own) {
    uint32_t count = 0;
    for (const precast_cell *cell = &device->cells[span->first], *end = cell + span->count; cell < end; cell++)
        count += !(((cell->key[0] ^ own->key[0]) & cell->mask[0]) | ((cell->key[1] ^ own->key[1]) & cell->mask[1]));
    return count == 1;
}

size_t precast_shortcut_bytes(const precast_index *index, const precast_device *device, uint32_t unit) {
    uint32_t place, axes = index->kernels[index->units[unit].kernel].axes.count;
    const precast_cell *cell = precast_find_cell(index, device, unit, &place);
    size_t bytes = axes * sizeof(int64_t) + PRECAST_MOST_QUESTIONS * sizeof(precast_question) +
                   (cell ? cell->order.count : 0) * sizeof(uint32_t) +
                   index->units[unit].parameters.count * sizeof(precast_move);
    return (bytes + 7) & ~(size_t)7;
}

static int list_axes(const precast_index *index, const precast_unit_record *unit, int64_t *payloads) {
    precast_span axes = index->kernels[unit->kernel].axes;
    for (uint32_t i = 0; i < axes.count; i++) {
        if (!unit->axes[i])
            return 0;
        payloads[i] = index->values[index->axes[axes.first + i].values.first + unit->axes[i] - 1].payload;
    }
    return 1;
}

/* The number of a hint's question, which is added where it is new; PRECAST_MOST_QUESTIONS: there is none. */
static uint32_t find_question(const precast_hint_record *hint, precast_question *questions, uint32_t *count) {
    uint64_t mask = hint->kind == PRECAST_DIVISIBLE ? (uint64_t)hint->divisor - 1 : UINT64_MAX;
    uint32_t value = hint->kind == PRECAST_PINNED ? hint->divisor : hint->kind == PRECAST_ONE;
    precast_question wanted = {mask, value, hint->slot, hint->kind == PRECAST_PRESENT};
    if (hint->kind == PRECAST_RANGE32 || (hint->kind == PRECAST_PINNED && value > INT32_MAX) ||
        (hint->kind == PRECAST_DIVISIBLE && hint->divisor & mask))
        return PRECAST_MOST_QUESTIONS;
    for (uint32_t i = 0; i < *count; i++)
        if (questions[i].slot == wanted.slot && questions[i].mask == mask && questions[i].value == wanted.value &&
            questions[i].negated == wanted.negated)
            return i;
    if (*count == PRECAST_MOST_QUESTIONS)
        return PRECAST_MOST_QUESTIONS;
    questions[*count] = wanted;
    return (*count)++;
}

static int list_needs(const precast_device *device, const precast_cell *cell, uint32_t last,
                      precast_question *questions, uint32_t *count, uint32_t *needs) {
    for (uint32_t place = 0; place <= last; place++) {
        precast_span tests = device->candidates[cell->order.first + place].tests;
        needs[place] = 0;
        for (uint32_t i = tests.first; i < tests.first + tests.count; i++) {
            uint32_t number = find_question(&device->tests[i], questions, count);
            if (number == PRECAST_MOST_QUESTIONS)
                return 0;
            needs[place] |= UINT32_C(1) << number;
        }
    }
    return 1;
}

/* Alignments are looked at apart, by `runs`; what else a unit promises is asked for as its hints are. */
static int list_promises(const precast_index *index, const precast_unit_record *unit, precast_question *questions,
                         uint32_t *count, uint32_t *need) {
    for (uint32_t i = unit->promises.first; i < unit->promises.first + unit->promises.count; i++) {
        const precast_hint_record *promise = &index->hints[i];
        if (promise->kind == PRECAST_DIVISIBLE && !(promise->divisor & (promise->divisor - 1)))
            continue;
        uint32_t number = promise->kind == PRECAST_PINNED ? find_question(promise, questions, count)
                                                         : PRECAST_MOST_QUESTIONS;
        if (number == PRECAST_MOST_QUESTIONS)
            return 0;
        *need |= UINT32_C(1) << number;
    }
    return 1;
}

/* Each move writes 8 bytes, of which the next ones overwrite what is too much. */
static int list_moves(const precast_ready *ready, const precast_direct *direct, precast_move *moves,
                      precast_shortcut *shortcut) {
    size_t last = 0, end = 0, hidden_at = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < ready->parameter_count; i++) {
        size_t place, bytes;
        int is_hidden = ready->slots[i] == PRECAST_HIDDEN;
        if (direct->locate(ready->function, i, &place, &bytes) || place < last || bytes > sizeof(uint64_t) ||
            place + bytes > PRECAST_MOST_DIRECT_BYTES || (!is_hidden && count < i))
            return 0;
        if (!is_hidden)
            moves[count++] = (precast_move){ready->slots[i], (uint16_t)place};
        else if (count == i)
            hidden_at = place;
        last = place, end = place + bytes;
    }
    size_t place, bytes;
    if (!direct->locate(ready->function, ready->parameter_count, &place, &bytes))
        return 0; /* the image has more parameters than its facts say */
    if (count == ready->parameter_count)
        hidden_at = end;
    shortcut->moves = moves;
    shortcut->move_count = (uint16_t)count;
    shortcut->hidden_at = (uint16_t)hidden_at;
    shortcut->parameter_bytes = (uint16_t)end;
    return end - hidden_at <= PRECAST_MOST_HIDDEN_BYTES;
}

/* The axes that a call may leave out and still mean this cell. */
static void list_left_out(const precast_index *index, const precast_unit_record *unit, const precast_ready *ready,
                          precast_shortcut *shortcut) {
    const precast_kernel_record *kernel = &index->kernels[unit->kernel];
    const precast_slot_record *slots = &index->slots[kernel->slots.first];
    for (uint32_t i = 0; i < kernel->axes.count; i++)
        shortcut->sole_axes |= (uint16_t)((index->axes[kernel->axes.first + i].values.count == 1) << i);
    for (uint32_t i = 0; i < kernel->slots.count; i++)
        if (slots[i].dtype_axis != PRECAST_NO_AXIS && ready->types[i])
            shortcut->typed_axes |= (uint16_t)(1 << slots[i].dtype_axis);
}

/* A grid that is the same for all launches, and that the device takes. */
static void keep_grid(const precast_ready *ready, const precast_device *device, uint32_t grid[3]) {
    const int64_t *wanted = ready->grid, *limits = device->facts.grid_limits;
    int64_t programs = 0;
    for (int i = 0; i < 3; i++)
        if (wanted[i] <= 0 || wanted[i] > INT32_MAX || wanted[i] > limits[i])
            return;
    if (!ready->constant_grid || __builtin_mul_overflow(wanted[0] * wanted[1], wanted[2], &programs) ||
        programs > INT64_MAX / 4)
        return;
    for (int i = 0; i < 3; i++)
        grid[i] = (uint32_t)wanted[i];
}

void precast_make_shortcut(const precast_index *index, precast_device *device, uint32_t number, precast_ready *ready,
                           void *after) {
    const precast_unit_record *unit = &index->units[number];
    const precast_kernel_record *kernel = &index->kernels[unit->kernel];
    precast_shortcut *shortcut = &ready->shortcut;
    precast_question *questions = after;
    int64_t *axes = (int64_t *)(questions + PRECAST_MOST_QUESTIONS);
    uint32_t *needs = (uint32_t *)(axes + kernel->axes.count), place = 0, count = 0;
    precast_direct direct = {NULL, NULL, NULL};
    precast_shortcut made = {0};
    if (device->driver && device->driver->direct)
        direct = device->driver->direct();
    const precast_cell *cell = precast_find_cell(index, device, number, &place);
    if (!direct.identify || !direct.locate || !cell || place > UINT16_MAX || !ready->plain || ready->varied ||
        ready->shape.ctas > 1 || ready->shape.flags || !list_axes(index, unit, axes) ||
        !is_alone(device, &device->cells_of_kernel[unit->kernel], cell) ||
        !list_needs(device, cell, place, questions, &count, needs) ||
        !list_promises(index, unit, questions, &count, &needs[place]) ||
        !list_moves(ready, &direct, (precast_move *)(needs + cell->order.count), &made))
        return;
    made.direct = direct, made.identity = device->identity, made.function = ready->function;
    made.threads = ready->shape.threads, made.shared_bytes = ready->shape.shared_bytes;
    made.axis_count = (uint8_t)kernel->axes.count, made.axes = axes;
    made.question_count = (uint8_t)count, made.questions = questions;
    made.last_need = (uint16_t)place, made.needs = needs;
    made.requires = unit->requires.count > 0;
    made.device = device, made.unit = number, made.ordinal = device->facts.ordinal;
    keep_grid(ready, device, made.grid);
    list_left_out(index, unit, ready, &made);
    *shortcut = made;
}
