"""A kernel that writes one element behind its buffer."""

import triton
import triton.language as tl


@triton.jit
def shift_kernel(out, x, n, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + places, mask=places < n)
    tl.store(out + places + 1, value, mask=places < n)
