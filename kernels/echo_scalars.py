"""Write every scalar argument to memory: shows that a launcher passes each type as the kernel reads it.

integers: [9] of i64, floats: [4] of fp64, pointed: the tuple's pointer, [1] of i32 that gets the tuple's integer.
Small types are widened: unsigned ones with zeros, signed ones with their sign.
"""

import triton
import triton.language as tl


@triton.jit
def echo_scalars_kernel(
    integers,
    floats,
    flag,
    small,
    short,
    word,
    long,
    u_small,
    u_short,
    u_word,
    u_long,
    half,
    brain,
    single,
    double,
    pair,
):
    tl.store(integers + 0, flag.to(tl.int64))
    tl.store(integers + 1, small.to(tl.int64))
    tl.store(integers + 2, short.to(tl.int64))
    tl.store(integers + 3, word.to(tl.int64))
    tl.store(integers + 4, long)
    tl.store(integers + 5, u_small.to(tl.int64))
    tl.store(integers + 6, u_short.to(tl.int64))
    tl.store(integers + 7, u_word.to(tl.int64))
    tl.store(integers + 8, u_long.to(tl.int64))
    tl.store(floats + 0, half.to(tl.float64))
    tl.store(floats + 1, brain.to(tl.float64))
    tl.store(floats + 2, single.to(tl.float64))
    tl.store(floats + 3, double)
    tl.store(pair[1], pair[0])
