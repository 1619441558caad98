#include "grid.h"

#include "error.h"

#define CLOSE __attribute__((always_inline)) /* most launches compute a grid: a call for each step is felt */

enum {
    CONSTANT, ARGUMENT, ADD, SUBTRACT, MULTIPLY, DIVIDE, MODULO, MINIMUM, MAXIMUM, CDIV,
    LESS, AT_MOST, EQUAL, UNEQUAL, AT_LEAST, MORE
};

int precast_grid_fits(const precast_step_record *steps, uint32_t count, uint32_t arguments) {
    int depth = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (steps[i].opcode > MORE)
            return 0;
        if (steps[i].opcode == ARGUMENT && (steps[i].operand < 0 || steps[i].operand >= arguments))
            return 0;
        if (steps[i].opcode > ARGUMENT && depth < 2)
            return 0;
        depth += steps[i].opcode > ARGUMENT ? -1 : 1;
        if (depth > PRECAST_MAXIMUM_STACK)
            return 0;
    }
    return depth == 1;
}

/* Rounds towards minus infinity; the caller has excluded 0 and the one overflow. */
static int64_t floor_divide(int64_t a, int64_t b) {
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static int divide_overflows(int64_t a, int64_t b) {
    return a == INT64_MIN && b == -1;
}

static int compare(uint32_t opcode, int64_t a, int64_t b) {
    switch (opcode) {
    case LESS: return a < b;
    case AT_MOST: return a <= b;
    case EQUAL: return a == b;
    case UNEQUAL: return a != b;
    case AT_LEAST: return a >= b;
    default: return a > b;
    }
}

const char *precast_comparison(uint32_t opcode) {
    static const char *const signs[] = {"<", "<=", "==", "!=", ">=", ">"};
    return opcode >= LESS && opcode <= MORE ? signs[opcode - LESS] : NULL;
}

/* 0, or what is wrong. */
static inline CLOSE const char *apply(uint32_t opcode, int64_t a, int64_t b, int64_t *result) {
    if ((opcode == DIVIDE || opcode == MODULO || opcode == CDIV) && b == 0)
        return "divides by zero";
    switch (opcode) {
    case ADD:
        return __builtin_add_overflow(a, b, result) ? "overflows 64 bits" : NULL;
    case SUBTRACT:
        return __builtin_sub_overflow(a, b, result) ? "overflows 64 bits" : NULL;
    case MULTIPLY:
        return __builtin_mul_overflow(a, b, result) ? "overflows 64 bits" : NULL;
    case DIVIDE:
        if (divide_overflows(a, b))
            return "overflows 64 bits";
        *result = floor_divide(a, b);
        return NULL;
    case MODULO:
        *result = b == -1 ? 0 : a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0);
        return NULL;
    case CDIV:
        if (divide_overflows(a, b))
            return "overflows 64 bits";
        *result = a / b + (a % b != 0 && (a < 0) == (b < 0));
        return NULL;
    case MINIMUM:
        *result = a < b ? a : b;
        return NULL;
    case MAXIMUM:
        *result = a > b ? a : b;
        return NULL;
    default:
        *result = compare(opcode, a, b);
        return NULL;
    }
}

static inline CLOSE const char *run(const precast_step_record *steps, uint32_t count, const uint64_t *slots,
                                    const precast_slot_record *types, int64_t stack[PRECAST_MAXIMUM_STACK]) {
    int depth = 0;
    for (uint32_t i = 0; i < count; i++) {
        const precast_step_record *step = &steps[i];
        if (step->opcode == CONSTANT) {
            stack[depth++] = step->operand;
        } else if (step->opcode == ARGUMENT) {
            if (types[step->operand].type == PRECAST_U64 && slots[step->operand] > INT64_MAX)
                return "overflows 64 bits";
            stack[depth++] = (int64_t)slots[step->operand];
        } else {
            const char *wrong = apply(step->opcode, stack[depth - 2], stack[depth - 1], &stack[depth - 2]);
            if (wrong)
                return wrong;
            depth--;
        }
    }
    return NULL;
}

const char *precast_evaluate(const precast_step_record *steps, uint32_t count, const uint64_t *slots,
                             const precast_slot_record *types, int64_t stack[PRECAST_MAXIMUM_STACK]) {
    return run(steps, count, slots, types, stack);
}

precast_status precast_run_steps(const precast_step_record *steps, uint32_t count, const uint64_t *slots,
                                 const precast_slot_record *types, const char *what, int64_t *result) {
    int64_t stack[PRECAST_MAXIMUM_STACK];
    const char *wrong = run(steps, count, slots, types, stack);
    if (wrong)
        return precast_fail(PRECAST_BAD_GRID, "the grid of %s %s", what, wrong);
    *result = stack[0];
    return PRECAST_OK;
}
