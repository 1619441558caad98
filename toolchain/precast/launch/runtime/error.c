#include "error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char message[PRECAST_MESSAGE_BYTES];
static _Thread_local int nearness;

const char *precast_error(void) {
    return message;
}

precast_status precast_fail(precast_status status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    nearness = 0;
    return status;
}

void precast_note_nearness(int value) {
    nearness = value;
}

int precast_nearness(void) {
    return nearness;
}

precast_status precast_not_open(void) {
    return precast_fail(PRECAST_NO_RELEASE, "the release is not open");
}

void precast_add_to_error(const char *format, ...) {
    size_t length = strlen(message);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message + length, sizeof message - length, format, arguments);
    va_end(arguments);
}
