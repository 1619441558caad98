/* What `bench/cpu.py` compares with: the same functions as a C programmer writes them, for gcc to vectorise. */

#include <math.h>
#include <stdint.h>
#include <string.h>

void vector_add(float *restrict out, const float *restrict x, const float *restrict y, long n)
{
    for (long i = 0; i < n; i++)
        out[i] = x[i] + y[i];
}

void softmax(float *restrict out, const float *restrict x, long rows, long columns)
{
    for (long row = 0; row < rows; row++, x += columns, out += columns) {
        float peak = -INFINITY, total = 0;
        for (long i = 0; i < columns; i++)
            peak = x[i] > peak ? x[i] : peak;
        for (long i = 0; i < columns; i++) {
            out[i] = expf(x[i] - peak);
            total += out[i];
        }
        float share = 1 / total;
        for (long i = 0; i < columns; i++)
            out[i] *= share;
    }
}

void layer_norm(float *restrict out, const float *restrict x, const float *restrict weight,
                const float *restrict bias, long rows, long columns)
{
    for (long row = 0; row < rows; row++, x += columns, out += columns) {
        float total = 0, squares = 0;
        for (long i = 0; i < columns; i++)
            total += x[i];
        float mean = total / columns;
        for (long i = 0; i < columns; i++)
            squares += (x[i] - mean) * (x[i] - mean);
        float scale = 1 / sqrtf(squares / columns + 1e-5f);
        for (long i = 0; i < columns; i++)
            out[i] = (x[i] - mean) * scale * weight[i] + bias[i];
    }
}

void rms_norm(float *restrict out, const float *restrict x, const float *restrict weight, long rows, long columns)
{
    for (long row = 0; row < rows; row++, x += columns, out += columns) {
        float squares = 0;
        for (long i = 0; i < columns; i++)
            squares += x[i] * x[i];
        float scale = 1 / sqrtf(squares / columns + 1e-5f);
        for (long i = 0; i < columns; i++)
            out[i] = x[i] * scale * weight[i];
    }
}

static inline float sigmoid(float x)
{
    return 1 / (1 + expf(-x));
}

void bias_gelu(float *restrict out, const float *restrict x, const float *restrict bias, long rows, long columns)
{
    for (long row = 0; row < rows; row++, x += columns, out += columns)
        for (long i = 0; i < columns; i++) {
            float value = x[i] + bias[i];
            out[i] = value * sigmoid(1.5957691216057308f * (value + 0.044715f * value * value * value));
        }
}

void swiglu(float *restrict out, const float *restrict x, long rows, long columns)
{
    for (long row = 0; row < rows; row++, x += 2 * columns, out += columns)
        for (long i = 0; i < columns; i++)
            out[i] = x[i] * sigmoid(x[i]) * x[columns + i];
}

void cumsum(float *restrict out, const float *restrict x, long rows, long columns)
{
    for (long row = 0; row < rows; row++, x += columns, out += columns) {
        float total = 0;
        for (long i = 0; i < columns; i++)
            out[i] = total += x[i];
    }
}

void argmax(int64_t *restrict out, const float *restrict x, long rows, long columns)
{
    for (long row = 0; row < rows; row++, x += columns) {
        long best = 0;
        for (long i = 1; i < columns; i++)
            best = x[i] > x[best] ? i : best;
        out[row] = best;
    }
}

void histogram(int32_t *restrict counts, const int32_t *restrict x, long n, long bins)
{
    memset(counts, 0, bins * sizeof *counts);
    for (long i = 0; i < n; i++)
        if (x[i] >= 0 && x[i] < bins)
            counts[x[i]]++;
}

void gather(float *restrict out, const float *restrict x, const int32_t *restrict index, long n)
{
    for (long i = 0; i < n; i++)
        out[i] = x[index[i]];
}

/* The machine's peak: fused multiply-adds in as many registers as hide their latency and leave two for the factors. */
#ifdef __AVX512F__
enum { LANES = 16, SUMS = 16 };
#else
enum { LANES = 8, SUMS = 12 };
#endif
typedef float Lanes __attribute__((vector_size(4 * LANES)));

/* n rounds; returns the operations of one. */
long multiply_add(float *out, long n)
{
    Lanes sums[SUMS], factor, one;
    for (int i = 0; i < LANES; i++) {
        factor[i] = 0.999f;
        one[i] = 1;
    }
    for (int i = 0; i < SUMS; i++)
        sums[i] = one * (float)i; /* unlike one another, or the compiler would keep one of them */
    for (long k = 0; k < n; k++)
        for (int i = 0; i < SUMS; i++)
            sums[i] = sums[i] * factor + one;
    for (int i = 1; i < SUMS; i++)
        sums[0] += sums[i];
    memcpy(out, &sums[0], sizeof sums[0]);
    return 2 * SUMS * LANES;
}
