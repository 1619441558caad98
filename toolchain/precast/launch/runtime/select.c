/* The unit for a call, one order for all callers: of the units whose axes, types, promises, hints and requirements hold,
 * the one that the tuning table names; else the one with the most hints; else the spec's first. */
#include <string.h>

#include "grid.h"
#include "table.h"

/* The best unit so far. `open`: another fits as well that takes elements of another type, and nothing says which. */
typedef struct choice {
    const precast_candidate *best;
    uint32_t distance, cells;
    int open;
} choice;

/* Whether there is nothing to look at more closely. */
static int surely_keeps(const precast_ready *ready, const precast_call *call) {
    return ready && ready->simple && !ready->varied &&
           !(call->types && memcmp(call->types, ready->types, ready->slot_count)) && precast_keeps(ready, call->slots);
}

/* What a cell's order is, over several: the number's own types, the newest architecture, the most hints, the spec. */
static int is_better(const precast_index *index, const precast_candidate *candidate, uint32_t distance,
                     const choice *found) {
    const precast_unit_record *one = &index->units[candidate->unit], *other = &index->units[found->best->unit];
    if (distance != found->distance)
        return distance < found->distance;
    if (one->arch != other->arch && one->backend != PRECAST_HIP)
        return one->arch > other->arch;
    if (one->hints.count != other->hints.count)
        return one->hints.count > other->hints.count;
    return one->order < other->order;
}

/* Whether the two read what a pointer points to differently, and the call does not say what it is. */
static int read_differently(const precast_index *index, const precast_call *call, uint32_t one, uint32_t other) {
    const uint8_t *first = &index->slot_types[index->units[one].slot_types];
    const uint8_t *second = &index->slot_types[index->units[other].slot_types];
    for (uint32_t i = 0; i < index->kernels[call->kernel].slots.count; i++)
        if (first[i] != second[i] && first[i] & PRECAST_POINTER && second[i] & PRECAST_POINTER &&
            !(call->types && call->types[i] & PRECAST_ELEMENT))
            return 1;
    return 0;
}

static void look_through(const precast_index *index, const precast_device *device, const precast_call *call,
                         const precast_cell *cell, choice *found) {
    const precast_candidate *candidate = &device->candidates[cell->order.first], *end = candidate + cell->order.count;
    found->cells++;
    for (; candidate < end; candidate++) {
        uint32_t distance = 0;
        if (!precast_hints_hold(&device->tests[candidate->tests.first], candidate->tests.count, call))
            continue;
        if (!surely_keeps(precast_ready_unit(device, candidate->unit), call) &&
            precast_find_fault(index, device, call, &index->units[candidate->unit], &distance).stage !=
                PRECAST_AT_NOTHING)
            continue;
        if (!precast_meets_all(index, &index->units[candidate->unit], call->slots))
            continue;
        if (found->best)
            found->open |= read_differently(index, call, candidate->unit, found->best->unit);
        if (!found->best || is_better(index, candidate, distance, found))
            found->best = candidate, found->distance = distance;
        return; /* all types are one in a cell, and the next ones ask for less */
    }
}

/* The best unit of all cells that go with what is asked. */
static choice choose(const precast_index *index, const precast_device *device, const precast_call *call,
                     const precast_request *wanted) {
    precast_kernel_cells span = device->cells_of_kernel[call->kernel];
    choice found = {NULL, 0, 0, 0};
    uint64_t key[2], mask[2];
    memcpy(key, wanted->key, sizeof key);
    memcpy(mask, wanted->mask, sizeof mask);
    for (const precast_cell *cell = &device->cells[span.first], *end = cell + span.count; cell < end; cell++)
        if (precast_cell_fits(cell, key, mask))
            look_through(index, device, call, cell, &found);
    return found;
}

/* What keeps a unit from the call, where all of it is looked at. */
static precast_fault look_closely(const precast_index *index, const precast_device *device, const precast_call *call,
                                  const precast_candidate *candidate, int *hold) {
    const precast_unit_record *unit = &index->units[candidate->unit];
    uint32_t distance;
    precast_fault fault = precast_find_fault(index, device, call, unit, &distance);
    *hold = precast_hints_hold(&device->tests[candidate->tests.first], candidate->tests.count, call);
    if (fault.stage != PRECAST_AT_NOTHING)
        return fault;
    fault.stage = PRECAST_AT_HINTS;
    if (*hold)
        precast_find_unmet(index, unit, call, &fault);
    return fault;
}

/* Whether one that fails as `fault` does is nearer than the nearest so far: it fails later; with hints that hold; by
 * less; and of those that fail at their hints, which come in that order, it asks for less. */
static int is_nearer(precast_fault fault, int hold, precast_fault nearest, int nearest_holds) {
    if (fault.stage != nearest.stage)
        return fault.stage > nearest.stage;
    if (fault.slot != nearest.slot)
        return fault.slot > nearest.slot;
    if (fault.stage == PRECAST_AT_HINTS)
        return 1;
    return hold != nearest_holds ? hold : fault.distance < nearest.distance;
}

/* The unit that goes furthest along with the call. */
static precast_status explain_nearest(const precast_index *index, const precast_device *device,
                                      const precast_call *call, const precast_request *wanted) {
    precast_kernel_cells span = device->cells_of_kernel[call->kernel];
    precast_fault nearest = {PRECAST_AT_TYPES, 0, NULL, NULL, 0};
    uint64_t key[2], mask[2];
    uint32_t unit = 0;
    int any = 0, nearest_holds = 0;
    memcpy(key, wanted->key, sizeof key);
    memcpy(mask, wanted->mask, sizeof mask);
    for (const precast_cell *cell = &device->cells[span.first], *end = cell + span.count; cell < end; cell++) {
        for (uint32_t i = 0; precast_cell_fits(cell, key, mask) && i < cell->order.count; i++) {
            const precast_candidate *candidate = &device->candidates[cell->order.first + i];
            int hold;
            precast_fault fault = look_closely(index, device, call, candidate, &hold);
            if (!any || is_nearer(fault, hold, nearest, nearest_holds))
                any = 1, nearest = fault, nearest_holds = hold, unit = candidate->unit;
        }
    }
    precast_status status = precast_explain_fault(index, call, unit, nearest);
    precast_note_nearness((int)(((uint32_t)nearest.stage << 16 | (nearest.slot & 0x7fff)) * 2) + nearest_holds + 1);
    return status;
}

/* Whether the row says nothing else than the call. */
static int agrees(const precast_request *said, const precast_request *wanted) {
    uint64_t keys[2], masks[2], differ = 0;
    for (size_t at = 0; at < PRECAST_MAXIMUM_AXES; at += sizeof differ) {
        memcpy(&keys[0], said->key + at, sizeof differ), memcpy(&masks[0], said->mask + at, sizeof differ);
        memcpy(&keys[1], wanted->key + at, sizeof differ), memcpy(&masks[1], wanted->mask + at, sizeof differ);
        differ |= (keys[0] ^ keys[1]) & masks[0] & masks[1];
    }
    return !differ;
}

/* The best unit of what a row says and the call, where they do not differ. */
static choice choose_for_row(const precast_index *index, const precast_device *device, const precast_call *call,
                             const precast_row *row, const precast_request *wanted) {
    choice found = {NULL, 0, 0, 0};
    if (row->cell) {
        uint64_t key[2], mask[2];
        memcpy(key, wanted->key, sizeof key);
        memcpy(mask, wanted->mask, sizeof mask);
        if (precast_cell_fits(row->cell, key, mask))
            look_through(index, device, call, row->cell, &found);
        return found;
    }
    precast_request both = *wanted;
    for (int i = 0; i < PRECAST_MAXIMUM_AXES; i++)
        both.key[i] |= row->said.key[i], both.mask[i] |= row->said.mask[i];
    return agrees(&row->said, wanted) ? choose(index, device, call, &both) : found;
}

/* The first row of the selection table that holds and names a unit which fits. */
static choice choose_by_table(const precast_index *index, const precast_device *device, const precast_call *call,
                              const precast_table *table, const precast_request *wanted) {
    uint16_t room[PRECAST_MOST_ROWS + 1];
    precast_found_rows found = precast_find_rows(index, table, call, room);
    for (uint32_t next = found.first; next != PRECAST_NO_ROW; next = precast_next_row(&found)) {
        const precast_row *row = &table->rows[next];
        choice named = choose_for_row(index, device, call, row, wanted);
        if (!named.best)
            continue;
        atomic_store_explicit(&device->rows[named.best->unit], row->rule + 1, memory_order_relaxed);
        return named;
    }
    return (choice){NULL, 0, 0, 0};
}

/* Where the call leaves some axis open, what the table names; else the best of all that fit. */
static choice choose_with_rules(const precast_index *index, const precast_device *device, const precast_call *call,
                                const precast_request *wanted) {
    const precast_table *table = device->tables[call->kernel];
    if (table && memchr(wanted->mask, 0, index->kernels[call->kernel].axes.count)) {
        choice named = choose_by_table(index, device, call, table, wanted);
        if (named.best)
            return named;
    }
    choice found = choose(index, device, call, wanted);
    if (table && found.best)
        atomic_store_explicit(&device->rows[found.best->unit], 0, memory_order_relaxed);
    return found;
}

precast_status precast_select(const precast_release *release, const precast_device *device, const precast_call *call,
                              uint32_t *unit) {
    const precast_index *index = &release->index;
    const precast_kernel_cells *cells = &device->cells_of_kernel[call->kernel];
    precast_request wanted = {{0}, {0}};
    choice found = {NULL, 0, 0, 0};
    if (cells->sole) {
        look_through(index, device, call, &device->cells[cells->first], &found);
    } else {
        precast_status status = precast_read_request(index, call, &wanted);
        if (status != PRECAST_OK)
            return status;
        found = choose_with_rules(index, device, call, &wanted);
    }
    if (!found.cells)
        return precast_explain_nothing(index, device, call, &wanted);
    if (!found.best)
        return explain_nearest(index, device, call, &wanted);
    if (found.open)
        return precast_explain_choice(index, device, call, &wanted);
    *unit = found.best->unit;
    return PRECAST_OK;
}
