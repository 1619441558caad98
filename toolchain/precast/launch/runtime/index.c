#include "index.h"

#include <string.h>

#include "error.h"
#include "index_fits.h"
#include "sha256.h"

const uint32_t precast_record_sizes[PRECAST_SECTIONS] = {
    1, sizeof(precast_kernel_record), sizeof(precast_argument_record), sizeof(precast_slot_record),
    sizeof(precast_axis_record), sizeof(precast_value_record), sizeof(precast_file_record),
    sizeof(precast_image_record), sizeof(precast_unit_record), 1, sizeof(precast_parameter_record),
    sizeof(precast_hint_record), sizeof(precast_descriptor_record), sizeof(precast_step_record),
    sizeof(precast_buffer_record), sizeof(precast_rule_record), sizeof(precast_condition_record),
    sizeof(precast_assignment_record), sizeof(precast_requirement_record),
};

static const void *section_of(const precast_index *index, int section) {
    return index->view.data + index->header->sections[section].offset;
}

static int sections_fit(const precast_index *index) {
    for (int i = 0; i < PRECAST_SECTIONS; i++) {
        precast_section section = index->header->sections[i];
        if (section.offset < sizeof(precast_header) || section.offset % 8 ||
            section.offset + (uint64_t)section.count * precast_record_sizes[i] > index->view.size)
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
    index->requirements = section_of(index, PRECAST_REQUIREMENTS);
    index->kernel_count = precast_count_of(index, PRECAST_KERNELS);
    index->unit_count = precast_count_of(index, PRECAST_UNITS);
    index->image_count = precast_count_of(index, PRECAST_IMAGES);
    index->file_count = precast_count_of(index, PRECAST_FILES);
}

static int image_fits(const precast_index *index, const precast_image_record *image) {
    if (image->file >= index->file_count || image->size > PRECAST_MOST_IMAGE_BYTES)
        return 0;
    uint64_t size = index->files[image->file].size;
    return image->offset <= size && image->size <= size - image->offset;
}

/* Files have paths of their own, in order, that stay inside the release. */
static int file_fits(const precast_index *index, uint32_t number) {
    const precast_file_record *file = &index->files[number];
    return precast_text_fits(index, file->path) && file->size && file->size <= PRECAST_MOST_FILE_BYTES &&
           precast_stays_inside(precast_text(index, file->path)) &&
           (!number || strcmp(precast_text(index, file[-1].path), precast_text(index, file->path)) < 0);
}

/* Whether the owners' spans came to the end of each table that has owners. */
static int all_owned(const precast_index *index, const precast_ends *ends) {
    static const uint8_t owned[] = {
        PRECAST_ARGUMENTS, PRECAST_SLOTS, PRECAST_AXES, PRECAST_AXIS_VALUES, PRECAST_UNITS, PRECAST_PARAMETERS,
        PRECAST_DESCRIPTORS, PRECAST_BUFFERS, PRECAST_RULES, PRECAST_CONDITIONS, PRECAST_ASSIGNMENTS,
    };
    for (size_t i = 0; i < sizeof owned; i++)
        if (ends->of[owned[i]] != precast_count_of(index, owned[i]))
            return 0;
    return 1;
}

static int everything_fits(const precast_index *index) {
    precast_ends ends = {{0}};
    int fits = precast_text_fits(index, index->header->name);
    for (uint32_t i = 0; fits && i < index->file_count; i++)
        fits = file_fits(index, i);
    for (uint32_t i = 0; fits && i < index->image_count; i++)
        fits = image_fits(index, &index->images[i]);
    for (uint32_t i = 0; fits && i < index->kernel_count; i++)
        fits = precast_kernel_fits(index, i, &ends);
    return fits && all_owned(index, &ends);
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
    unsigned char digest[32];
    precast_digest_interface(index, digest);
    if (memcmp(header->interface, digest, 32))
        return precast_fail(PRECAST_DAMAGED, "%s has other kernels than its interface digest says", path);
    return PRECAST_OK;
}

precast_status precast_open_index(const char *path, const unsigned char *interface, precast_index *index) {
    memset(index, 0, sizeof *index);
    precast_status status = precast_read_file(path, PRECAST_MOST_INDEX_BYTES, &index->view);
    if (status == PRECAST_OK)
        status = check_index(path, interface, index);
    if (status != PRECAST_OK)
        precast_drop_view(&index->view);
    return status;
}
