/* Whether a unit takes a call's arguments: their types, the spec's promises, the unit's hints. */
#include "grid.h"
#include "number.h"
#include "select.h"

/* A null pointer is an argument that is absent, but where it is known to be an empty tensor. */
static int is_absent(const precast_call *call, uint32_t slot) {
    unsigned type = call->types ? call->types[slot] & PRECAST_ELEMENT : 0;
    return !call->slots[slot] && (!type || type == PRECAST_NOTHING);
}

static inline int hint_holds(const precast_hint_record *hint, const precast_call *call) {
    uint64_t value = call->slots[hint->slot];
    switch (hint->kind) {
    case PRECAST_ONE:
        return value == 1;
    case PRECAST_ABSENT:
        return is_absent(call, hint->slot);
    case PRECAST_PRESENT:
        return !is_absent(call, hint->slot);
    case PRECAST_PINNED:
        return (int64_t)value == (int32_t)hint->divisor;
    default:
        return (hint->divisor & (hint->divisor - 1)) ? value % hint->divisor == 0 : !(value & (hint->divisor - 1));
    }
}

int precast_hints_hold(const precast_hint_record *hint, uint32_t count, const precast_call *call) {
    for (const precast_hint_record *end = hint + count; hint < end; hint++)
        if (!hint_holds(hint, call))
            return 0;
    return 1;
}

/* Triton's types of numbers, each taken where the ones before do not hold the value. */
static int place_of(unsigned type) {
    switch (type) {
    case PRECAST_I1: return 0;
    case PRECAST_FP32:
    case PRECAST_I32: return 1;
    case PRECAST_FP64:
    case PRECAST_I64: return 2;
    case PRECAST_U64: return 3;
    default: return 8; /* never by itself: taken where it is all that there is */
    }
}

static unsigned natural_type(uint64_t value, unsigned given, unsigned from) {
    return given == PRECAST_I1 ? PRECAST_I1
           : precast_integer_fits(value, from, PRECAST_I32) ? PRECAST_I32
           : precast_integer_fits(value, from, PRECAST_I64) ? PRECAST_I64
                                                           : PRECAST_U64;
}

/* How far `wanted` is from the type that Triton gives the number; -1 where it does not hold it. */
static int find_distance(const precast_call *call, uint32_t place, unsigned slot_type, unsigned wanted) {
    enum { NOT_GIVEN = 16 };
    unsigned given = call->types ? call->types[place] & PRECAST_ELEMENT : 0;
    uint64_t value = call->slots[place];
    if (!wanted) /* absent here: what says nothing may stand for it where nothing else can */
        return given == PRECAST_NOTHING ? 0 : given || value ? -1 : NOT_GIVEN;
    if (given == PRECAST_NOTHING)
        return -1;
    if (precast_is_float(wanted))
        return place_of(wanted) - place_of(PRECAST_FP32);
    unsigned from = given == PRECAST_U64 ? PRECAST_U64 : slot_type;
    if (!precast_integer_fits(value, from, wanted))
        return -1;
    int distance = place_of(wanted) - place_of(natural_type(value, given, from));
    return distance < 0 ? 8 - distance : distance;
}

/* Whether a tensor's element type, where it is known, is the unit's. Only an absent argument takes a null pointer, where
 * some unit has one. */
static int is_of_type(const precast_call *call, uint32_t slot, unsigned wanted, int optional) {
    unsigned given = call->types ? call->types[slot] & PRECAST_ELEMENT : 0;
    if (!wanted || (optional && is_absent(call, slot)))
        return !wanted && is_absent(call, slot);
    return given != PRECAST_NOTHING && (!given || !(wanted & PRECAST_ELEMENT) || given == (wanted & PRECAST_ELEMENT));
}

static int slot_fits(const precast_index *index, const precast_call *call, const precast_unit_record *unit,
                     uint32_t place, uint32_t *distance) {
    const precast_slot_record *slot = &index->slots[index->kernels[unit->kernel].slots.first + place];
    unsigned wanted = index->slot_types[unit->slot_types + place];
    if (slot->type & (PRECAST_POINTER | PRECAST_DESCRIPTOR))
        return is_of_type(call, place, wanted, slot->flags & PRECAST_OPTIONAL);
    if (!(slot->flags & PRECAST_VARIED))
        return 1;
    int far = find_distance(call, place, slot->type, wanted);
    *distance += far > 0 ? (uint32_t)far : 0;
    return far >= 0;
}

static int writes_read_only(const precast_index *index, const precast_call *call, const precast_unit_record *unit,
                            uint32_t *slot) {
    const precast_parameter_record *parameter = &index->parameters[unit->parameters.first];
    for (const precast_parameter_record *end = parameter + unit->parameters.count; parameter < end; parameter++)
        if (parameter->kind == PRECAST_PARAMETER_ARGUMENT && parameter->extra &&
            call->types[parameter->slot] & PRECAST_READ_ONLY)
            return *slot = parameter->slot, 1;
    return 0;
}

/* Whether a buffer is known to end beyond 2 GiB. Where only its allocation is known, that is what is measured. */
static int is_beyond_range32(const precast_device *device, const precast_call *call, uint16_t slot) {
    uint64_t bytes = call->sizes ? call->sizes[slot] : 0;
    if (!bytes && device->driver && device->driver->backend == PRECAST_HIP && call->slots[slot] &&
        device->driver->extent((const void *)(uintptr_t)call->slots[slot], &bytes))
        bytes = 0;
    return bytes > INT32_MAX;
}

precast_fault precast_find_fault(const precast_index *index, const precast_device *device, const precast_call *call,
                                 const precast_unit_record *unit, uint32_t *distance) {
    precast_fault fault = {PRECAST_AT_TYPES, 0, NULL, NULL, 0};
    *distance = 0;
    for (uint32_t count = index->kernels[unit->kernel].slots.count; fault.slot < count; fault.slot++)
        if (!slot_fits(index, call, unit, fault.slot, distance))
            return fault;
    if (call->types && writes_read_only(index, call, unit, &fault.slot))
        return fault;
    fault.stage = PRECAST_AT_PROMISES;
    for (uint32_t i = unit->promises.first; i < unit->promises.first + unit->promises.count; i++) {
        fault.promise = &index->hints[i];
        if (fault.promise->kind == PRECAST_RANGE32 ? is_beyond_range32(device, call, fault.promise->slot)
                                                   : !hint_holds(fault.promise, call))
            return fault;
    }
    fault.stage = PRECAST_AT_NOTHING;
    return fault;
}

/* How far the sides of a comparison are apart: further than any where they cannot be computed. */
static uint64_t find_gap(const precast_index *index, const precast_requirement_record *requirement,
                         const precast_slot_record *types, const precast_call *call) {
    int64_t stack[PRECAST_MAXIMUM_STACK];
    if (precast_evaluate(index->steps + requirement->steps.first, requirement->steps.count - 1, call->slots, types, stack))
        return UINT64_MAX;
    return stack[0] < stack[1] ? (uint64_t)stack[1] - (uint64_t)stack[0] : (uint64_t)stack[0] - (uint64_t)stack[1];
}

void precast_find_unmet(const precast_index *index, const precast_unit_record *unit, const precast_call *call,
                        precast_fault *fault) {
    const precast_slot_record *types = &index->slots[index->kernels[unit->kernel].slots.first];
    for (uint32_t i = 0; i < unit->requires.count; i++) {
        const precast_requirement_record *requirement = &index->requirements[unit->requires.first + i];
        if (precast_is_met(index, requirement, types, call->slots))
            continue;
        fault->stage = PRECAST_AT_REQUIREMENTS;
        fault->requirement = requirement;
        fault->distance = find_gap(index, requirement, types, call);
        return;
    }
}
