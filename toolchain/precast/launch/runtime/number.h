/* Scalars from the widest type of their kind to the one that a unit takes. */
#ifndef PRECAST_NUMBER_H
#define PRECAST_NUMBER_H

#include "precast.h"

/* The bits of `value` in a floating-point type, rounded to nearest even; 0 for any other type. */
uint64_t precast_float_bits(double value, unsigned type);

/* Whether `slot`, an integer extended from `from`, is a value of the integer type `to`. */
int precast_integer_fits(uint64_t slot, unsigned from, unsigned to);

/* Of an integer type. */
int precast_integer_bits(unsigned type);

int precast_is_float(unsigned type);
int precast_is_signed(unsigned type);

/* A slot of the type as decimal text, or as 0x… where it is no number; 24 bytes are enough. */
void precast_print_slot(uint64_t slot, unsigned type, char *text, size_t bytes);

/* `fp16` for PRECAST_FP16; "?" for no type. */
const char *precast_type_name(unsigned type);

#endif
