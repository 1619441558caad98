"""A kernel as a user's program has it, with a helper and a constant; the release of test_serve is built from it."""

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
