/* The interface digest, made of what the index says: a launcher that carries the same one passes just these slots and
 * axes, whatever else the index claims. `formats/interface.py` makes it from the plan. */
#include <string.h>

#include "grid.h"
#include "index_fits.h"
#include "sha256.h"

static void add_text(precast_sha256 *hash, const precast_index *index, uint32_t place) {
    const char *text = precast_text(index, place);
    precast_sha256_add(hash, text, strlen(text) + 1);
}

static void add_number(precast_sha256 *hash, int64_t value) {
    precast_sha256_add(hash, &value, sizeof value);
}

static void add_arguments(precast_sha256 *hash, const precast_index *index, const precast_kernel_record *kernel) {
    add_number(hash, kernel->arguments.count);
    for (uint32_t i = 0; i < kernel->arguments.count; i++) {
        const precast_argument_record *argument = &index->arguments[kernel->arguments.first + i];
        add_text(hash, index, argument->name);
        add_number(hash, argument->slots);
        for (uint32_t j = 0; j < argument->slots; j++) {
            const precast_slot_record *slot = &index->slots[argument->first_slot + j];
            add_text(hash, index, slot->name);
            add_number(hash, slot->type), add_number(hash, slot->constant);
            add_number(hash, slot->rank), add_number(hash, slot->dtype_axis);
        }
    }
}

static void add_axes(precast_sha256 *hash, const precast_index *index, const precast_kernel_record *kernel) {
    add_number(hash, kernel->axes.count);
    for (uint32_t i = 0; i < kernel->axes.count; i++) {
        const precast_axis_record *axis = &index->axes[kernel->axes.first + i];
        add_text(hash, index, axis->name);
        add_number(hash, axis->kind), add_number(hash, axis->values.count);
        for (uint32_t j = 0; j < axis->values.count; j++) {
            add_number(hash, index->values[axis->values.first + j].payload);
            add_text(hash, index, index->values[axis->values.first + j].text);
        }
    }
}

void precast_digest_interface(const precast_index *index, unsigned char digest[32]) {
    precast_sha256 hash;
    precast_sha256_start(&hash);
    add_number(&hash, index->header->schema), add_number(&hash, index->header->launch_abi);
    add_text(&hash, index, index->header->name);
    add_number(&hash, index->kernel_count);
    for (uint32_t i = 0; i < index->kernel_count; i++) {
        const precast_kernel_record *kernel = &index->kernels[i];
        add_text(&hash, index, kernel->name);
        add_text(&hash, index, kernel->source);
        add_arguments(&hash, index, kernel);
        add_axes(&hash, index, kernel);
        add_number(&hash, kernel->units.count && precast_has_grid(&index->units[kernel->units.first]));
        add_number(&hash, kernel->units.count);
        for (uint32_t j = 0; j < kernel->units.count; j++)
            add_text(&hash, index, index->units[kernel->units.first + j].text);
    }
    precast_sha256_finish(&hash, digest);
}
