/* Threads that run the programs of CPU launches; they start with the first launch that can use them. */
#ifndef PRECAST_POOL_H
#define PRECAST_POOL_H

#include <stddef.h>
#include <stdint.h>

/* A CPU unit: runs programs `begin` to `end` of the grid; `scratch` is the thread's own. 0, or 1 for a failed assert:
 * then a unit with scratch has left a `precast_complaint` in it. */
typedef int32_t (*precast_entry)(const uint64_t *arguments, const int32_t grid[3], int64_t begin, int64_t end,
                                 void *scratch);

/* What a unit leaves at the start of its scratch. */
typedef struct precast_complaint {
    int32_t status;
    int32_t unused;
    const char *words; /* of the first assert that failed, with its line where that is known; NULL: none */
    uint32_t program[3];
} precast_complaint;

typedef struct precast_pool precast_pool;

precast_pool *precast_open_pool(void); /* NULL: no memory */
void precast_close_pool(precast_pool *pool);

enum { PRECAST_MOST_THREADS = 1024 };

/* 0 to PRECAST_MOST_THREADS; 0: as many as the process may run on, counted by the next launch that wants to know and
 * in a forked child anew. Takes effect with the next launch. */
void precast_pool_threads(precast_pool *pool, int count);

/* Around a fork; a child has none of the threads. */
void precast_lock_pool(precast_pool *pool);
void precast_unlock_pool(precast_pool *pool);
void precast_forget_threads(precast_pool *pool);

/* Runs all programs and returns when they are done: 0, 1 for a failed assert, -1 for no memory for scratch. May be
 * called from any thread, several at a time, and from inside a unit. What one of the failed asserts said is copied to
 * `complaint`, which may be NULL. */
int precast_run_programs(precast_pool *pool, precast_entry entry, const uint64_t *arguments, const int32_t grid[3],
                         size_t scratch_bytes, precast_complaint *complaint);

#endif
