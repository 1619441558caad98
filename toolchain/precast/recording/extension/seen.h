/* What a process has launched, as numbers: which launches are like one before, and how many there were of each. */
#ifndef PRECAST_SEEN_H
#define PRECAST_SEEN_H

#include <Python.h>
#include <stdint.h>

typedef struct seen_entry {
    uint64_t key; /* 0: a free place */
    uint64_t count;
    PyObject *held;   /* so that its address stays its own */
    PyObject *about;  /* of a tuner: its function, and the choices that it keeps */
    Py_ssize_t known; /* of a function, so many launches of it that are told apart; of a tuner, choices */
    long number;      /* what a launch is noted as; -1 for nothing */
} seen_entry;

typedef struct seen_table {
    seen_entry *entries;
    size_t used, room; /* room: 0 or a power of two */
} seen_table;

seen_entry *seen_find(const seen_table *table, uint64_t key); /* NULL where it is not there */
seen_entry *seen_add(seen_table *table, uint64_t key, PyObject *held); /* found or new; NULL with an error set */
void seen_forget(seen_table *table);

static inline uint64_t seen_mix(uint64_t hash, uint64_t word) {
    uint64_t mixed = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return mixed ^ (mixed >> 29);
}

static inline uint64_t seen_key(const void *object, uint64_t kind) {
    return seen_mix(seen_mix(kind, (uint64_t)(uintptr_t)object), kind) | 1;
}

#endif
