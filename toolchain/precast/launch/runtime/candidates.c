/* Which units a device can run, grouped by axis values and ordered by preference: made once for each device. */
#include <stdlib.h>
#include <string.h>

#include "state.h"

static int hip_runs(const precast_index *index, const precast_unit_record *unit, const precast_device *device) {
    return !strcmp(precast_text(index, unit->arch), device->facts.name + strlen("hip:"));
}

/* A plain CUDA image runs on later minors of its major, save that 8.7 is a world of its own; an `a` image, written
 * exact, on its architecture alone; an `f` image, family, like a plain one. */
static int cuda_runs(const precast_unit_record *unit, int arch) {
    if (unit->arch_kind == PRECAST_ARCH_EXACT || arch == 87)
        return (int)unit->arch == arch;
    return (int)unit->arch / 10 == arch / 10 && (int)unit->arch <= arch;
}

/* A level of x86-64 runs code for the levels below it; aarch64 its own. */
static int cpu_runs(const precast_unit_record *unit, int level) {
    return unit->arch_kind == PRECAST_ARCH_EXACT ? (int)unit->arch == level
                                                 : (int)unit->arch <= level && level != PRECAST_AARCH64;
}

int precast_runs_on(const precast_index *index, const precast_unit_record *unit, const precast_device *device) {
    int backend = device->driver ? device->driver->backend : PRECAST_HOST;
    if (unit->backend != backend)
        return 0;
    if (backend == PRECAST_HIP)
        return hip_runs(index, unit, device);
    return backend == PRECAST_CUDA ? cuda_runs(unit, device->facts.arch) : cpu_runs(unit, device->facts.arch);
}

/* By axis values, then newest architecture, then most hints, then the spec's order: what a cell's order is. */
static int compare_units(const void *left, const void *right, void *context) {
    const precast_index *index = context;
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    const precast_unit_record *first = &index->units[a], *second = &index->units[b];
    int order = memcmp(first->axes, second->axes, sizeof first->axes);
    if (order)
        return order;
    if (first->arch != second->arch && first->backend != PRECAST_HIP)
        return first->arch > second->arch ? -1 : 1;
    if (first->hints.count != second->hints.count)
        return first->hints.count > second->hints.count ? -1 : 1;
    return first->order < second->order ? -1 : 1;
}

static void start_cell(precast_cell *cell, const precast_unit_record *unit, uint32_t place) {
    uint8_t mask[PRECAST_MAXIMUM_AXES];
    for (int i = 0; i < PRECAST_MAXIMUM_AXES; i++)
        mask[i] = unit->axes[i] ? 255 : 0;
    memcpy(cell->key, unit->axes, sizeof cell->key);
    memcpy(cell->mask, mask, sizeof cell->mask);
    cell->order = (precast_span){place, 0};
}

static void list_kernel(const precast_index *index, precast_device *device, uint32_t kernel, uint32_t *places,
                        uint32_t *cells) {
    precast_span units = index->kernels[kernel].units;
    uint32_t first = *places, first_cell = *cells;
    for (uint32_t i = units.first; i < units.first + units.count; i++)
        if (precast_runs_on(index, &index->units[i], device))
            device->order[(*places)++] = i;
    qsort_r(device->order + first, *places - first, sizeof *device->order, compare_units, (void *)index);
    for (uint32_t place = first; place < *places; place++) {
        const precast_unit_record *unit = &index->units[device->order[place]];
        if (*cells == first_cell || memcmp(device->cells[*cells - 1].key, unit->axes, sizeof unit->axes))
            start_cell(&device->cells[(*cells)++], unit, place);
        device->cells[*cells - 1].order.count++;
    }
    uint32_t count = *cells - first_cell;
    device->cells_of_kernel[kernel] =
        (precast_kernel_cells){first_cell, count, count == 1 && !index->kernels[kernel].axes.count};
}

/* Units and their hints in the order in which they are tried. */
static void list_tests(const precast_index *index, precast_device *device, uint32_t places) {
    uint32_t count = 0;
    for (uint32_t place = 0; place < places; place++) {
        precast_span hints = index->units[device->order[place]].hints;
        device->candidates[place] = (precast_candidate){device->order[place], {count, hints.count}};
        for (uint32_t i = 0; i < hints.count; i++)
            device->tests[count++] = index->hints[hints.first + i];
    }
}

static uint32_t count_hints(const precast_index *index) {
    uint32_t count = 0;
    for (uint32_t unit = 0; unit < index->unit_count; unit++)
        count += index->units[unit].hints.count;
    return count;
}

precast_status precast_list_candidates(const precast_index *index, precast_device *device) {
    uint32_t places = 0, cells = 0;
    device->order = calloc(index->unit_count + 1, sizeof *device->order);
    device->cells = calloc(index->unit_count + 1, sizeof *device->cells);
    device->cells_of_kernel = calloc(index->kernel_count + 1, sizeof *device->cells_of_kernel);
    device->candidates = calloc(index->unit_count + 1, sizeof *device->candidates);
    device->tests = calloc((size_t)count_hints(index) + 1, sizeof *device->tests);
    if (!device->order || !device->cells || !device->cells_of_kernel || !device->candidates || !device->tests)
        return precast_fail(PRECAST_OUT_OF_MEMORY, "there is no memory for the tables of %s", device->facts.name);
    for (uint32_t kernel = 0; kernel < index->kernel_count; kernel++)
        list_kernel(index, device, kernel, &places, &cells);
    list_tests(index, device, places);
    return PRECAST_OK;
}

const precast_cell *precast_find_cell(const precast_index *index, const precast_device *device, uint32_t unit,
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

/* Whether a hint holds wherever `other` does. */
static int follows(const precast_hint_record *hint, const precast_hint_record *other) {
    if (hint->slot != other->slot || hint->kind != other->kind)
        return 0;
    return hint->kind == PRECAST_DIVISIBLE ? other->divisor % hint->divisor == 0 : hint->divisor == other->divisor;
}

static int all_follow(const precast_hint_record *tests, precast_span hints, precast_span others) {
    for (uint32_t i = hints.first; i < hints.first + hints.count; i++) {
        int found = 0;
        for (uint32_t j = others.first; j < others.first + others.count && !found; j++)
            found = follows(&tests[i], &tests[j]);
        if (!found)
            return 0;
    }
    return 1;
}

/* What a unit requires, others of its cell mostly require too; where they do not, neither is always taken. */
static int requires_no_more(const precast_unit_record *unit, const precast_unit_record *other) {
    return !unit->requires.count ||
           (unit->requires.first == other->requires.first && unit->requires.count == other->requires.count);
}

int precast_is_superseded(const precast_index *index, const precast_device *device, uint32_t unit) {
    uint32_t place;
    const precast_cell *cell = precast_find_cell(index, device, unit, &place);
    const precast_candidate *first = cell ? &device->candidates[cell->order.first] : NULL;
    for (uint32_t i = 0; cell && i < place; i++)
        if (requires_no_more(&index->units[first[i].unit], &index->units[unit]) &&
            all_follow(device->tests, first[i].tests, first[place].tests))
            return 1;
    return 0;
}
