/* What a launch needs to know that it means the unit of the one before, and to go straight to the driver. */
#include "state.h"

/* The cell of a unit, and the unit's place in it. */
static const precast_cell *find_cell(const precast_index *index, const precast_device *device, uint32_t unit,
                                     uint32_t *place) {
    precast_kernel_cells span = device->cells_of_kernel[index->units[unit].kernel];
    for (uint32_t i = span.first; i < span.first + span.count; i++) {
        const precast_cell *cell = &device->cells[i];
        for (*place = 0; *place < cell->order.count; ++*place)
            if (device->order[cell->order.first + *place] == unit)
                return cell;
    }
    return NULL;
}

/* Whether a call that gives every axis as this cell has it can mean no other cell. */
static int is_alone(const precast_device *device, const precast_kernel_cells *span, const precast_cell *own) {
    uint32_t count = 0;
    for (const precast_cell *cell = &device->cells[span->first], *end = cell + span->count; cell < end; cell++)
        count += !(((cell->key[0] ^ own->key[0]) & cell->mask[0]) | ((cell->key[1] ^ own->key[1]) & cell->mask[1]));
    return count == 1;
}

size_t precast_shortcut_bytes(const precast_index *index, const precast_device *device, uint32_t unit) {
    uint32_t place, axes = index->kernels[index->units[unit].kernel].axes.count;
    const precast_cell *cell = find_cell(index, device, unit, &place);
    size_t bytes = axes * sizeof(int64_t) + PRECAST_MOST_QUESTIONS * sizeof(precast_question) +
                   (cell ? cell->order.count : 0) * sizeof(uint32_t);
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
    uint64_t mask = hint->kind == PRECAST_ONE ? UINT64_MAX : (uint64_t)hint->divisor - 1;
    precast_question wanted = {mask, hint->slot, hint->kind == PRECAST_ONE};
    if (hint->kind != PRECAST_ONE && (hint->kind != PRECAST_DIVISIBLE || hint->divisor & mask))
        return PRECAST_MOST_QUESTIONS;
    for (uint32_t i = 0; i < *count; i++)
        if (questions[i].slot == wanted.slot && questions[i].mask == mask)
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
    precast_direct direct = {NULL, NULL};
    if (device->driver && device->driver->direct)
        direct = device->driver->direct();
    const precast_cell *cell = find_cell(index, device, number, &place);
    if (!direct.identify || !cell || place > UINT16_MAX || !ready->plain || !ready->simple || ready->shape.ctas > 1 ||
        ready->shape.flags || ready->parameter_count > PRECAST_MOST_DIRECT_PARAMETERS || !list_axes(index, unit, axes) ||
        !is_alone(device, &device->cells_of_kernel[unit->kernel], cell) ||
        !list_needs(device, cell, place, questions, &count, needs))
        return;
    *shortcut = (precast_shortcut){
        .direct = direct, .identity = device->identity, .function = ready->function, .threads = ready->shape.threads,
        .shared_bytes = ready->shape.shared_bytes, .axis_count = (uint8_t)kernel->axes.count,
        .question_count = (uint8_t)count, .last_need = (uint16_t)place, .axes = axes, .questions = questions,
        .needs = needs, .device = device, .unit = number, .ordinal = device->facts.ordinal,
    };
    keep_grid(ready, device, shortcut->grid);
}
