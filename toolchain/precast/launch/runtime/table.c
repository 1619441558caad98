/* The selection table, made ready for a device. Each distinct expression of the conditions is a column, cut where the
 * rows change that may hold; what holds for a call is what all columns leave. That is worked out for every combination
 * of places among the cuts, so that a call finds its places and has its rows. */
#include "table.h"

#include <stdlib.h>
#include <string.h>

#include "grid.h"

enum { MOST_ROW_WORDS = PRECAST_MOST_ROWS / 64, FEW_LISTS = 4096, MOST_LIST_WORDS = 1 << 18, MOST_LISTED = 1 << 18 };

static int holds(const precast_condition_record *condition, int64_t value) {
    switch (condition->relation) {
    case PRECAST_LESS: return value < condition->bound;
    case PRECAST_AT_MOST: return value <= condition->bound;
    case PRECAST_EQUAL: return value == condition->bound;
    case PRECAST_UNEQUAL: return value != condition->bound;
    case PRECAST_AT_LEAST: return value >= condition->bound;
    default: return value > condition->bound;
    }
}

/* Whether some unit of the kernel for the target runs on the device. */
static int runs(const precast_index *index, const precast_device *device, uint32_t kernel, const char *target) {
    precast_span units = index->kernels[kernel].units;
    for (uint32_t i = units.first; i < units.first + units.count; i++) {
        const char *at = strrchr(precast_text(index, index->units[i].text), '@');
        if ((!*target || (at && !strcmp(at + 1, target))) && precast_runs_on(index, &index->units[i], device))
            return 1;
    }
    return 0;
}

/* Whose rows count: the device's own, else those of the first device of the table that has its target. */
static const char *choose_device(const precast_index *index, const precast_device *device, uint32_t kernel) {
    precast_span rules = index->kernels[kernel].rules;
    const char *first = NULL;
    for (uint32_t i = rules.first; i < rules.first + rules.count; i++) {
        const char *name = precast_text(index, index->rules[i].device);
        if (!*name || !runs(index, device, kernel, precast_text(index, index->rules[i].target)))
            continue;
        if (!strcmp(name, device->facts.product))
            return name;
        first = first ? first : name;
    }
    return first ? first : "";
}

static void say_axes(const precast_index *index, const precast_rule_record *rule, precast_request *said) {
    for (uint32_t i = 0; i < rule->assignments.count; i++) {
        const precast_assignment_record *each = &index->assignments[rule->assignments.first + i];
        said->key[each->axis] = (uint8_t)each->value;
        said->mask[each->axis] = 255;
    }
}

static int has_axes(const precast_cell *cell, const uint64_t mask[2]) {
    return !((mask[0] & ~cell->mask[0]) | (mask[1] & ~cell->mask[1]));
}

static const precast_cell *find_only_cell(const precast_device *device, uint32_t kernel, const precast_request *said) {
    precast_kernel_cells span = device->cells_of_kernel[kernel];
    const precast_cell *found = NULL;
    uint64_t key[2], mask[2];
    memcpy(key, said->key, sizeof key);
    memcpy(mask, said->mask, sizeof mask);
    for (const precast_cell *cell = &device->cells[span.first], *end = cell + span.count; cell < end; cell++) {
        if (!precast_cell_fits(cell, key, mask))
            continue;
        if (found)
            return NULL;
        found = cell;
    }
    return found && has_axes(found, mask) ? found : NULL;
}

static void list_rows(const precast_index *index, const precast_device *device, uint32_t kernel, precast_table *table) {
    precast_span rules = index->kernels[kernel].rules;
    const char *chosen = choose_device(index, device, kernel);
    for (uint32_t i = rules.first; i < rules.first + rules.count; i++) {
        const precast_rule_record *rule = &index->rules[i];
        const char *name = precast_text(index, rule->device);
        if ((*name && strcmp(name, chosen)) || !runs(index, device, kernel, precast_text(index, rule->target)))
            continue;
        precast_row *row = &table->rows[table->row_count++];
        row->rule = i;
        say_axes(index, rule, &row->said);
        row->cell = find_only_cell(device, kernel, &row->said);
    }
}

static precast_span conditions_of(const precast_index *index, const precast_table *table, uint32_t row) {
    return index->rules[table->rows[row].rule].conditions;
}

static int is_of(const precast_column *column, const precast_condition_record *condition) {
    return column->steps.first == condition->steps.first && column->steps.count == condition->steps.count;
}

/* The arguments that an expression multiplies one after another; none where it does anything else. */
static void find_factors(const precast_step_record *steps, const precast_slot_record *types, precast_column *column) {
    enum { ARGUMENT = 1, MULTIPLY = 4 };
    uint32_t count = (column->steps.count + 1) / 2;
    if (column->steps.count % 2 == 0 || count > PRECAST_MOST_FACTORS)
        return;
    for (uint32_t i = 0; i < count; i++) {
        const precast_step_record *step = &steps[i ? 2 * i - 1 : 0];
        if (step->opcode != ARGUMENT || types[step->operand].type == PRECAST_U64 ||
            (i && steps[2 * i].opcode != MULTIPLY))
            return;
        column->factors[i] = (uint32_t)step->operand;
    }
    column->factor_count = count;
}

static precast_column *find_column(const precast_index *index, precast_table *table,
                                   const precast_slot_record *types, const precast_condition_record *condition) {
    for (uint32_t i = 0; i < table->column_count; i++)
        if (is_of(&table->columns[i], condition))
            return &table->columns[i];
    precast_column *column = &table->columns[table->column_count++];
    column->steps = condition->steps;
    find_factors(&index->steps[condition->steps.first], types, column);
    return column;
}

static int compare_cuts(const void *left, const void *right) {
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return a < b ? -1 : a > b;
}

/* Where a condition's answer changes: at its bound, behind it, or both. */
static uint32_t cut(const precast_condition_record *condition, int64_t *cuts) {
    uint32_t count = 0, relation = condition->relation;
    if (relation != PRECAST_AT_MOST && relation != PRECAST_MORE)
        cuts[count++] = condition->bound;
    if (relation != PRECAST_LESS && relation != PRECAST_AT_LEAST && condition->bound != INT64_MAX)
        cuts[count++] = condition->bound + 1;
    return count;
}

/* An even number of cuts: where they are not, the last one is there twice. */
static void cut_column(const precast_index *index, const precast_table *table, precast_column *column, int64_t *cuts) {
    uint32_t count = 0, kept = 0;
    for (uint32_t row = 0; row < table->row_count; row++) {
        precast_span span = conditions_of(index, table, row);
        for (uint32_t i = span.first; i < span.first + span.count; i++)
            if (is_of(column, &index->conditions[i]))
                count += cut(&index->conditions[i], cuts + count);
    }
    qsort(cuts, count, sizeof *cuts, compare_cuts);
    for (uint32_t i = 0; i < count; i++)
        if (!i || cuts[i] != cuts[i - 1])
            cuts[kept++] = cuts[i];
    if (kept % 2)
        cuts[kept] = cuts[kept - 1], kept++;
    column->cuts = cuts;
    column->cut_count = kept;
}

/* A window of one width for all values leaves nothing to guess of how long a search is. */
static void start_windows(precast_column *column) {
    uint32_t counts[PRECAST_MOST_BITS] = {0}, before = 0;
    for (uint32_t i = 0; i < column->cut_count; i++)
        counts[precast_count_bits(column->cuts[i])]++;
    for (uint32_t bits = 0; bits < PRECAST_MOST_BITS; bits++)
        column->width = counts[bits] > column->width ? counts[bits] : column->width;
    column->width += column->width % 2;
    for (uint32_t bits = 0; bits < PRECAST_MOST_BITS; bits++) {
        uint32_t last = column->cut_count - column->width;
        column->starts[bits] = before < last ? before : last;
        before += counts[bits];
    }
}

/* Whether a row's conditions on a column hold; with `value` NULL, whether it has none. */
static int may_hold(const precast_index *index, const precast_table *table, const precast_column *column, uint32_t row,
                    const int64_t *value) {
    precast_span span = conditions_of(index, table, row);
    for (uint32_t i = span.first; i < span.first + span.count; i++)
        if (is_of(column, &index->conditions[i]) && !(value && holds(&index->conditions[i], *value)))
            return 0;
    return 1;
}

static void fill_sets(const precast_index *index, precast_table *table, const precast_column *column) {
    for (uint32_t i = 0; i <= column->cut_count + 1; i++) {
        uint64_t *set = table->sets + column->sets + (size_t)i * table->words;
        int64_t value = i ? (i <= column->cut_count ? column->cuts[i - 1] : 0) : INT64_MIN;
        for (uint32_t row = 0; row < table->row_count; row++)
            if (may_hold(index, table, column, row, i <= column->cut_count ? &value : NULL))
                set[row / 64] |= UINT64_C(1) << row % 64;
    }
}

static int fill_columns(const precast_index *index, precast_table *table, const precast_slot_record *types,
                        uint32_t conditions) {
    uint32_t cuts = 0, sets = 0;
    table->columns = calloc(conditions + 1, sizeof *table->columns);
    table->cuts = calloc(3 * (size_t)conditions + 1, sizeof *table->cuts);
    if (!table->columns || !table->cuts)
        return 0;
    for (uint32_t row = 0; row < table->row_count; row++) {
        precast_span span = conditions_of(index, table, row);
        for (uint32_t i = span.first; i < span.first + span.count; i++)
            find_column(index, table, types, &index->conditions[i]);
    }
    for (uint32_t i = 0; i < table->column_count; i++) {
        table->columns[i].sets = sets;
        cut_column(index, table, &table->columns[i], table->cuts + cuts);
        start_windows(&table->columns[i]);
        cuts += table->columns[i].cut_count;
        sets += (table->columns[i].cut_count + 2) * table->words;
    }
    table->sets = calloc((size_t)sets + 1, sizeof *table->sets);
    for (uint32_t i = 0; table->sets && i < table->column_count; i++)
        fill_sets(index, table, &table->columns[i]);
    return table->sets != NULL;
}

static uint32_t count_places(const precast_column *column) {
    return column->cut_count + 2;
}

static void hold_all(const precast_table *table, uint64_t *held) {
    for (uint32_t word = 0; word < table->words; word++)
        held[word] = UINT64_MAX;
    if (table->row_count % 64)
        held[table->words - 1] = (UINT64_C(1) << table->row_count % 64) - 1;
}

static uint16_t *list_held(const precast_table *table, const uint64_t *held, uint16_t *list) {
    for (uint32_t word = 0; word < table->words; word++)
        for (uint64_t left = held[word]; left; left &= left - 1)
            *list++ = (uint16_t)(64 * word + (uint32_t)__builtin_ctzll(left));
    *list++ = PRECAST_NO_ROW;
    return list; /* behind it */
}

/* How many combinations of places there are; 0 where these are too many. */
static uint32_t space_columns(precast_table *table) {
    uint64_t count = 1;
    for (uint32_t i = 0; i < table->column_count; i++) {
        table->columns[i].step = (uint32_t)count;
        count *= count_places(&table->columns[i]);
        if (count * table->words > MOST_LIST_WORDS)
            return 0;
    }
    return (uint32_t)count;
}

static void hold_in_list(const precast_table *table, uint32_t list, uint64_t *held) {
    hold_all(table, held);
    for (const precast_column *column = table->columns, *end = column + table->column_count; column < end; column++)
        precast_hold_at(table, column, list / column->step % count_places(column), held);
}

static int is_product(const precast_table *table) {
    for (uint32_t i = 0; i < table->column_count; i++)
        if (!table->columns[i].factor_count)
            return 0;
    return 1;
}

/* 0 where there is no memory. A table with too many lists has none, nor has one whose lists would lie so far apart that
 * a few words of each column are read sooner. */
static int make_lists(precast_table *table) {
    uint64_t held[MOST_ROW_WORDS];
    uint32_t lists = space_columns(table);
    size_t listed = lists;
    table->quick = table->words <= PRECAST_FEW_WORDS && is_product(table);
    if (!lists || (lists > FEW_LISTS && table->words <= PRECAST_FEW_WORDS))
        return 1;
    for (uint32_t list = 0; list < lists && listed <= MOST_LISTED; list++) {
        hold_in_list(table, list, held);
        for (uint32_t word = 0; word < table->words; word++)
            listed += (size_t)__builtin_popcountll(held[word]);
    }
    if (listed > MOST_LISTED)
        return 1;
    table->lists = malloc(lists * sizeof *table->lists);
    table->listed = malloc(listed * sizeof *table->listed);
    if (!table->lists || !table->listed)
        return 0;
    uint16_t *next = table->listed;
    for (uint32_t list = 0; list < lists; list++) {
        uint16_t *first = next;
        hold_in_list(table, list, held);
        next = list_held(table, held, next);
        table->lists[list] = (precast_list){*first, (uint32_t)(first + (*first != PRECAST_NO_ROW) - table->listed)};
    }
    table->quick = is_product(table);
    return 1;
}

void precast_free_table(precast_table *table) {
    if (!table)
        return;
    free(table->rows);
    free(table->columns);
    free(table->cuts);
    free(table->sets);
    free(table->lists);
    free(table->listed);
    free(table);
}

precast_status precast_make_table(const precast_index *index, const precast_device *device, uint32_t kernel,
                                  precast_table **made) {
    uint32_t rules = index->kernels[kernel].rules.count, conditions = 0;
    *made = NULL;
    if (!rules)
        return PRECAST_OK;
    precast_table *table = calloc(1, sizeof *table);
    if (table && (table->rows = calloc(rules, sizeof *table->rows))) {
        list_rows(index, device, kernel, table);
        table->words = (table->row_count + 63) / 64;
        for (uint32_t row = 0; row < table->row_count; row++)
            conditions += conditions_of(index, table, row).count;
        if (fill_columns(index, table, &index->slots[index->kernels[kernel].slots.first], conditions) &&
            make_lists(table)) {
            *made = table;
            return PRECAST_OK;
        }
    }
    precast_free_table(table);
    return precast_fail(PRECAST_OUT_OF_MEMORY, "there is no memory for the tables of %s", device->facts.name);
}

/* Where the column's expression lies among its cuts; behind the last where it cannot be computed. */
static uint32_t find_place(const precast_index *index, const precast_column *column, const precast_slot_record *types,
                           const uint64_t *slots) {
    int64_t stack[PRECAST_MAXIMUM_STACK];
    const precast_step_record *steps = index->steps + column->steps.first;
    if (column->factor_count)
        return precast_find_product(column, slots);
    if (precast_evaluate(steps, column->steps.count, slots, types, stack))
        return column->cut_count + 1;
    return precast_find_place(column, stack[0]);
}

precast_found_rows precast_find_rows_slowly(const precast_index *index, const precast_table *table,
                                            const precast_call *call, uint16_t room[PRECAST_MOST_ROWS + 1]) {
    const precast_slot_record *types = &index->slots[index->kernels[call->kernel].slots.first];
    const precast_column *columns = table->columns, *end = columns + table->column_count;
    precast_found_rows found = {0, table->words, NULL, {0}};
    uint64_t held[MOST_ROW_WORDS];
    uint32_t list = 0;
    if (table->lists) {
        for (const precast_column *column = columns; column < end; column++)
            list += column->step * find_place(index, column, types, call->slots);
        found.first = table->lists[list].first, found.others = table->listed + table->lists[list].others;
        return found;
    }
    hold_all(table, held);
    for (const precast_column *column = columns; column < end; column++)
        precast_hold_at(table, column, find_place(index, column, types, call->slots), held);
    if (table->words <= PRECAST_FEW_WORDS) {
        memcpy(found.held, held, table->words * sizeof *held);
        found.first = precast_take_row(&found);
        return found;
    }
    list_held(table, held, room);
    found.first = room[0], found.others = room + (room[0] != PRECAST_NO_ROW);
    return found;
}
