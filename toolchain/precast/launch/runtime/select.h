/* The parts of the choice: what a call asks for, what keeps a unit from it, and the sentences of a refusal. */
#ifndef PRECAST_SELECT_H
#define PRECAST_SELECT_H

#include "state.h"

/* A value number for each axis that is known, and 255 in the mask there. */
typedef struct precast_request {
    uint8_t key[PRECAST_MAXIMUM_AXES];
    uint8_t mask[PRECAST_MAXIMUM_AXES];
} precast_request;

/* Whether a cell goes with the values that are known of axes. */
static inline int precast_cell_fits(const precast_cell *cell, const uint64_t key[2], const uint64_t mask[2]) {
    return !(((cell->key[0] ^ key[0]) & cell->mask[0] & mask[0]) | ((cell->key[1] ^ key[1]) & cell->mask[1] & mask[1]));
}

/* What a unit fails at, in the order in which it is looked at: of several units the nearest fails last. */
typedef enum precast_stage { PRECAST_AT_TYPES, PRECAST_AT_PROMISES, PRECAST_AT_HINTS, PRECAST_AT_REQUIREMENTS,
               PRECAST_AT_NOTHING } precast_stage;

typedef struct precast_fault {
    precast_stage stage;
    uint32_t slot;                      /* at types */
    const precast_hint_record *promise; /* at promises */
    const precast_requirement_record *requirement; /* at requirements */
    uint64_t distance;                             /* of its sides */
} precast_fault;

/* request.c */
precast_status precast_read_request(const precast_index *index, const precast_call *call, precast_request *wanted);

/* fit.c */
/* What keeps the unit's types and promises from the call. `distance`: how far numbers are from the types that Triton
 * would give them, the less the better. */
precast_fault precast_find_fault(const precast_index *index, const precast_device *device, const precast_call *call,
                                 const precast_unit_record *unit, uint32_t *distance);
int precast_hints_hold(const precast_hint_record *hints, uint32_t count, const precast_call *call);
/* The first of the unit's requirements that does not hold, if there is one. */
void precast_find_unmet(const precast_index *index, const precast_unit_record *unit, const precast_call *call,
                        precast_fault *fault);

/* explain.c */
precast_status precast_explain_value(const precast_index *index, const precast_call *call, uint32_t axis);
precast_status precast_explain_nothing(const precast_index *index, const precast_device *device,
                                       const precast_call *call, const precast_request *wanted);
precast_status precast_explain_choice(const precast_index *index, const precast_device *device,
                                      const precast_call *call, const precast_request *wanted);
precast_status precast_explain_fault(const precast_index *index, const precast_call *call, uint32_t unit,
                                     precast_fault fault);

#endif
