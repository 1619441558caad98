"""Kernels as a user's program has them; the releases of the tests of `serve` are built from the first, or as if."""

import triton
import triton.language as tl

OFFSET = tl.constexpr(0)


@triton.jit
def scaled(value, alpha):
    return value * alpha


@triton.jit
def scale_kernel(out, x, alpha, n, BLOCK: tl.constexpr):
    """Multiplies by a number."""
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK) + OFFSET
    # A comment counts for nothing.
    tl.store(out + places, scaled(tl.load(x + places, mask=places < n), alpha), mask=places < n)


@triton.jit
def __mixed_kernel(out, pair, n, MODE: tl.constexpr, BIAS: tl.constexpr = None, BLOCK: tl.constexpr = 64):
    """Arguments and constexprs of all kinds."""
    places = tl.arange(0, BLOCK)
    tl.store(out + places, tl.load(pair[0] + places, mask=places < n) * pair[1], mask=places < n)


@triton.jit
def add_kernel(out, x, n, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + places, tl.load(x + places, mask=places < n) + 1, mask=places < n)


@triton.jit(do_not_specialize=["free"], do_not_specialize_on_alignment=["any_place"])
def hinted_kernel(x, y, n, m, zero, free, any_place, flag, real, wide: tl.int64, count: tl.int32):
    """Arguments that the JIT specialises, and such as it does not."""
