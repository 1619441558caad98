/* A kernel's rows of the selection table as one device takes them: which of them hold for a call is asked without a look
 * at each. */
#ifndef PRECAST_TABLE_H
#define PRECAST_TABLE_H

#include "select.h"

enum { PRECAST_MOST_ROWS = 4096, PRECAST_MOST_ROW_WORDS = PRECAST_MOST_ROWS / 64 };

/* One expression of the conditions. Between two cuts, which ascend, the same rows may hold. */
typedef struct precast_column {
    precast_span steps;
    uint32_t slot; /* of an expression that is one argument; UINT32_MAX: it is computed */
    uint32_t cuts, cut_count;
    uint32_t sets; /* the first of `cut_count` + 2 sets of rows; the last is that of a value that cannot be computed */
} precast_column;

/* A row that counts on the device: the axes that it says. */
typedef struct precast_row {
    precast_request said;
    uint32_t rule;
} precast_row;

struct precast_table {
    uint32_t row_count, words, column_count;
    precast_row *rows;
    precast_column *columns;
    int64_t *cuts;
    uint64_t *sets; /* a bit for each row */
};

/* The table of a kernel that has rows for the device; NULL in `table` where it has none. */
precast_status precast_make_table(const precast_index *index, const precast_device *device, uint32_t kernel,
                                  precast_table **table);
void precast_free_table(precast_table *table);
/* The rows whose conditions hold, as `words` words of bits. */
void precast_find_rows(const precast_index *index, const precast_table *table, const precast_call *call,
                       uint64_t held[PRECAST_MOST_ROW_WORDS]);

#endif
