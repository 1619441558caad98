/* A kernel's rows of the selection table as one device takes them: which of them hold for a call is looked up. */
#ifndef PRECAST_TABLE_H
#define PRECAST_TABLE_H

#include "select.h"

enum { PRECAST_MOST_ROWS = 4096, PRECAST_NO_ROW = UINT16_MAX, PRECAST_MOST_BITS = 64, PRECAST_FEW_CUTS = 8 };

/* One expression of the conditions. Between two cuts, which ascend, the same rows may hold. */
typedef struct precast_column {
    precast_span steps;
    uint32_t slot; /* of an expression that is one argument; UINT32_MAX: it is computed */
    uint32_t step; /* in `lists`, from one place among the cuts to the next */
    uint32_t cut_count; /* an even number */
    const int64_t *cuts;
    uint32_t sets; /* the first of `cut_count` + 2 sets of rows; the last is that of a value that cannot be computed */
    uint32_t width, starts[PRECAST_MOST_BITS]; /* a value of so many bits lies among `width` cuts from there on, an even number */
} precast_column;

/* A row that counts on the device: the axes that it says, and the device's only cell that goes with them and has all. */
typedef struct precast_row {
    precast_request said;
    uint32_t rule;
    const precast_cell *cell; /* NULL: there is none, or more than one */
} precast_row;

/* The rows that hold somewhere, in order: the first, and where the others begin, ended by PRECAST_NO_ROW. */
typedef struct precast_list {
    uint32_t first, others;
} precast_list;

struct precast_table {
    uint32_t row_count, words, column_count;
    uint32_t quick; /* there are lists, and every column is an argument */
    precast_row *rows;
    precast_column *columns;
    int64_t *cuts;
    uint64_t *sets;  /* a bit for each row */
    precast_list *lists; /* for each combination of places; NULL where these are too many */
    uint16_t *listed;
};

/* Of numbers that are not positive 0. */
static inline uint32_t precast_count_bits(int64_t value) {
    return value > 0 ? 64 - (uint32_t)__builtin_clzll((uint64_t)value) : 0;
}

/* Where a value lies among a column's cuts. Without a branch that depends on the value: calls need not be alike. */
static inline uint32_t precast_find_place(const precast_column *column, int64_t value) {
    uint32_t place = column->starts[precast_count_bits(value)], left = column->width;
    for (uint32_t half; left > PRECAST_FEW_CUTS; left -= half) {
        half = left / 4 * 2;
        place += half & -(uint32_t)(column->cuts[place + half - 1] <= value);
    }
    const int64_t *cut = column->cuts + place;
    for (const int64_t *end = cut + left; cut < end; cut += 2)
        place += (uint32_t)(cut[0] <= value) + (uint32_t)(cut[1] <= value);
    return place;
}

/* The table of a kernel that has rows for the device; NULL in `table` where it has none. */
precast_status precast_make_table(const precast_index *index, const precast_device *device, uint32_t kernel,
                                  precast_table **table);
void precast_free_table(precast_table *table);

/* The rows whose conditions hold for a call, from the first on, which is PRECAST_NO_ROW where none does. */
typedef struct precast_found_rows {
    uint32_t first;
    const uint16_t *others;
} precast_found_rows;

/* As below, for what has to be computed, or has no lists: that is written to `room`. */
precast_found_rows precast_find_rows_slowly(const precast_index *index, const precast_table *table,
                                            const precast_call *call, uint16_t room[PRECAST_MOST_ROWS + 1]);

static inline precast_found_rows precast_find_rows(const precast_index *index, const precast_table *table,
                                                   const precast_call *call, uint16_t room[PRECAST_MOST_ROWS + 1]) {
    uint32_t place = 0;
    if (!table->quick)
        return precast_find_rows_slowly(index, table, call, room);
    for (const precast_column *column = table->columns, *end = column + table->column_count; column < end; column++)
        place += column->step * precast_find_place(column, (int64_t)call->slots[column->slot]);
    return (precast_found_rows){table->lists[place].first, table->listed + table->lists[place].others};
}

#endif
