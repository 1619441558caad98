#include "index.h"

#include <string.h>

#include "error.h"
#include "grid.h"
#include "sha256.h"

static const uint32_t record_sizes[PRECAST_SECTIONS] = {
    1, sizeof(precast_kernel_record), sizeof(precast_argument_record), sizeof(precast_slot_record),
    sizeof(precast_axis_record), sizeof(precast_value_record), sizeof(precast_file_record),
    sizeof(precast_image_record), sizeof(precast_unit_record), 1, sizeof(precast_parameter_record),
    sizeof(precast_hint_record), sizeof(precast_descriptor_record), sizeof(precast_step_record),
    sizeof(precast_buffer_record), sizeof(precast_rule_record), sizeof(precast_condition_record),
    sizeof(precast_assignment_record),
};

static uint32_t count_of(const precast_index *index, int section) {
    return index->header->sections[section].count;
}

static int span_fits(const precast_index *index, int section, precast_span span) {
    return (uint64_t)span.first + span.count <= count_of(index, section);
}

static int text_fits(const precast_index *index, uint32_t place) {
    return place < count_of(index, PRECAST_STRINGS);
}

static const void *section_of(const precast_index *index, int section) {
    return index->view.data + index->header->sections[section].offset;
}

static int sections_fit(const precast_index *index) {
    for (int i = 0; i < PRECAST_SECTIONS; i++) {
        precast_section section = index->header->sections[i];
        if (section.offset < sizeof(precast_header) || section.offset % 8 ||
            section.offset + (uint64_t)section.count * record_sizes[i] > index->view.size)
            return 0;
    }
    precast_section strings = index->header->sections[PRECAST_STRINGS];
    return strings.count && index->view.data[strings.offset + strings.count - 1] == 0;
}

static void point_at_sections(precast_index *index) {
    index->strings = section_of(index, PRECAST_STRINGS);
    index->kernels = section_of(index, PRECAST_KERNELS);
    index->arguments = section_of(index, PRECAST_ARGUMENTS);
    index->slots = section_of(index, PRECAST_SLOTS);
    index->axes = section_of(index, PRECAST_AXES);
    index->values = section_of(index, PRECAST_AXIS_VALUES);
    index->files = section_of(index, PRECAST_FILES);
    index->images = section_of(index, PRECAST_IMAGES);
    index->units = section_of(index, PRECAST_UNITS);
    index->slot_types = section_of(index, PRECAST_SLOT_TYPES);
    index->parameters = section_of(index, PRECAST_PARAMETERS);
    index->hints = section_of(index, PRECAST_HINTS);
    index->descriptors = section_of(index, PRECAST_DESCRIPTORS);
    index->steps = section_of(index, PRECAST_STEPS);
    index->buffers = section_of(index, PRECAST_BUFFERS);
    index->rules = section_of(index, PRECAST_RULES);
    index->conditions = section_of(index, PRECAST_CONDITIONS);
    index->assignments = section_of(index, PRECAST_ASSIGNMENTS);
    index->kernel_count = count_of(index, PRECAST_KERNELS);
    index->unit_count = count_of(index, PRECAST_UNITS);
    index->image_count = count_of(index, PRECAST_IMAGES);
    index->file_count = count_of(index, PRECAST_FILES);
}

static int rule_fits(const precast_index *index, const precast_kernel_record *kernel, const precast_rule_record *rule) {
    if (!span_fits(index, PRECAST_CONDITIONS, rule->conditions) ||
        !span_fits(index, PRECAST_ASSIGNMENTS, rule->assignments))
        return 0;
    for (uint32_t i = 0; i < rule->conditions.count; i++) {
        const precast_condition_record *condition = &index->conditions[rule->conditions.first + i];
        if (!span_fits(index, PRECAST_STEPS, condition->steps) || condition->relation > PRECAST_MORE ||
            !precast_grid_fits(index->steps + condition->steps.first, condition->steps.count, kernel->slots.count))
            return 0;
    }
    for (uint32_t i = 0; i < rule->assignments.count; i++) {
        const precast_assignment_record *assignment = &index->assignments[rule->assignments.first + i];
        if (assignment->axis >= kernel->axes.count || !assignment->value ||
            assignment->value > index->axes[kernel->axes.first + assignment->axis].values.count)
            return 0;
    }
    return 1;
}

static int axis_fits(const precast_index *index, const precast_axis_record *axis) {
    if (!text_fits(index, axis->name) || !span_fits(index, PRECAST_AXIS_VALUES, axis->values) ||
        axis->values.count > 254)
        return 0;
    for (uint32_t i = 0; i < axis->values.count; i++)
        if (!text_fits(index, index->values[axis->values.first + i].text))
            return 0;
    return 1;
}

static int kernel_fits(const precast_index *index, const precast_kernel_record *kernel) {
    if (!text_fits(index, kernel->name) || !text_fits(index, kernel->source) ||
        !span_fits(index, PRECAST_ARGUMENTS, kernel->arguments) || !span_fits(index, PRECAST_SLOTS, kernel->slots) ||
        !span_fits(index, PRECAST_AXES, kernel->axes) || !span_fits(index, PRECAST_UNITS, kernel->units) ||
        !span_fits(index, PRECAST_RULES, kernel->rules) || kernel->slots.count > PRECAST_MAXIMUM_SLOTS ||
        kernel->axes.count > PRECAST_MAXIMUM_AXES)
        return 0;
    for (uint32_t i = 0; i < kernel->arguments.count; i++) {
        const precast_argument_record *argument = &index->arguments[kernel->arguments.first + i];
        precast_span slots = {argument->first_slot, argument->slots};
        if (!text_fits(index, argument->name) || !span_fits(index, PRECAST_SLOTS, slots))
            return 0;
    }
    for (uint32_t i = 0; i < kernel->slots.count; i++) {
        const precast_slot_record *slot = &index->slots[kernel->slots.first + i];
        if (!text_fits(index, slot->name) || slot->argument >= kernel->arguments.count ||
            (slot->dtype_axis != PRECAST_NO_AXIS && slot->dtype_axis >= kernel->axes.count))
            return 0;
    }
    for (uint32_t i = 0; i < kernel->axes.count; i++)
        if (!axis_fits(index, &index->axes[kernel->axes.first + i]))
            return 0;
    for (uint32_t i = 0; i < kernel->rules.count; i++)
        if (!rule_fits(index, kernel, &index->rules[kernel->rules.first + i]))
            return 0;
    return 1;
}

static int hints_fit(const precast_index *index, precast_span hints, uint32_t slots) {
    if (!span_fits(index, PRECAST_HINTS, hints))
        return 0;
    for (uint32_t i = 0; i < hints.count; i++) {
        const precast_hint_record *hint = &index->hints[hints.first + i];
        if (hint->slot >= slots || hint->kind > PRECAST_RANGE32 || (hint->kind == PRECAST_DIVISIBLE && !hint->divisor))
            return 0;
    }
    return 1;
}

static int parameters_fit(const precast_index *index, const precast_unit_record *unit, uint32_t slots) {
    uint32_t descriptors = 0;
    if (!span_fits(index, PRECAST_PARAMETERS, unit->parameters) ||
        unit->parameters.count > PRECAST_MAXIMUM_SLOTS + 64)
        return 0;
    for (uint32_t i = 0; i < unit->parameters.count; i++) {
        const precast_parameter_record *parameter = &index->parameters[unit->parameters.first + i];
        if (parameter->kind > PRECAST_PARAMETER_PROFILE_SCRATCH)
            return 0;
        if (parameter->kind <= PRECAST_PARAMETER_DESCRIPTOR && parameter->slot >= slots)
            return 0;
        if (parameter->kind == PRECAST_PARAMETER_BUFFER && parameter->extra >= unit->buffers.count)
            return 0;
        if (parameter->kind == PRECAST_PARAMETER_DESCRIPTOR &&
            (++descriptors > PRECAST_MAXIMUM_DESCRIPTORS || parameter->extra >= count_of(index, PRECAST_DESCRIPTORS) ||
             index->descriptors[parameter->extra].rank > 5))
            return 0;
    }
    return 1;
}

static int buffers_fit(const precast_index *index, precast_span buffers) {
    if (!span_fits(index, PRECAST_BUFFERS, buffers) || buffers.count > 16)
        return 0;
    for (uint32_t i = 0; i < buffers.count; i++)
        if (!text_fits(index, index->buffers[buffers.first + i].pass_name))
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

static int unit_fits(const precast_index *index, const precast_unit_record *unit) {
    if (unit->kernel >= index->kernel_count)
        return 0;
    uint32_t slots = index->kernels[unit->kernel].slots.count;
    precast_span types = {unit->slot_types, slots};
    if (!text_fits(index, unit->text) || !text_fits(index, unit->symbol) ||
        !text_fits(index, unit->description) || unit->image >= index->image_count ||
        (unit->backend == PRECAST_HIP && !text_fits(index, unit->arch)) ||
        !span_fits(index, PRECAST_SLOT_TYPES, types) || !hints_fit(index, unit->hints, slots) ||
        !hints_fit(index, unit->promises, slots) || !buffers_fit(index, unit->buffers) ||
        !values_fit(index, unit) || !parameters_fit(index, unit, slots))
        return 0;
    for (int i = 0; i < 3; i++) {
        precast_span steps = {unit->grid_first[i], unit->grid_count[i]};
        if (!span_fits(index, PRECAST_STEPS, steps) ||
            !precast_grid_fits(index->steps + steps.first, steps.count, slots))
            return 0;
    }
    return 1;
}

static int everything_fits(const precast_index *index) {
    int fits = text_fits(index, index->header->name);
    for (uint32_t i = 0; fits && i < index->file_count; i++)
        fits = text_fits(index, index->files[i].path);
    for (uint32_t i = 0; fits && i < index->image_count; i++)
        fits = index->images[i].file < index->file_count &&
               index->images[i].offset <= index->files[index->images[i].file].size &&
               index->images[i].size <= index->files[index->images[i].file].size - index->images[i].offset;
    for (uint32_t i = 0; fits && i < index->kernel_count; i++)
        fits = kernel_fits(index, &index->kernels[i]);
    for (uint32_t i = 0; fits && i < index->unit_count; i++)
        fits = unit_fits(index, &index->units[i]);
    return fits;
}

static int digest_matches(const precast_index *index) {
    static const unsigned char zeros[32];
    size_t place = offsetof(precast_header, digest);
    unsigned char digest[32];
    precast_sha256 hash;
    precast_sha256_start(&hash);
    precast_sha256_add(&hash, index->view.data, place);
    precast_sha256_add(&hash, zeros, sizeof zeros);
    precast_sha256_add(&hash, index->view.data + place + 32, index->view.size - place - 32);
    precast_sha256_finish(&hash, digest);
    return !memcmp(digest, index->header->digest, 32);
}

static precast_status check_index(const char *path, const unsigned char *interface, precast_index *index) {
    const precast_header *header = index->header = (const precast_header *)index->view.data;
    if (index->view.size < sizeof *header || memcmp(header->magic, PRECAST_MAGIC, 8))
        return precast_fail(PRECAST_DAMAGED, "%s is not the index of a release", path);
    if (header->schema != PRECAST_SCHEMA)
        return precast_fail(PRECAST_MISMATCH, "%s has schema %u, this library reads schema %d", path, header->schema,
                            PRECAST_SCHEMA);
    if (header->launch_abi != PRECAST_LAUNCH_ABI)
        return precast_fail(PRECAST_MISMATCH, "%s has launch ABI %u, this library has launch ABI %d", path,
                            header->launch_abi, PRECAST_LAUNCH_ABI);
    if (header->size != index->view.size)
        return precast_fail(PRECAST_DAMAGED, "%s is %zu bytes long, its header says %llu", path, index->view.size,
                            (unsigned long long)header->size);
    if (!digest_matches(index))
        return precast_fail(PRECAST_DAMAGED, "%s does not match its own digest", path);
    if (interface && memcmp(header->interface, interface, 32)) {
        char theirs[65], ours[65];
        precast_hex(header->interface, theirs), precast_hex(interface, ours);
        return precast_fail(PRECAST_MISMATCH, "%s has interface %.12s, the launchers were generated for interface %.12s",
                            path, theirs, ours);
    }
    if (!sections_fit(index))
        return precast_fail(PRECAST_DAMAGED, "%s has a table that does not lie inside it", path);
    point_at_sections(index);
    if (!everything_fits(index))
        return precast_fail(PRECAST_DAMAGED, "%s has a record that points outside its table", path);
    return PRECAST_OK;
}

precast_status precast_open_index(const char *path, const unsigned char *interface, precast_index *index) {
    memset(index, 0, sizeof *index);
    precast_status status = precast_map_file(path, &index->view);
    if (status == PRECAST_OK)
        status = check_index(path, interface, index);
    if (status != PRECAST_OK)
        precast_unmap_file(&index->view);
    return status;
}
