/* Versions in the order of Python packaging (PEP 440), as far as a minimum of plain numbers needs it. */
#include <string.h>

#include "state.h"

static int is_digit(char sign) {
    return sign >= '0' && sign <= '9';
}

/* The next number of a version, and where it ends; none: a length of 0. */
typedef struct number {
    const char *digits;
    size_t length;
} number;

static number take_number(const char **text) {
    const char *start = *text;
    while (is_digit(**text))
        ++*text;
    while (*start == '0' && start + 1 < *text)
        start++;
    return (number){start, (size_t)(*text - start)};
}

static int compare_numbers(number left, number right) {
    static const number zero = {"0", 1};
    left = left.length ? left : zero, right = right.length ? right : zero;
    if (left.length != right.length)
        return left.length < right.length ? -1 : 1;
    return memcmp(left.digits, right.digits, left.length);
}

/* `1!` before the release; none is `0!`. */
static number take_epoch(const char **text) {
    const char *start = *text;
    number epoch = take_number(text);
    if (epoch.length && **text == '!')
        return ++*text, epoch;
    *text = start;
    return (number){"0", 1};
}

/* The numbers of the release one by one: `.` and a digit begin the next. */
static number take_part(const char **text, int first) {
    if (!first && !(**text == '.' && is_digit((*text)[1])))
        return (number){"0", 0};
    *text += !first;
    return take_number(text);
}

int precast_is_minimum(const char *text) {
    int parts = 0;
    take_epoch(&text);
    while (take_part(&text, !parts).length)
        parts++;
    return parts && !*text;
}

int precast_is_at_least(const char *version, const char *minimum) {
    int order = compare_numbers(take_epoch(&version), take_epoch(&minimum));
    if (!is_digit(*version))
        return 0;
    for (int first = 1; !order; first = 0) {
        number own = take_part(&version, first), wanted = take_part(&minimum, first);
        if (!own.length && !wanted.length)
            break;
        order = compare_numbers(own, wanted);
    }
    if (order)
        return order > 0;
    /* Of the same release only what comes after it: no alpha, beta, candidate or development version. */
    return !*version || *version == '+' || !strncmp(version, ".post", 5);
}
