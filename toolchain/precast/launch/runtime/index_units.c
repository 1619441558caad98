/* Whether a unit's records in an index hold together: whose it is, what it takes from a call, where its image lies. */
#include <string.h>

#include "grid.h"
#include "index_fits.h"
#include "number.h"

enum { MOST_BUFFERS = 16, MOST_HINTS = 2 * PRECAST_MAXIMUM_SLOTS, MOST_PARAMETERS = PRECAST_MAXIMUM_SLOTS + 64 };
enum { MOST_REQUIREMENTS = 32 };
enum { /* kinds, as bits */
    HINTS = 1 << PRECAST_DIVISIBLE | 1 << PRECAST_ONE | 1 << PRECAST_ABSENT | 1 << PRECAST_PRESENT,
    PROMISES = 1 << PRECAST_DIVISIBLE | 1 << PRECAST_RANGE32 | 1 << PRECAST_PINNED
};
enum { MOST_THREADS = 1024 }; /* warps of a program, threads of a warp, blocks of a cluster */

static int hints_fit(const precast_index *index, precast_span hints, uint32_t slots, unsigned kinds) {
    if (!precast_span_fits(index, PRECAST_HINTS, hints) || hints.count > MOST_HINTS)
        return 0;
    for (uint32_t i = 0; i < hints.count; i++) {
        const precast_hint_record *hint = &index->hints[hints.first + i];
        if (hint->slot >= slots || hint->kind > PRECAST_PINNED || !(kinds >> hint->kind & 1) ||
            (hint->kind == PRECAST_DIVISIBLE && !hint->divisor))
            return 0;
    }
    return 1;
}

/* What a unit takes for a slot is of the slot's kind: nothing else is ever taken for an address. */
static int is_of_kind(unsigned type, unsigned slot) {
    if (slot == PRECAST_POINTER || slot == PRECAST_DESCRIPTOR)
        return (type & ~(unsigned)PRECAST_ELEMENT) == slot && (type & PRECAST_ELEMENT) <= PRECAST_FP8E4B15;
    return precast_is_scalar(type) && precast_is_float(type) == precast_is_float(slot);
}

/* Units that lack the argument, or take a number of another type, are told of by the slot. */
static int type_fits(unsigned type, const precast_slot_record *slot) {
    if (!type)
        return slot->flags & PRECAST_OPTIONAL;
    return is_of_kind(type, slot->type) && (!precast_is_scalar(slot->type) || type == slot->type ||
                                            slot->flags & PRECAST_VARIED);
}

/* 0 is the type of an argument that the unit does not have. */
static int types_fit(const precast_index *index, const precast_kernel_record *kernel, uint32_t first) {
    precast_span types = {first, kernel->slots.count};
    if (!precast_span_fits(index, PRECAST_SLOT_TYPES, types))
        return 0;
    for (uint32_t i = 0; i < types.count; i++)
        if (!type_fits(index->slot_types[first + i], &index->slots[kernel->slots.first + i]))
            return 0;
    return 1;
}

static int argument_fits(const precast_index *index, const precast_kernel_record *kernel,
                         const precast_parameter_record *parameter) {
    return parameter->slot < kernel->slots.count && parameter->extra <= 1 &&
           index->slots[kernel->slots.first + parameter->slot].type != PRECAST_DESCRIPTOR &&
           is_of_kind(parameter->type, index->slots[kernel->slots.first + parameter->slot].type);
}

static int descriptor_fits(const precast_index *index, const precast_kernel_record *kernel,
                           const precast_parameter_record *parameter, precast_ends *ends) {
    precast_span own = {parameter->extra, 1};
    if (parameter->slot >= kernel->slots.count || !precast_span_follows(index, PRECAST_DESCRIPTORS, own, ends))
        return 0;
    const precast_slot_record *slot = &index->slots[kernel->slots.first + parameter->slot];
    const precast_descriptor_record *descriptor = &index->descriptors[parameter->extra];
    return slot->type == PRECAST_DESCRIPTOR && is_of_kind(parameter->type, PRECAST_DESCRIPTOR) &&
           descriptor->rank == slot->rank && descriptor->tma <= 1;
}

/* Hidden parameters are in no slot; there is one for each buffer, and one scratch of a kind. */
static int hidden_fits(const precast_unit_record *unit, const precast_parameter_record *parameter, uint32_t *seen) {
    uint32_t number = parameter->kind == PRECAST_PARAMETER_BUFFER ? parameter->extra
                                                                  : MOST_BUFFERS + (uint32_t)parameter->kind;
    if (parameter->slot || (parameter->kind == PRECAST_PARAMETER_BUFFER ? parameter->extra >= unit->buffers.count
                                                                        : parameter->extra != 0) ||
        *seen >> number & 1)
        return 0;
    *seen |= UINT32_C(1) << number;
    return 1;
}

static int parameters_fit(const precast_index *index, const precast_unit_record *unit, precast_ends *ends) {
    const precast_kernel_record *kernel = &index->kernels[unit->kernel];
    uint32_t descriptors = 0, seen = 0, all = (UINT32_C(1) << unit->buffers.count) - 1;
    if (unit->parameters.count > MOST_PARAMETERS ||
        !precast_span_follows(index, PRECAST_PARAMETERS, unit->parameters, ends))
        return 0;
    for (uint32_t i = 0; i < unit->parameters.count; i++) {
        const precast_parameter_record *parameter = &index->parameters[unit->parameters.first + i];
        int fits = parameter->kind == PRECAST_PARAMETER_ARGUMENT     ? argument_fits(index, kernel, parameter)
                   : parameter->kind == PRECAST_PARAMETER_DESCRIPTOR ? descriptor_fits(index, kernel, parameter, ends)
                   : parameter->kind <= PRECAST_PARAMETER_PROFILE_SCRATCH ? hidden_fits(unit, parameter, &seen)
                                                                          : 0;
        descriptors += parameter->kind == PRECAST_PARAMETER_DESCRIPTOR;
        if (!fits || descriptors > PRECAST_MAXIMUM_DESCRIPTORS)
            return 0;
    }
    return (seen & all) == all;
}

static int buffers_fit(const precast_index *index, precast_span buffers, precast_ends *ends) {
    if (buffers.count > MOST_BUFFERS || !precast_span_follows(index, PRECAST_BUFFERS, buffers, ends))
        return 0;
    for (uint32_t i = 0; i < buffers.count; i++)
        if (!precast_text_fits(index, index->buffers[buffers.first + i].pass_name))
            return 0;
    return 1;
}

/* Each value is one of its axis, and there is none beyond the kernel's axes. */
static int values_fit(const precast_index *index, const precast_unit_record *unit) {
    precast_span axes = index->kernels[unit->kernel].axes;
    for (uint32_t i = 0; i < PRECAST_MAXIMUM_AXES; i++)
        if (unit->axes[i] > (i < axes.count ? index->axes[axes.first + i].values.count : 0))
            return 0;
    return 1;
}

/* Three programs, or none: then each launch gives the grid. */
static int grids_fit(const precast_index *index, const precast_unit_record *unit) {
    if (!precast_has_grid(unit))
        return !unit->grid_count[1] && !unit->grid_count[2];
    for (int i = 0; i < 3; i++) {
        precast_span steps = {unit->grid_first[i], unit->grid_count[i]};
        if (!precast_span_fits(index, PRECAST_STEPS, steps) || steps.count > PRECAST_MOST_STEPS ||
            !precast_grid_fits(index->steps + steps.first, steps.count, index->kernels[unit->kernel].slots.count))
            return 0;
    }
    return 1;
}

/* Each is a program that ends in a comparison. */
static int requirements_fit(const precast_index *index, const precast_unit_record *unit) {
    if (!precast_span_fits(index, PRECAST_REQUIREMENTS, unit->requires) || unit->requires.count > MOST_REQUIREMENTS)
        return 0;
    for (uint32_t i = 0; i < unit->requires.count; i++) {
        const precast_requirement_record *requirement = &index->requirements[unit->requires.first + i];
        precast_span steps = requirement->steps;
        if (!precast_text_fits(index, requirement->text) || !precast_span_fits(index, PRECAST_STEPS, steps) ||
            steps.count > PRECAST_MOST_STEPS ||
            !precast_grid_fits(index->steps + steps.first, steps.count, index->kernels[unit->kernel].slots.count) ||
            !precast_comparison(index->steps[steps.first + steps.count - 1].opcode))
            return 0;
    }
    return 1;
}

static int is_size(uint32_t value) {
    return value >= 1 && value <= MOST_THREADS;
}

static int is_alignment(uint32_t value) {
    return value && !(value & (value - 1));
}

static int numbers_fit(const precast_unit_record *unit) {
    return unit->backend >= PRECAST_CUDA && unit->backend <= PRECAST_HOST && unit->arch_kind <= PRECAST_ARCH_FAMILY &&
           unit->flags <= (PRECAST_COOPERATIVE | PRECAST_PDL) && is_size(unit->warps) && is_size(unit->ctas) &&
           is_size(unit->warp_size) && is_alignment(unit->global_scratch_align) &&
           is_alignment(unit->profile_scratch_align);
}

/* A CPU unit's image is a whole library. */
static int image_fits(const precast_index *index, const precast_unit_record *unit) {
    if (unit->image >= index->image_count)
        return 0;
    const precast_image_record *image = &index->images[unit->image];
    const precast_file_record *file = &index->files[image->file];
    return unit->backend != PRECAST_HOST || (!image->offset && image->size == file->size &&
                                             !memcmp(image->digest, file->digest, sizeof image->digest));
}

/* `kernel:…@target` or `kernel@target`. */
static int texts_fit(const precast_index *index, const precast_unit_record *unit) {
    if (!precast_text_fits(index, unit->text) || !precast_text_fits(index, unit->symbol) ||
        !precast_text_fits(index, unit->description) ||
        (unit->backend == PRECAST_HIP && !precast_text_fits(index, unit->arch)))
        return 0;
    const char *kernel = precast_text(index, index->kernels[unit->kernel].name), *text = precast_text(index, unit->text);
    size_t length = strlen(kernel);
    return !strncmp(text, kernel, length) && (text[length] == ':' || text[length] == '@') && strchr(text + length, '@');
}

int precast_unit_fits(const precast_index *index, uint32_t kernel, const precast_unit_record *unit, precast_ends *ends) {
    return unit->kernel == kernel && numbers_fit(unit) && image_fits(index, unit) && texts_fit(index, unit) &&
           types_fit(index, &index->kernels[kernel], unit->slot_types) &&
           hints_fit(index, unit->hints, index->kernels[kernel].slots.count, HINTS) &&
           hints_fit(index, unit->promises, index->kernels[kernel].slots.count, PROMISES) &&
           buffers_fit(index, unit->buffers, ends) && values_fit(index, unit) && parameters_fit(index, unit, ends) &&
           grids_fit(index, unit) && requirements_fit(index, unit);
}
