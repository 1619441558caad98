"""Dropout with Triton's Philox: out[i] = x[i] / (1 - p) where the random number of i is at least p, else 0.

out, x: [n], contiguous, one dtype (fp16, bf16, fp32); p: fp32 in [0, 1); seed: i64. Element i draws word i % 4 of
counter i // 4, so that four elements share one run of the generator, and a mask depends on seed and i alone.
"""

import triton
import triton.language as tl


@triton.jit
def dropout_kernel(out, x, n, p, seed, BLOCK: tl.constexpr):
    counter = tl.program_id(0).to(tl.int64) * (BLOCK // 4) + tl.arange(0, BLOCK // 4)
    a, b, c, d = tl.rand4x(seed, counter)
    random = tl.reshape(tl.join(tl.join(a, c), tl.join(b, d)), [BLOCK])
    places = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + places, mask=places < n, other=0.0).to(tl.float32)
    value = tl.where(random >= p, value / (1.0 - p), 0.0)
    tl.store(out + places, value.to(out.dtype.element_ty), mask=places < n)
