/* The calling thread's last error: a status and one sentence. */
#ifndef PRECAST_ERROR_H
#define PRECAST_ERROR_H

#include "precast.h"

#define PRECAST_MESSAGE_BYTES 2048

const char *precast_error(void);

/* Keeps the sentence and gives the status back, so that a caller can `return precast_fail(…)`. */
precast_status precast_fail(precast_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* What functions answer that were given no release. */
precast_status precast_not_open(void);

/* Adds to the sentence that is there; what does not fit is cut. */
void precast_add_to_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* How near the nearest unit of a refused call was: of several kernels' refusals the one with the most is of use. It goes
 * with the sentence. */
void precast_note_nearness(int value);
int precast_nearness(void);

#endif
