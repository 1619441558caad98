/* The selection table, made ready for a device. Each distinct expression of the conditions is a column, cut where the
 * rows change that may hold; what holds for a call is what all columns leave. */
#include "table.h"

#include <stdlib.h>
#include <string.h>

#include "grid.h"

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
    }
}

static precast_span conditions_of(const precast_index *index, const precast_table *table, uint32_t row) {
    return index->rules[table->rows[row].rule].conditions;
}

static int is_of(const precast_column *column, const precast_condition_record *condition) {
    return column->steps.first == condition->steps.first && column->steps.count == condition->steps.count;
}

static precast_column *find_column(const precast_index *index, precast_table *table,
                                   const precast_condition_record *condition) {
    for (uint32_t i = 0; i < table->column_count; i++)
        if (is_of(&table->columns[i], condition))
            return &table->columns[i];
    precast_column *column = &table->columns[table->column_count++];
    const precast_step_record *step = &index->steps[condition->steps.first];
    int is_argument = condition->steps.count == 1 && step->opcode == 1;
    *column = (precast_column){condition->steps, is_argument ? (uint32_t)step->operand : UINT32_MAX, 0, 0, 0};
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
    column->cut_count = kept;
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
    const int64_t *cuts = table->cuts + column->cuts;
    for (uint32_t i = 0; i <= column->cut_count + 1; i++) {
        uint64_t *set = table->sets + column->sets + (size_t)i * table->words;
        int64_t value = i ? (i <= column->cut_count ? cuts[i - 1] : 0) : INT64_MIN;
        for (uint32_t row = 0; row < table->row_count; row++)
            if (may_hold(index, table, column, row, i <= column->cut_count ? &value : NULL))
                set[row / 64] |= UINT64_C(1) << row % 64;
    }
}

static int fill_columns(const precast_index *index, precast_table *table, uint32_t conditions) {
    uint32_t cuts = 0, sets = 0;
    table->columns = calloc(conditions + 1, sizeof *table->columns);
    table->cuts = calloc(2 * (size_t)conditions + 1, sizeof *table->cuts);
    if (!table->columns || !table->cuts)
        return 0;
    for (uint32_t row = 0; row < table->row_count; row++) {
        precast_span span = conditions_of(index, table, row);
        for (uint32_t i = span.first; i < span.first + span.count; i++)
            find_column(index, table, &index->conditions[i]);
    }
    for (uint32_t i = 0; i < table->column_count; i++) {
        table->columns[i].cuts = cuts;
        table->columns[i].sets = sets;
        cut_column(index, table, &table->columns[i], table->cuts + cuts);
        cuts += table->columns[i].cut_count;
        sets += (table->columns[i].cut_count + 2) * table->words;
    }
    table->sets = calloc((size_t)sets + 1, sizeof *table->sets);
    for (uint32_t i = 0; table->sets && i < table->column_count; i++)
        fill_sets(index, table, &table->columns[i]);
    return table->sets != NULL;
}

void precast_free_table(precast_table *table) {
    if (!table)
        return;
    free(table->rows);
    free(table->columns);
    free(table->cuts);
    free(table->sets);
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
        if (fill_columns(index, table, conditions)) {
            *made = table;
            return PRECAST_OK;
        }
    }
    precast_free_table(table);
    return precast_fail(PRECAST_OUT_OF_MEMORY, "there is no memory for the tables of %s", device->facts.name);
}

/* Where the column's expression lies among its cuts; behind the last where it cannot be computed. */
static uint32_t find_place(const precast_index *index, const precast_table *table, const precast_column *column,
                           const precast_slot_record *types, const uint64_t *slots) {
    const int64_t *cuts = table->cuts + column->cuts, *from = cuts;
    int64_t stack[PRECAST_MAXIMUM_STACK], value;
    if (column->slot != UINT32_MAX && types[column->slot].type != PRECAST_U64)
        value = (int64_t)slots[column->slot];
    else if (precast_evaluate(index->steps + column->steps.first, column->steps.count, slots, types, stack))
        return column->cut_count + 1;
    else
        value = stack[0];
    /* Without a branch that depends on the value: calls need not be alike. */
    for (uint32_t left = column->cut_count, half; left; left -= half) {
        half = (left + 1) / 2;
        from += half & -(uint32_t)(from[half - 1] <= value);
    }
    return (uint32_t)(from - cuts);
}

void precast_find_rows(const precast_index *index, const precast_table *table, const precast_call *call,
                       uint64_t held[PRECAST_MOST_ROW_WORDS]) {
    const precast_slot_record *types = &index->slots[index->kernels[call->kernel].slots.first];
    for (uint32_t word = 0; word < table->words; word++)
        held[word] = UINT64_MAX;
    if (table->row_count % 64)
        held[table->words - 1] = (UINT64_C(1) << table->row_count % 64) - 1;
    for (const precast_column *column = table->columns, *end = column + table->column_count; column < end; column++) {
        uint32_t place = find_place(index, table, column, types, call->slots);
        const uint64_t *set = table->sets + column->sets + (size_t)place * table->words;
        for (uint32_t word = 0; word < table->words; word++)
            held[word] &= set[word];
    }
}
