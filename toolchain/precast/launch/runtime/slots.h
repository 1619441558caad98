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

static inline int64_t precast_axis_float(double value) {
    return (int64_t)precast_slot_fp64(value);
}

#endif
