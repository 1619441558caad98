/* The grid language's postfix programs: the same results and errors as `precast.grid`. */
#ifndef PRECAST_GRID_H
#define PRECAST_GRID_H

#include "index.h"

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

/* Runs a well-formed program; `what` names it in an error. `types` are the slots' types. */
precast_status precast_run_steps(const precast_step_record *steps, uint32_t count, const uint64_t *slots,
                                 const precast_slot_record *types, const char *what, int64_t *result);

#endif
