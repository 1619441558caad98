#include "number.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* What a format does with values beyond its largest: IEEE's infinity, NaN, or the largest itself. */
enum { INFINITE, NOT_A_NUMBER, LARGEST };

typedef struct format {
    int mantissa_bits, bias, bits, overflow;
    int top_exponent;    /* largest biased exponent of a finite number */
    uint64_t top_mantissa; /* largest mantissa with it */
    uint64_t infinity, nan;
    int negative_zero;
} format;

static const format formats[] = {
    [PRECAST_FP16] = {10, 15, 16, INFINITE, 30, 0x3ff, 0x7c00, 0x7e00, 1},
    [PRECAST_BF16] = {7, 127, 16, INFINITE, 254, 0x7f, 0x7f80, 0x7fc0, 1},
    [PRECAST_FP8E4NV] = {3, 7, 8, NOT_A_NUMBER, 15, 6, 0x7f, 0x7f, 1},
    [PRECAST_FP8E5] = {2, 15, 8, INFINITE, 30, 3, 0x7c, 0x7e, 1},
    [PRECAST_FP8E4B8] = {3, 8, 8, NOT_A_NUMBER, 15, 7, 0x80, 0x80, 0},
    [PRECAST_FP8E5B16] = {2, 16, 8, NOT_A_NUMBER, 31, 3, 0x80, 0x80, 0},
    [PRECAST_FP8E4B15] = {3, 15, 8, LARGEST, 15, 7, 0x7f, 0x7f, 1},
};

static uint64_t with_sign(const format *to, uint64_t magnitude, int negative) {
    if (magnitude == 0 && !to->negative_zero)
        return 0;
    return magnitude == 0x80 && to->nan == 0x80 ? 0x80 : magnitude | (uint64_t)negative << (to->bits - 1);
}

/* To nearest even, for 0 <= value < 2^51: above 2^52 a double has no places for fractions. */
static double round_even(double value) {
    volatile double shifted = value + 0x1p52;
    return shifted - 0x1p52;
}

static uint64_t round_to(const format *to, double value) {
    int negative = signbit(value) != 0, exponent;
    double magnitude = negative ? -value : value;
    uint64_t largest = (uint64_t)to->top_exponent << to->mantissa_bits | to->top_mantissa;
    uint64_t beyond = to->overflow == LARGEST ? largest : to->infinity;
    if (isnan(value))
        return to->nan;
    if (isinf(value))
        return with_sign(to, beyond, negative);
    if (magnitude == 0)
        return with_sign(to, 0, negative);
    frexp(magnitude, &exponent); /* magnitude is in [2^(exponent-1), 2^exponent) */
    int lowest = 1 - to->bias;   /* exponent of the smallest normal number */
    int scale = exponent - 1 < lowest ? lowest : exponent - 1;
    double steps = round_even(ldexp(magnitude, to->mantissa_bits - scale));
    uint64_t bits = (uint64_t)steps;
    if (exponent - 1 >= lowest)
        bits += (uint64_t)(scale + to->bias - 1) << to->mantissa_bits;
    return with_sign(to, bits > largest ? beyond : bits, negative);
}

uint64_t precast_float_bits(double value, unsigned type) {
    uint64_t bits = 0;
    float narrow = (float)value;
    if (type == PRECAST_FP64)
        memcpy(&bits, &value, sizeof value);
    else if (type == PRECAST_FP32)
        memcpy(&bits, &narrow, sizeof narrow);
    else if (precast_is_float(type))
        bits = round_to(&formats[type], value);
    return bits;
}

int precast_is_float(unsigned type) {
    return type >= PRECAST_FP16 && type <= PRECAST_FP8E4B15;
}

int precast_is_signed(unsigned type) {
    return type >= PRECAST_I8 && type <= PRECAST_I64;
}

int precast_integer_bits(unsigned type) {
    static const int bits[] = {1, 8, 16, 32, 64};
    return bits[(type - 1) % 5];
}

int precast_integer_fits(uint64_t slot, unsigned from, unsigned to) {
    int bits = precast_integer_bits(to);
    if (!precast_is_signed(to))
        return !(precast_is_signed(from) && (int64_t)slot < 0) && (bits == 64 || slot >> bits == 0);
    if (!precast_is_signed(from) && slot > INT64_MAX)
        return 0;
    int64_t value = (int64_t)slot, half = bits == 64 ? INT64_MAX : (INT64_C(1) << (bits - 1)) - 1;
    return value >= -half - 1 && value <= half;
}

void precast_print_slot(uint64_t slot, unsigned type, char *text, size_t bytes) {
    const char *format = type < PRECAST_I1 || type > PRECAST_U64 ? "0x%llx" : precast_is_signed(type) ? "%lld" : "%llu";
    snprintf(text, bytes, format, (unsigned long long)slot);
}

const char *precast_type_name(unsigned type) {
    static const char *const names[] = {
        "?", "i1", "i8", "i16", "i32", "i64", "u1", "u8", "u16", "u32", "u64", "fp16", "bf16", "fp32", "fp64",
        "fp8e4nv", "fp8e5", "fp8e4b8", "fp8e5b16", "fp8e4b15",
    };
    return type < sizeof names / sizeof *names ? names[type] : "?";
}
