/* Signed opens while somebody changes what lies there: swapped_opens MODE FOLDER OTHER KEY OPENS.
 *
 * FOLDER is a release that the key signed, whose kernel writes 1; OTHER is one of the same form that it did not sign, and
 * whose kernel writes 666. A child process changes the one for the other, again and again, in one of the ways that MODE
 * names; each open that succeeds runs the kernel. Says how many ran right, and how many were refused; fails when one ran
 * what nobody signed. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "small.h"

static const char *folder, *other;

static void in_folders(const char *name, char mine[4096], char theirs[4096]) {
    snprintf(mine, 4096, "%s/%s", folder, name);
    snprintf(theirs, 4096, "%s/%s", other, name);
}

static void exchange(const char *name) {
    char mine[4096], theirs[4096];
    in_folders(name, mine, theirs);
    for (;;) {
        renameat2(AT_FDCWD, mine, AT_FDCWD, theirs, RENAME_EXCHANGE);
        usleep((useconds_t)(rand() % 60));
    }
}

static unsigned char *read_all(const char *path, size_t *size) {
    struct stat facts;
    int file = open(path, O_RDONLY);
    fstat(file, &facts);
    unsigned char *data = malloc((size_t)facts.st_size);
    *size = (size_t)read(file, data, (size_t)facts.st_size);
    close(file);
    return data;
}

static void overwrite(const char *name) {
    char mine[4096], theirs[4096];
    size_t sizes[2];
    in_folders(name, mine, theirs);
    unsigned char *bytes[] = {read_all(mine, &sizes[0]), read_all(theirs, &sizes[1])};
    int file = open(mine, O_WRONLY);
    for (int turn = 1;; turn = !turn) {
        if (pwrite(file, bytes[turn], sizes[turn], 0) < 0)
            _exit(1);
        usleep((useconds_t)(rand() % 300));
    }
}

static pid_t start_swapper(const char *mode, const char *library) {
    pid_t child = fork();
    if (child)
        return child;
    srand(1);
    if (!strcmp(mode, "exchanged library"))
        exchange(library);
    else if (!strcmp(mode, "overwritten library"))
        overwrite(library);
    else if (!strcmp(mode, "exchanged index"))
        exchange("index.bin");
    else if (!strcmp(mode, "exchanged manifest"))
        exchange("manifest.json");
    else
        exchange("");
    _exit(1);
}

int main(int count, char **words) {
    static _Alignas(64) float out[64], x[64];
    const small_scale_axes axes = {.dtype = PRECAST_FP32, .BLOCK = 64};
    unsigned char key[32];
    int right = 0, refused = 0, unsigned_runs = 0;
    if (count != 6)
        return 2;
    folder = words[2], other = words[3];
    for (int i = 0; i < 32; i++) {
        unsigned byte;
        sscanf(words[4] + 2 * i, "%2x", &byte);
        key[i] = (unsigned char)byte;
    }
    pid_t swapper = start_swapper(words[1], "lib/libsmall.cpu-x86-64-v2.so");
    for (int i = 0; i < atoi(words[5]); i++) {
        small *release;
        out[0] = 0;
        if (small_open_signed(folder, key, &release)) {
            refused++;
            continue;
        }
        if (small_scale(release, PRECAST_CPU, axes, out, x, 1, 64))
            refused++;
        else if (out[0] == 1)
            right++;
        else
            unsigned_runs++;
        small_close(release);
    }
    kill(swapper, SIGKILL);
    waitpid(swapper, NULL, 0);
    printf("%d ran right, %d were refused, %d ran what nobody signed\n", right, refused, unsigned_runs);
    return unsigned_runs != 0;
}
