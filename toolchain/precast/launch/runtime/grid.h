/* The grid language's postfix programs: the same results and errors as `precast.grid`. */
#ifndef PRECAST_GRID_H
#define PRECAST_GRID_H

#include "index.h"

#define PRECAST_MAXIMUM_STACK 64

/* Whether a program is well formed: no stack under- or overflow, one value left, arguments below `arguments`. */
int precast_grid_fits(const precast_step_record *steps, uint32_t count, uint32_t arguments);

/* A program of one step that is a number: most grids have a dimension of 1. */
static inline int precast_is_constant(const precast_step_record *steps, uint32_t count) {
    return count == 1 && steps->opcode == 0;
}

/* Whether a unit's grid stands in its spec; else each launch gives one. */
static inline int precast_has_grid(const precast_unit_record *unit) {
    return unit->grid_count[0] != 0;
}

/* The sign of a comparison; NULL for any other operator. */
const char *precast_comparison(uint32_t opcode);

/* Runs a well-formed program, or its first steps, and leaves what they have made on the stack. NULL, or what is wrong.
 * `types` are the slots' types. */
const char *precast_evaluate(const precast_step_record *steps, uint32_t count, const uint64_t *slots,
                             const precast_slot_record *types, int64_t stack[PRECAST_MAXIMUM_STACK]);

/* Runs a well-formed program; `what` names it in an error. */
precast_status precast_run_steps(const precast_step_record *steps, uint32_t count, const uint64_t *slots,
                                 const precast_slot_record *types, const char *what, int64_t *result);

/* Whether what a unit requires holds; what cannot be computed does not. */
static inline int precast_is_met(const precast_index *index, const precast_requirement_record *requirement,
                                 const precast_slot_record *types, const uint64_t *slots) {
    int64_t stack[PRECAST_MAXIMUM_STACK];
    return !precast_evaluate(index->steps + requirement->steps.first, requirement->steps.count, slots, types, stack) &&
           stack[0];
}

static inline int precast_meets_all(const precast_index *index, const precast_unit_record *unit, const uint64_t *slots) {
    const precast_slot_record *types = &index->slots[index->kernels[unit->kernel].slots.first];
    for (uint32_t i = unit->requires.first, end = i + unit->requires.count; i < end; i++)
        if (!precast_is_met(index, &index->requirements[i], types, slots))
            return 0;
    return 1;
}

#endif
