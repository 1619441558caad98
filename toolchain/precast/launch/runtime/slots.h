/* How arguments become 8-byte slots: pointers as they are, integers extended, floats as bits in the low bytes. */
#ifndef PRECAST_SLOTS_H
#define PRECAST_SLOTS_H

#include <string.h>

#include "precast.h"

/* Two launchers share the code that packs; a call between them would copy every argument once more. */
#if defined(__GNUC__) || defined(__clang__)
#define PRECAST_INLINE static inline __attribute__((always_inline))
#else
#define PRECAST_INLINE static inline
#endif

static inline uint64_t precast_slot_pointer(const void *value) {
    return (uint64_t)(uintptr_t)value;
}

static inline uint64_t precast_slot_signed(int64_t value) {
    return (uint64_t)value;
}

static inline uint64_t precast_slot_unsigned(uint64_t value) {
    return value;
}

static inline uint64_t precast_slot_fp32(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline uint64_t precast_slot_fp64(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* What the runtime compares of an axis: PRECAST_ANY where the call does not say it. */
static inline int64_t precast_axis_int(int64_t value) {
    return value;
}

static inline int64_t precast_axis_bool(int64_t value) {
    return value == PRECAST_ANY ? value : value != 0;
}

/* -0.0 has a number of its own, for its bits are those of PRECAST_ANY; NaN is one value. */
#define PRECAST_MINUS_ZERO (PRECAST_ANY + 1)

static inline int64_t precast_axis_float(double value) {
    int64_t bits = (int64_t)precast_slot_fp64(value);
    if (value != value)
        return INT64_C(0x7ff8000000000000);
    return value == (double)PRECAST_ANY ? PRECAST_ANY : bits == PRECAST_ANY ? PRECAST_MINUS_ZERO : bits;
}

/* The number whose payload that is. */
static inline double precast_axis_real(int64_t payload) {
    double value;
    memcpy(&value, &payload, sizeof value);
    return payload == PRECAST_MINUS_ZERO ? -0.0 : value;
}

/* Element types and words are numbered from 1. */
static inline int64_t precast_axis_number(int64_t value) {
    return value ? value : PRECAST_ANY;
}

#endif
