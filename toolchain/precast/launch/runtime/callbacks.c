/* The caller's functions: changed at any time, read whole by launches, which take no lock for it. */
#include <string.h>

#include "state.h"

/* An odd count says that the words are being changed; a count that moved, that they were. */
precast_callbacks precast_read_callbacks(const precast_release *release) {
    uintptr_t words[PRECAST_CALLBACK_WORDS];
    precast_callbacks found;
    unsigned before;
    do {
        before = atomic_load_explicit(&release->changes, memory_order_acquire);
        for (size_t i = 0; i < PRECAST_CALLBACK_WORDS; i++)
            words[i] = atomic_load_explicit(&release->callbacks[i], memory_order_acquire);
    } while (before & 1 || before != atomic_load_explicit(&release->changes, memory_order_relaxed));
    memcpy(&found, words, sizeof found);
    return found;
}

/* With the release's lock held. */
static void write_callbacks(precast_release *release, const precast_callbacks *wanted) {
    uintptr_t words[PRECAST_CALLBACK_WORDS];
    unsigned count = atomic_load_explicit(&release->changes, memory_order_relaxed);
    memcpy(words, wanted, sizeof words);
    atomic_store_explicit(&release->changes, count + 1, memory_order_relaxed);
    for (size_t i = 0; i < PRECAST_CALLBACK_WORDS; i++)
        atomic_store_explicit(&release->callbacks[i], words[i], memory_order_release);
    atomic_store_explicit(&release->changes, count + 2, memory_order_release);
}

precast_status precast_set_allocator(precast_release *release, const precast_allocator *allocator) {
    if (!release)
        return precast_not_open();
    if (allocator && !allocator->allocate)
        return precast_fail(PRECAST_BAD_ARGUMENT, "an allocator needs a function that allocates");
    pthread_mutex_lock(&release->lock);
    precast_callbacks wanted = precast_read_callbacks(release);
    wanted.allocator = allocator ? *allocator : (precast_allocator){NULL, NULL, NULL};
    write_callbacks(release, &wanted);
    pthread_mutex_unlock(&release->lock);
    return PRECAST_OK;
}

precast_status precast_set_buffer_reader(precast_release *release, precast_buffer_reader reader, void *context) {
    if (!release)
        return precast_not_open();
    pthread_mutex_lock(&release->lock);
    precast_callbacks wanted = precast_read_callbacks(release);
    wanted.reader = reader, wanted.reader_context = context;
    write_callbacks(release, &wanted);
    pthread_mutex_unlock(&release->lock);
    return PRECAST_OK;
}
