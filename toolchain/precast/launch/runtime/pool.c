#include "pool.h"
#include "quota.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { SPARES = 16, CHUNKS_PER_THREAD = 8 };

typedef struct scratch {
    _Alignas(64) size_t bytes;
    _Alignas(64) unsigned char memory[];
} scratch;

typedef struct job {
    struct job *next;
    precast_entry entry;
    const uint64_t *arguments;
    const int32_t *grid;
    int64_t total, chunk;
    size_t scratch_bytes;
    _Atomic int64_t claimed;
    _Atomic int failed;
    precast_complaint complaint; /* of the thread that set `failed` */
    int helpers, most_helpers; /* guarded by the pool's lock */
} job;

struct precast_pool {
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    job *jobs;
    pthread_t threads[PRECAST_MOST_THREADS];
    int started;
    int stopping;
    _Atomic int wanted;  /* 0: as many as the process may run on */
    _Atomic int counted; /* those; 0: not counted yet */
    _Atomic(scratch *) spares[SPARES];
};

static int count_affinity(void) {
    for (int size = 1024; size <= 1 << 20; size *= 4) {
        cpu_set_t *set = CPU_ALLOC(size);
        int count = 0;
        if (!set)
            break;
        if (!sched_getaffinity(0, CPU_ALLOC_SIZE(size), set))
            count = CPU_COUNT_S(CPU_ALLOC_SIZE(size), set);
        CPU_FREE(set);
        if (count)
            return count;
    }
    return 1;
}

/* Those that the process may run on, and no more than its control groups have time for. */
static int count_processors(void) {
    int count = count_affinity(), quota = precast_quota("/proc/self/cgroup", "/sys/fs/cgroup");
    return quota && quota < count ? quota : count;
}

/* Scratch is lent from a few kept blocks, so that at most SPARES outlive the launches that needed them. */
static scratch *take_scratch(precast_pool *pool, size_t bytes) {
    for (int i = 0; i < SPARES; i++) {
        scratch *spare = atomic_exchange(&pool->spares[i], NULL);
        if (spare && spare->bytes >= bytes)
            return spare;
        free(spare);
    }
    size_t size = (sizeof(scratch) + bytes + 63) / 64 * 64;
    scratch *fresh = size < bytes ? NULL : aligned_alloc(64, size);
    if (fresh)
        fresh->bytes = bytes;
    return fresh;
}

static void give_scratch(precast_pool *pool, scratch *block) {
    for (int i = 0; block && i < SPARES; i++) {
        scratch *nothing = NULL;
        if (atomic_compare_exchange_strong(&pool->spares[i], &nothing, block))
            return;
    }
    free(block);
}

static void note_failure(job *work, const scratch *block) {
    int none = 0;
    if (atomic_compare_exchange_strong(&work->failed, &none, 1) && block && block->bytes >= sizeof work->complaint)
        memcpy(&work->complaint, block->memory, sizeof work->complaint);
}

static void run_chunks(precast_pool *pool, job *work) {
    scratch *block = NULL;
    int64_t begin;
    while ((begin = atomic_fetch_add(&work->claimed, work->chunk)) < work->total) {
        int64_t end = work->total - begin < work->chunk ? work->total : begin + work->chunk;
        if (work->scratch_bytes && !block && !(block = take_scratch(pool, work->scratch_bytes))) {
            atomic_store(&work->failed, -1);
            break;
        }
        if (block && block->bytes >= sizeof work->complaint)
            memset(block->memory, 0, sizeof work->complaint);
        if (work->entry(work->arguments, work->grid, begin, end, block ? block->memory : NULL))
            note_failure(work, block);
        if (atomic_load(&work->failed))
            break;
    }
    give_scratch(pool, block);
}

static job *find_work(precast_pool *pool) {
    for (job *work = pool->jobs; work; work = work->next)
        if (work->helpers < work->most_helpers && atomic_load(&work->claimed) < work->total &&
            !atomic_load(&work->failed))
            return work;
    return NULL;
}

static void *help(void *argument) {
    precast_pool *pool = argument;
    pthread_mutex_lock(&pool->lock);
    while (!pool->stopping) {
        job *work = find_work(pool);
        if (!work) {
            pthread_cond_wait(&pool->work, &pool->lock);
            continue;
        }
        work->helpers++;
        pthread_mutex_unlock(&pool->lock);
        run_chunks(pool, work);
        pthread_mutex_lock(&pool->lock);
        work->helpers--;
        if (!work->helpers)
            pthread_cond_broadcast(&pool->done);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

/* Signals are for the program's own threads. */
static int start_thread(precast_pool *pool) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&pool->threads[pool->started], NULL, help, pool);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pool->started += !failed;
    return !failed;
}

void precast_lock_pool(precast_pool *pool) {
    pthread_mutex_lock(&pool->lock);
}

void precast_unlock_pool(precast_pool *pool) {
    pthread_mutex_unlock(&pool->lock);
}

void precast_forget_threads(precast_pool *pool) {
    pool->jobs = NULL;
    pool->started = 0;
    atomic_store(&pool->counted, 0);
    pthread_cond_init(&pool->work, NULL);
    pthread_cond_init(&pool->done, NULL);
}

precast_pool *precast_open_pool(void) {
    precast_pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        return NULL;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->work, NULL);
    pthread_cond_init(&pool->done, NULL);
    return pool;
}

void precast_close_pool(precast_pool *pool) {
    if (!pool)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->stopping = 1;
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < pool->started; i++)
        pthread_join(pool->threads[i], NULL);
    for (int i = 0; i < SPARES; i++)
        free(atomic_load(&pool->spares[i]));
    pthread_cond_destroy(&pool->done);
    pthread_cond_destroy(&pool->work);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

void precast_pool_threads(precast_pool *pool, int count) {
    atomic_store(&pool->counted, 0);
    atomic_store(&pool->wanted, count);
}

static int wanted_threads(precast_pool *pool) {
    int wanted = atomic_load_explicit(&pool->wanted, memory_order_relaxed);
    if (!wanted)
        wanted = atomic_load_explicit(&pool->counted, memory_order_relaxed);
    if (!wanted) {
        int count = count_processors();
        wanted = count < PRECAST_MOST_THREADS ? count : PRECAST_MOST_THREADS;
        atomic_store(&pool->counted, wanted);
    }
    return wanted;
}

static void unlink_job(precast_pool *pool, job *work) {
    job **place = &pool->jobs;
    while (*place != work)
        place = &(*place)->next;
    *place = work->next;
}

static void share(precast_pool *pool, job *work, int threads) {
    int64_t chunks = (work->total + work->chunk - 1) / work->chunk;
    int helpers = chunks < threads ? (int)chunks - 1 : threads - 1;
    pthread_mutex_lock(&pool->lock);
    while (pool->started < helpers && start_thread(pool))
        continue;
    work->most_helpers = helpers;
    work->next = pool->jobs;
    pool->jobs = work;
    for (int i = 0; i < helpers; i++)
        pthread_cond_signal(&pool->work);
    pthread_mutex_unlock(&pool->lock);
    run_chunks(pool, work);
    pthread_mutex_lock(&pool->lock);
    unlink_job(pool, work);
    while (work->helpers)
        pthread_cond_wait(&pool->done, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}

int precast_run_programs(precast_pool *pool, precast_entry entry, const uint64_t *arguments, const int32_t grid[3],
                         size_t scratch_bytes, precast_complaint *complaint) {
    job work = {.entry = entry, .arguments = arguments, .grid = grid, .scratch_bytes = scratch_bytes};
    work.total = (int64_t)grid[0] * grid[1] * grid[2];
    work.chunk = work.total;
    int threads = work.total > 1 ? wanted_threads(pool) : 1;
    if (threads > 1) {
        int64_t chunk = work.total / ((int64_t)threads * CHUNKS_PER_THREAD);
        work.chunk = chunk ? chunk : 1;
        share(pool, &work, threads);
    } else {
        run_chunks(pool, &work);
    }
    if (complaint)
        *complaint = work.complaint;
    return atomic_load(&work.failed);
}
