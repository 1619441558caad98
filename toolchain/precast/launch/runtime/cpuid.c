#include "state.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

/* asm/prctl.h of Linux 5.16; a state's bit in XCR0. */
enum { ASK_FOR_STATE = 0x1023, MATRICES = 18 };

/* Registers that the system saves: 6 is SSE and AVX, 0xe0 AVX-512, 0x60000 AMX. */
static unsigned saved_registers(void) {
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

static int has(unsigned value, unsigned bits) {
    return (value & bits) == bits;
}

/* Once it is given, the whole process has it. */
static int may_use_matrices(void) {
    return has(saved_registers(), 0x60000) && !syscall(SYS_arch_prctl, ASK_FOR_STATE, MATRICES);
}

int precast_cpu_level(void) {
    unsigned a, b, c, d, features, extended, more, products, matrices;
    if (!__get_cpuid(1, &a, &b, &features, &d) || !__get_cpuid(0x80000001, &a, &b, &extended, &d))
        return 1;
    /* SSE3, SSSE3, CMPXCHG16B, SSE4.1, SSE4.2, POPCNT; LAHF. */
    if (!has(features, 1u << 0 | 1u << 9 | 1u << 13 | 1u << 19 | 1u << 20 | 1u << 23) || !has(extended, 1u << 0))
        return 1;
    /* FMA, MOVBE, OSXSAVE, AVX, F16C; LZCNT; BMI1, AVX2, BMI2. */
    if (!has(features, 1u << 12 | 1u << 22 | 1u << 27 | 1u << 28 | 1u << 29) || !has(extended, 1u << 5) ||
        !has(saved_registers(), 6) || !__get_cpuid_count(7, 0, &a, &more, &products, &matrices) ||
        !has(more, 1u << 3 | 1u << 5 | 1u << 8))
        return 2;
    /* AVX-512 F, DQ, CD, BW, VL. */
    if (!has(more, 1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31) || !has(saved_registers(), 0xe6))
        return 3;
    /* AVX-512 VNNI; BF16; AMX BF16, TILE, INT8. */
    if (!has(products, 1u << 11))
        return 4;
    if (!__get_cpuid_count(7, 1, &a, &b, &c, &d) || !has(a, 1u << 5))
        return 5;
    return has(matrices, 1u << 22 | 1u << 24 | 1u << 25) && may_use_matrices() ? 7 : 6;
}

static int read_name(unsigned text[13]) {
    for (unsigned part = 0; part < 3; part++)
        if (!__get_cpuid(0x80000002 + part, &text[4 * part], &text[4 * part + 1], &text[4 * part + 2], &text[4 * part + 3]))
            return 0;
    return 1;
}
#else
int precast_cpu_level(void) {
#if defined(__aarch64__)
    return PRECAST_AARCH64;
#else
    return 0;
#endif
}

static int read_name(unsigned text[13]) {
    (void)text;
    return 0;
}
#endif

void precast_cpu_name(char *name, size_t capacity) {
    unsigned text[13] = {0};
    size_t length = 0;
    const char *from = (const char *)text;
    if (read_name(text))
        for (; *from && length + 1 < capacity; from++)
            if (*from != ' ' || (length && name[length - 1] != ' '))
                name[length++] = *from;
    while (length && name[length - 1] == ' ')
        length--;
    name[length] = 0;
}
