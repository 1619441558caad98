/* What stays behind: flat FOLDER KEY OPENS LAUNCHES. Opens, launches and closes so often; fails when open files, threads
 * or memory grow. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "small.h"

enum { WARM = 100, MOST_GROWTH_KB = 2048 };

static const small_scale_axes axes = {.dtype = PRECAST_FP32, .BLOCK = 64};
static _Alignas(64) float out[64], x[64];

typedef struct held { long files, threads, kilobytes; } held;

static long count_entries(const char *path) {
    long count = 0;
    DIR *folder = opendir(path);
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

static held measure(void) {
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (fscanf(file, "%*d %ld", &pages) != 1)
        exit(2);
    fclose(file);
    return (held){count_entries("/proc/self/fd"), count_entries("/proc/self/task"), pages * sysconf(_SC_PAGESIZE) / 1024};
}

static void open_and_close(const char *folder, const unsigned char key[32], long times) {
    for (long i = 0; i < times; i++) {
        small *release;
        if (small_open_signed(folder, key, &release) || small_scale(release, PRECAST_CPU, axes, out, x, 1, 64) ||
            (i % 3 == 0 && small_unload(release))) {
            fprintf(stderr, "%s\n", small_error());
            exit(2);
        }
        small_close(release);
    }
}

static void launch(small *release, long times) {
    for (long i = 0; i < times; i++)
        if (small_scale(release, PRECAST_CPU, axes, out, x, 1, 64) || !small_scale(release, PRECAST_CPU, axes, out + 1, x, 1, 64))
            exit(2);
}

static int grew(const char *what, held before, held after) {
    printf("%s: files %ld to %ld, threads %ld to %ld, memory %ld to %ld kB\n", what, before.files, after.files,
           before.threads, after.threads, before.kilobytes, after.kilobytes);
    return after.files > before.files || after.threads > before.threads ||
           after.kilobytes > before.kilobytes + MOST_GROWTH_KB;
}

int main(int count, char **words) {
    unsigned char key[32];
    small *release;
    if (count != 5)
        return 2;
    for (int i = 0; i < 32; i++) {
        unsigned byte;
        sscanf(words[2] + 2 * i, "%2x", &byte);
        key[i] = (unsigned char)byte;
    }
    open_and_close(words[1], key, WARM);
    held before = measure();
    open_and_close(words[1], key, atol(words[3]));
    int wrong = grew("opens", before, measure());
    if (small_open_signed(words[1], key, &release))
        return 2;
    launch(release, WARM);
    before = measure();
    launch(release, atol(words[4]));
    wrong |= grew("launches", before, measure());
    small_close(release);
    return wrong;
}
