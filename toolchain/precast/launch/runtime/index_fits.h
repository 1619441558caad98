/* How the records of an index are checked: each table is cut into its owners' spans, one after another, so that no two
 * owners share a record and none is left over. */
#ifndef PRECAST_INDEX_FITS_H
#define PRECAST_INDEX_FITS_H

#include "index.h"

#define PRECAST_MOST_STEPS 256 /* of a grid program: `precast.grid` writes no longer one */

extern const uint32_t precast_record_sizes[PRECAST_SECTIONS]; /* bytes of a record of each table */

/* How far the owners' spans have come in each table. */
typedef struct precast_ends {
    uint32_t of[PRECAST_SECTIONS];
} precast_ends;

static inline uint32_t precast_count_of(const precast_index *index, int section) {
    return index->header->sections[section].count;
}

static inline int precast_span_fits(const precast_index *index, int section, precast_span span) {
    return (uint64_t)span.first + span.count <= precast_count_of(index, section);
}

/* Whether a span begins where the one before ended; it is passed then. */
static inline int precast_span_follows(const precast_index *index, int section, precast_span span, precast_ends *ends) {
    if (span.first != ends->of[section] || !precast_span_fits(index, section, span))
        return 0;
    ends->of[section] += span.count;
    return 1;
}

static inline int precast_text_fits(const precast_index *index, uint32_t place) {
    return place < precast_count_of(index, PRECAST_STRINGS);
}

static inline int precast_is_scalar(unsigned type) {
    return type >= PRECAST_I1 && type <= PRECAST_FP8E4B15;
}

/* index_kernels.c, index_units.c */
int precast_kernel_fits(const precast_index *index, uint32_t number, precast_ends *ends);
int precast_unit_fits(const precast_index *index, uint32_t kernel, const precast_unit_record *unit, precast_ends *ends);

/* interface.c: the digest of all that a launcher relies on, as `formats/interface.py` makes it. */
void precast_digest_interface(const precast_index *index, unsigned char digest[32]);

#endif
