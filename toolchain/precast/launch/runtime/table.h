/* A kernel's rows of the selection table as one device takes them: which of them hold for a call is looked up. */
#ifndef PRECAST_TABLE_H
#define PRECAST_TABLE_H

#include "select.h"

enum { PRECAST_MOST_ROWS = 4096, PRECAST_NO_ROW = UINT16_MAX, PRECAST_MOST_BITS = 64, PRECAST_FEW_CUTS = 8,
       PRECAST_MOST_FACTORS = 4, PRECAST_FEW_WORDS = 4 };

/* One expression of the conditions. Between two cuts, which ascend, the same rows may hold. */
typedef struct precast_column {
    precast_span steps;
    uint32_t factor_count, factors[PRECAST_MOST_FACTORS]; /* slots of arguments that are multiplied in this order; none:
                                                           * the steps say something else */
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
    uint32_t quick; /* there are lists or few words, and every column is an argument or a product of some */
    precast_row *rows;
    precast_column *columns;
    int64_t *cuts;
    uint64_t *sets;  /* a bit for each row */
    precast_list *lists; /* for each combination of places; NULL where these are too many, or few words are read sooner */
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

/* The place of a column's product; behind the last cut where it overflows. */
static inline uint32_t precast_find_product(const precast_column *column, const uint64_t *slots) {
    int64_t value = (int64_t)slots[column->factors[0]];
    for (uint32_t i = 1; i < column->factor_count; i++)
        if (__builtin_mul_overflow(value, (int64_t)slots[column->factors[i]], &value))
            return column->cut_count + 1;
    return precast_find_place(column, value);
}

/* The table of a kernel that has rows for the device; NULL in `table` where it has none. */
precast_status precast_make_table(const precast_index *index, const precast_device *device, uint32_t kernel,
                                  precast_table **table);
void precast_free_table(precast_table *table);

/* The rows whose conditions hold for a call, from the first on, which is PRECAST_NO_ROW where none does. */
typedef struct precast_found_rows {
    uint32_t first, words;
    const uint16_t *others; /* NULL: they are those of `held`, a bit for each row */
    uint64_t held[PRECAST_FEW_WORDS];
} precast_found_rows;

/* The first row of those held, which is taken out. */
static inline uint32_t precast_take_row(precast_found_rows *found) {
    for (uint32_t word = 0; word < found->words; word++) {
        uint64_t left = found->held[word];
        found->held[word] = left & (left - 1);
        if (left)
            return 64 * word + (uint32_t)__builtin_ctzll(left);
    }
    return PRECAST_NO_ROW;
}

static inline uint32_t precast_next_row(precast_found_rows *found) {
    return found->others ? *found->others++ : precast_take_row(found);
}

/* Leaves those that hold at a place of a column. */
static inline void precast_hold_at(const precast_table *table, const precast_column *column, uint32_t place,
                                   uint64_t *held) {
    const uint64_t *set = table->sets + column->sets + (size_t)place * table->words;
    for (uint32_t word = 0; word < table->words; word++)
        held[word] &= set[word];
}

/* As below, for what has to be computed, or has no lists: that is written to `room`. */
precast_found_rows precast_find_rows_slowly(const precast_index *index, const precast_table *table,
                                            const precast_call *call, uint16_t room[PRECAST_MOST_ROWS + 1]);

static inline precast_found_rows precast_find_rows(const precast_index *index, const precast_table *table,
                                                   const precast_call *call, uint16_t room[PRECAST_MOST_ROWS + 1]) {
    const precast_column *columns = table->columns, *end = columns + table->column_count;
    precast_found_rows found = {0, table->words, NULL, {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX}};
    uint32_t place = 0;
    if (!table->quick)
        return precast_find_rows_slowly(index, table, call, room);
    if (table->lists) {
        for (const precast_column *column = columns; column < end; column++)
            place += column->step * precast_find_product(column, call->slots);
        found.first = table->lists[place].first, found.others = table->listed + table->lists[place].others;
        return found;
    }
    for (const precast_column *column = columns; column < end; column++)
        precast_hold_at(table, column, precast_find_product(column, call->slots), found.held);
    found.first = precast_take_row(&found);
    return found;
}

#endif
