/* Forks: every lock of every open release is held meanwhile, so that the child finds none held by a thread that it
 * does not have. A fork beside a first use waits until that is done. */
#include "state.h"

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static precast_release *first;

static void before_fork(void) {
    pthread_mutex_lock(&list_lock);
    for (precast_release *release = first; release; release = release->next_open) {
        pthread_mutex_lock(&release->meeting);
        for (precast_device *device = atomic_load(&release->devices); device; device = device->next)
            pthread_mutex_lock(&device->loading);
        pthread_mutex_lock(&release->lock);
        precast_lock_pool(release->pool);
    }
}

static void after_fork(void) {
    for (precast_release *release = first; release; release = release->next_open) {
        precast_unlock_pool(release->pool);
        pthread_mutex_unlock(&release->lock);
        for (precast_device *device = atomic_load(&release->devices); device; device = device->next)
            pthread_mutex_unlock(&device->loading);
        pthread_mutex_unlock(&release->meeting);
    }
    pthread_mutex_unlock(&list_lock);
}

static void after_fork_in_child(void) {
    for (precast_release *release = first; release; release = release->next_open)
        precast_forget_threads(release->pool);
    after_fork();
}

static void watch_forks(void) {
    pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

void precast_list_open(precast_release *release) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&list_lock);
    release->next_open = first;
    first = release;
    pthread_mutex_unlock(&list_lock);
}

void precast_unlist_open(precast_release *release) {
    pthread_mutex_lock(&list_lock);
    precast_release **place = &first;
    while (*place && *place != release)
        place = &(*place)->next_open;
    if (*place)
        *place = release->next_open;
    pthread_mutex_unlock(&list_lock);
}
