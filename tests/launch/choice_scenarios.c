/* Which unit a call of C means: axes that are said, arguments that are absent, numbers by their value, promises. */
#include <math.h>

#include "check.h"

static _Alignas(64) float x[64];
static int64_t unit;

#define MEANS(number, call)         \
    do {                            \
        unit = -1;                  \
        OK(call);                   \
        CHECK(unit == (number));    \
    } while (0)

static precast_status sole(int64_t causal, int64_t even, double rate) {
    return small_sole(k, PRECAST_CPU, (small_sole_axes){.CAUSAL = causal, .EVEN = even, .RATE = rate}, &unit, 1);
}

/* Zero, false and 0.0 are values like others. */
static void what_is_said(void) {
    open_release();
    MEANS(0, sole(1, true, 0.5));
    MEANS(0, sole(PRECAST_ANY, PRECAST_ANY, PRECAST_ANY));
    MEANS(0, sole(1, 4, PRECAST_ANY));
    FAILS(sole(0, true, 0.5), PRECAST_NO_UNIT, "`sole` has no variant with CAUSAL=0; there are 1");
    FAILS(sole(-1, true, 0.5), PRECAST_NO_UNIT, "`sole` has no variant with CAUSAL=-1; there are 1");
    FAILS(sole(1, false, 0.5), PRECAST_NO_UNIT, "`sole` has no variant with EVEN=false; there are true");
    FAILS(sole(1, true, 0), PRECAST_NO_UNIT, "`sole` has no variant with RATE=0; there are 0.5");
    FAILS(sole(1, true, -0.0), PRECAST_NO_UNIT, "`sole` has no variant with RATE=0; there are 0.5");
    FAILS(small_sole(k, PRECAST_CPU, (small_sole_axes){0}, &unit, 1), PRECAST_NO_UNIT,
          "`sole` has no variant with CAUSAL=0; there are 1");
}

static precast_status with_sign(double rate) {
    return small_signed(k, PRECAST_CPU, (small_signed_axes){.RATE = rate, .FLAG = PRECAST_ANY}, &unit, 1);
}

static void signs(void) {
    open_release();
    MEANS(0, with_sign(0.5));
    MEANS(1, with_sign(0.0));
    MEANS(2, with_sign(-0.0));
    MEANS(3, with_sign(NAN));
    MEANS(3, with_sign(-NAN));
    MEANS(4, with_sign(-INFINITY));
    FAILS(with_sign(1), PRECAST_NO_UNIT, "`signed` has no variant with RATE=1; there are -0.0, -inf, 0.0, 0.5, nan");
}

static void null_pointers(void) {
    const small_biased_axes any = {0}, none = {.W = SMALL_BIASED_W_NONE}, fp32 = {.W = SMALL_BIASED_W__FP32};
    open_release();
    MEANS(0, small_biased(k, PRECAST_CPU, any, &unit, NULL, 1));
    MEANS(0, small_biased(k, PRECAST_CPU, none, &unit, NULL, 1));
    MEANS(1, small_biased(k, PRECAST_CPU, fp32, &unit, x, 1));
    FAILS(small_biased(k, PRECAST_CPU, none, &unit, x, 1), PRECAST_BAD_ARGUMENT,
          "argument `w` of `biased` is given, biased:W=\"none\"@cpu:x86-64-v2 takes a null pointer or None alone");
    FAILS(small_biased(k, PRECAST_CPU, fp32, &unit, NULL, 1), PRECAST_BAD_ARGUMENT,
          "argument `w` of `biased` is a null pointer, biased:W=*fp32@cpu:x86-64-v2 takes a tensor");
    /* What it points to is not known here. */
    FAILS(small_biased(k, PRECAST_CPU, any, &unit, x, 1), PRECAST_NO_UNIT,
          "several units of `biased` fit on " HOST "; say which: W is one of *fp32, *fp64, none");
}

static precast_status number(small_numbers_axes axes, int64_t n, double alpha) {
    return small_numbers(k, PRECAST_CPU, axes, &unit, n, alpha);
}

/* Units in the spec's order: u8, i64, i32, u64, i1, each with fp64, none, fp32. */
static void numbers(void) {
    const small_numbers_axes any = {0}, wide = {.T = PRECAST_I64}, byte = {.T = PRECAST_U8};
    const small_numbers_axes without = {.A = SMALL_NUMBERS_A_NONE};
    open_release();
    MEANS(8, number(any, 5, 1));
    MEANS(8, number(any, INT32_MIN, 0));
    MEANS(5, number(any, INT64_C(1) << 31, 1));
    MEANS(5, number(any, INT64_MIN, 1));
    MEANS(5, number(wide, 5, 1));
    MEANS(2, number(byte, 5, 1));
    MEANS(7, number(without, 5, 0));
    FAILS(number(byte, -5, 1), PRECAST_BAD_ARGUMENT, "argument `n` is -5, which does not fit in u8");
    FAILS(number(without, 5, 1), PRECAST_BAD_ARGUMENT,
          "argument `alpha` of `numbers` is given, numbers:T=i32,A=\"none\"@cpu:x86-64-v2 takes None alone");
}

static void promises(void) {
    const small_promised_axes none = {0};
    char expected[200];
    open_release();
    MEANS(0, small_promised(k, PRECAST_CPU, none, &unit, x, 64));
    MEANS(0, small_promised(k, PRECAST_CPU, none, &unit, x, -64));
    MEANS(1, small_promised(k, PRECAST_CPU, none, &unit, x, 32)); /* what the first promises, the second does not */
    FAILS(small_promised(k, PRECAST_CPU, none, &unit, x, -48), PRECAST_BAD_ARGUMENT,
          "argument `n` of `promised` promises align = 64, and it is -48");
    snprintf(expected, sizeof expected, "argument `x` of `promised` promises align = 64, and its address is %p",
             (void *)(x + 4));
    FAILS(small_promised(k, PRECAST_CPU, none, &unit, x + 4, 64), PRECAST_BAD_ARGUMENT, expected);
}

/* All hints of a set hold, of the sets that hold the one with the most hints counts, then the spec's order. */
static void hint_sets(void) {
    const small_joint_axes none = {0};
    open_release();
    MEANS(3, small_joint(k, PRECAST_CPU, none, &unit, x, 1, 1));
    MEANS(1, small_joint(k, PRECAST_CPU, none, &unit, x, 1, 16));
    MEANS(2, small_joint(k, PRECAST_CPU, none, &unit, x, 32, 7));
    MEANS(0, small_joint(k, PRECAST_CPU, none, &unit, x + 1, 1, 16));
    FAILS(small_joint(k, PRECAST_CPU, none, &unit, x, 2, 2), PRECAST_NO_UNIT,
          "no variant of `joint` takes these arguments; nearest: joint:n==1@cpu:x86-64-v2, which asks for n==1 (it is 2)");
}

/* A number that has one value in each unit is a promise, and chooses among them. */
static void pinned(void) {
    const small_pinned_axes any = {PRECAST_ANY};
    open_release();
    MEANS(0, small_pinned(k, PRECAST_CPU, any, &unit, 1, -7, 64));
    MEANS(1, small_pinned(k, PRECAST_CPU, any, &unit, 1, -7, 128));
    FAILS(small_pinned(k, PRECAST_CPU, any, &unit, 2, -7, 64), PRECAST_BAD_ARGUMENT,
          "argument `one` of `pinned` promises equal = 1, and it is 2");
    FAILS(small_pinned(k, PRECAST_CPU, any, &unit, 1, -8, 64), PRECAST_BAD_ARGUMENT,
          "argument `low` of `pinned` promises equal = -7, and it is -8");
    FAILS(small_pinned(k, PRECAST_CPU, any, &unit, 1, -7, UINT32_MAX), PRECAST_BAD_ARGUMENT,
          "argument `size` of `pinned` promises equal = 64, and it is 4294967295");
}

/* What a call must meet chooses among the variants, and refuses where none meets it. */
static void requirements(void) {
    const small_bounded_axes any = {PRECAST_ANY}, narrow = {64};
    open_release();
    MEANS(1, small_bounded(k, PRECAST_CPU, any, &unit, 10, 0));
    MEANS(0, small_bounded(k, PRECAST_CPU, any, &unit, 64, 0));
    MEANS(3, small_bounded(k, PRECAST_CPU, any, &unit, 65, 0));
    MEANS(2, small_bounded(k, PRECAST_CPU, any, &unit, 256, 0));
    FAILS(small_bounded(k, PRECAST_CPU, any, &unit, 257, 0), PRECAST_UNMET,
          "no variant of `bounded` takes these arguments; nearest: bounded:BLOCK=256@cpu:x86-64-v2, which requires "
          "n <= BLOCK (it is 257 <= 256)");
    FAILS(small_bounded(k, PRECAST_CPU, narrow, &unit, 65, 0), PRECAST_UNMET,
          "no variant of `bounded` takes these arguments; nearest: bounded:BLOCK=64@cpu:x86-64-v2, which requires "
          "n <= BLOCK (it is 65 <= 64)");
    FAILS(small_bounded(k, PRECAST_CPU, any, &unit, 0, 1), PRECAST_UNMET,
          "no variant of `bounded` takes these arguments; nearest: bounded:BLOCK=64,n%16@cpu:x86-64-v2, which requires "
          "m // n < 4 (it divides by zero)");
}

/* The tuning table's unit where it fits, else the next rule's, else the first of the spec. */
static void order(void) {
    const small_ordered_axes any = {PRECAST_ANY};
    open_release();
    MEANS(0, small_ordered(k, PRECAST_CPU, any, &unit, 1000));
    MEANS(1, small_ordered(k, PRECAST_CPU, any, &unit, 64));
    MEANS(2, small_ordered(k, PRECAST_CPU, any, &unit, 63));
    MEANS(1, small_ordered(k, PRECAST_CPU, (small_ordered_axes){32}, &unit, 32));
    FAILS(small_ordered(k, PRECAST_CPU, (small_ordered_axes){32}, &unit, -33), PRECAST_BAD_ARGUMENT,
          "argument `n` of `ordered` promises align = 32, and it is -33");
}

static precast_status split(int64_t value) {
    return small_split(k, PRECAST_CPU, (small_split_axes){.SPLIT = value}, &unit, 1);
}

/* A number is itself wherever words stand beside it, and no word has a number that a value could be. */
static void words_beside_numbers(void) {
    open_release();
    MEANS(0, split(0));
    MEANS(1, split(4));
    MEANS(2, split(SMALL_SPLIT_SPLIT_NONE));
    MEANS(3, split(SMALL_SPLIT_SPLIT_TRUE));
    MEANS(4, split(-7));
    MEANS(0, split(PRECAST_ANY));
    for (int64_t value = 1; value < 4; value++)
        CHECK(split(value) == PRECAST_NO_UNIT && split(-value) == PRECAST_NO_UNIT);
    FAILS(split(1), PRECAST_NO_UNIT, "`split` has no variant with SPLIT=1; there are -7, 0, 4, none, true");
}

int main(int argc, char **argv) {
    static const scenario all[] = {
        {"what_is_said", what_is_said}, {"signs", signs}, {"null_pointers", null_pointers}, {"numbers", numbers},
        {"promises", promises}, {"hint_sets", hint_sets}, {"pinned", pinned}, {"requirements", requirements},
        {"order", order}, {"words_beside_numbers", words_beside_numbers}, {NULL, NULL},
    };
    return run_scenario(all, argc, argv);
}
