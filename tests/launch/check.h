/* Scenarios: a program runs the one that its argument names, in the release that its second argument names. */
#ifndef CHECK_H
#define CHECK_H

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "small.h"

static const char *folder;
static small *k;

#define CHECK(condition)                                                                                    \
    do {                                                                                                    \
        if (!(condition)) {                                                                                 \
            fprintf(stderr, "%s:%d: %s\nlast error: %s\n", __FILE__, __LINE__, #condition, small_error());  \
            exit(1);                                                                                        \
        }                                                                                                   \
    } while (0)

#define OK(call) CHECK((call) == PRECAST_OK)

#define FAILS(call, status, text)                                                                           \
    do {                                                                                                    \
        CHECK((call) == (status));                                                                          \
        if (strcmp(small_error(), text)) {                                                                  \
            fprintf(stderr, "%s:%d: expected\n%s\nfound\n%s\n", __FILE__, __LINE__, text, small_error());   \
            exit(1);                                                                                        \
        }                                                                                                   \
    } while (0)

typedef struct scenario { const char *name; void (*run)(void); } scenario;

static inline void open_release(void) { OK(small_open(folder, &k)); }

/* Runs `work` on 64 threads at once. */
static inline void on_threads(void *(*work)(void *)) {
    pthread_t threads[64];
    for (intptr_t i = 0; i < 64; i++)
        CHECK(!pthread_create(&threads[i], NULL, work, (void *)i));
    for (int i = 0; i < 64; i++)
        pthread_join(threads[i], NULL);
}

static inline int run_scenario(const scenario *all, int argc, char **argv) {
    if (argc == 2 && !strcmp(argv[1], "--list")) {
        for (const scenario *each = all; each->name; each++)
            puts(each->name);
        return 0;
    }
    folder = argv[2];
    for (const scenario *each = all; each->name; each++)
        if (!strcmp(each->name, argv[1])) {
            each->run();
            small_close(k);
            return 0;
        }
    return 2;
}

#endif
