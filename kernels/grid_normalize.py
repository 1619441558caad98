"""Divide a vector by the sum of its elements in one launch, with a barrier over the whole grid in the middle.

out, x: [n] of fp32, contiguous; total: [1] of fp32 and arrived: [1] of i32, both zero before the launch; total holds
the sum after it. Every program must be resident at once, so the launch is cooperative and `programs` at most what the
device holds; each walks every `programs`-th block. The order of the additions is not fixed.
"""

import triton
import triton.language as tl


@triton.jit
def grid_normalize_kernel(out, x, total, arrived, n, programs, BLOCK: tl.constexpr):
    first = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    step = programs.to(tl.int64) * BLOCK
    partial = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n, step):
        partial += tl.load(x + start + first, mask=start + first < n, other=0.0)
    tl.atomic_add(total, tl.sum(partial, 0), sem="relaxed")

    tl.atomic_add(arrived, 1, sem="acq_rel")
    while tl.atomic_add(arrived, 0, sem="acquire") < programs:
        pass
    divisor = tl.atomic_add(total, 0.0, sem="relaxed")
    for start in range(0, n, step):
        value = tl.load(x + start + first, mask=start + first < n, other=0.0)
        tl.store(out + start + first, value / divisor, mask=start + first < n)
