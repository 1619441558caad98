/* A table by keys of 64 bits that are hashes already. */
#include "seen.h"

#include <stdlib.h>

static seen_entry *place_of(const seen_table *table, uint64_t key) {
    size_t place = (size_t)key & (table->room - 1);
    while (table->entries[place].key && table->entries[place].key != key)
        place = (place + 1) & (table->room - 1);
    return &table->entries[place];
}

seen_entry *seen_find(const seen_table *table, uint64_t key) {
    seen_entry *found = table->room ? place_of(table, key) : NULL;
    return found && found->key ? found : NULL;
}

static int grow(seen_table *table) {
    seen_table larger = {NULL, table->used, table->room ? 2 * table->room : 256};
    larger.entries = calloc(larger.room, sizeof *larger.entries);
    if (!larger.entries)
        return PyErr_NoMemory(), -1;
    for (size_t i = 0; i < table->room; i++)
        if (table->entries[i].key)
            *place_of(&larger, table->entries[i].key) = table->entries[i];
    free(table->entries);
    *table = larger;
    return 0;
}

seen_entry *seen_add(seen_table *table, uint64_t key, PyObject *held) {
    seen_entry *found = seen_find(table, key);
    if (found)
        return found;
    if (2 * (table->used + 1) > table->room && grow(table))
        return NULL;
    found = place_of(table, key);
    *found = (seen_entry){.key = key, .held = held, .number = -1};
    Py_XINCREF(held);
    table->used++;
    return found;
}

void seen_forget(seen_table *table) {
    seen_entry *entries = table->entries;
    size_t room = table->room;
    *table = (seen_table){NULL, 0, 0};
    for (size_t i = 0; i < room; i++) {
        Py_XDECREF(entries[i].held);
        Py_XDECREF(entries[i].about);
    }
    free(entries);
}
