/* CPU units for tests, written by hand to the ABI that the CPU engine's units have. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#define UNIT(symbol) \
    int32_t symbol(const uint64_t *arguments, const int32_t grid[3], int64_t begin, int64_t end, void *scratch)

static inline float as_float(uint64_t slot) {
    float value;
    memcpy(&value, &slot, sizeof value);
    return value;
}

/* out[i] = alpha * x[i]; arguments: out, x, alpha, n. */
#define SCALE(symbol, type, block)                                                  \
    UNIT(symbol) {                                                                  \
        type *out = (type *)arguments[0];                                           \
        const type *x = (const type *)arguments[1];                                 \
        float alpha = as_float(arguments[2]);                                       \
        int32_t n = (int32_t)arguments[3];                                          \
        (void)grid, (void)scratch;                                                  \
        for (int64_t i = begin * block; i < end * block && i < n; i++)              \
            out[i] = (type)alpha * x[i];                                            \
        return 0;                                                                   \
    }

/* The slots as they come, into `out`: arguments[0] is out, the rest is copied. */
#define RECORD(symbol, count)                                                       \
    UNIT(symbol) {                                                                  \
        (void)grid, (void)begin, (void)end, (void)scratch;                          \
        memcpy((void *)arguments[0], arguments + 1, count * sizeof *arguments);     \
        return 0;                                                                   \
    }

/* Counts programs; each checks that its scratch is aligned, big enough and its own. arguments: counts. */
#define COUNT(symbol, scratch_bytes)                                                \
    UNIT(symbol) {                                                                  \
        int32_t *counts = (int32_t *)arguments[0];                                  \
        (void)grid;                                                                 \
        if (!scratch || (uintptr_t)scratch % 64)                                    \
            return 1;                                                               \
        for (int64_t i = begin; i < end; i++) {                                     \
            memset(scratch, (int)(i & 127), scratch_bytes);                         \
            for (int j = 0; j < scratch_bytes; j += 997)                            \
                if (((char *)scratch)[j] != (i & 127))                              \
                    return 1;                                                       \
            counts[i]++;                                                            \
        }                                                                           \
        return 0;                                                                   \
    }

/* A device assertion that program `limit` fails. */
#define FAIL(symbol)                                                                \
    UNIT(symbol) {                                                                  \
        (void)grid, (void)scratch;                                                  \
        return begin <= (int64_t)arguments[0] && (int64_t)arguments[0] < end;       \
    }

/* Adds the program's number to a pass's buffer of 8 bytes each. arguments: x, buffer. */
#define TALLY(symbol)                                                               \
    UNIT(symbol) {                                                                  \
        (void)grid, (void)scratch;                                                  \
        for (int64_t i = begin; i < end; i++)                                       \
            ((int64_t *)arguments[1])[i] += i;                                      \
        return 0;                                                                   \
    }

/* Writes the unit's number. arguments: out. */
#define NUMBER(symbol, number)                                                      \
    UNIT(symbol) {                                                                  \
        (void)grid, (void)begin, (void)end, (void)scratch;                          \
        *(int64_t *)arguments[0] = number;                                          \
        return 0;                                                                   \
    }

#define NOTHING(symbol)                                                             \
    UNIT(symbol) {                                                                  \
        (void)arguments, (void)grid, (void)begin, (void)end, (void)scratch;         \
        return 0;                                                                   \
    }
