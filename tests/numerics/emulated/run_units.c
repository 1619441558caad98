/* Runs an entry of a CPU unit in a process of its own, which an emulator may run.
 *
 * In: a file with int64 words: which unit, grid (3), bytes of scratch, count of arguments; then for each argument how
 * many bytes its buffer has, and these. 0: the 8 bytes of a value; -N: the buffer of argument N - 1. Out: the same file, with the buffers as the unit left
 * them. The exit code is the entry's status. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef int32_t entry(const uint64_t *, const int32_t *, int64_t, int64_t, void *);
extern entry UNITS;
static entry *const units[] = {UNITS};

static int64_t word(FILE *file) {
    int64_t value;
    if (fread(&value, sizeof value, 1, file) != 1)
        exit(100);
    return value;
}

int main(int argc, char **argv) {
    FILE *file = fopen(argv[argc - 1], "r+b");
    if (!file)
        return 101;
    int64_t unit = word(file);
    int32_t grid[3];
    for (int i = 0; i < 3; i++)
        grid[i] = (int32_t)word(file);
    void *scratch = aligned_alloc(64, (size_t)(word(file) + 127) / 64 * 64);
    int64_t count = word(file), sizes[32];
    uint64_t arguments[32];
    long places[32];
    for (int i = 0; i < count; i++) {
        sizes[i] = word(file), places[i] = ftell(file);
        if (sizes[i] < 0) {
            arguments[i] = arguments[-sizes[i] - 1];
            continue;
        }
        if (!sizes[i]) {
            arguments[i] = (uint64_t)word(file);
            continue;
        }
        void *buffer = aligned_alloc(64, (size_t)(sizes[i] + 63) / 64 * 64);
        if (fread(buffer, (size_t)sizes[i], 1, file) != 1)
            return 102;
        arguments[i] = (uint64_t)(uintptr_t)buffer;
    }
    int status = units[unit](arguments, grid, 0, (int64_t)grid[0] * grid[1] * grid[2], scratch);
    for (int i = 0; i < count; i++)
        if (sizes[i] > 0 && (fseek(file, places[i], SEEK_SET) ||
                             fwrite((void *)(uintptr_t)arguments[i], (size_t)sizes[i], 1, file) != 1))
            return 103;
    return fclose(file) ? 104 : status;
}
