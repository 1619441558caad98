"""Softmax over the last dimension, one program per row, the row held in one block.

out, x: [n_rows, n_cols], both with rows `stride` elements apart and columns contiguous; n_cols ≤ BLOCK.
One dtype (fp16, bf16, fp32); the arithmetic is fp32.
"""

import triton
import triton.language as tl


@triton.jit
def softmax_kernel(out, x, stride, n_rows, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    inside = columns < n_cols
    value = tl.load(x + row * stride + columns, mask=inside, other=float("-inf")).to(tl.float32)
    weight = tl.exp(value - tl.max(value, 0))
    weight /= tl.sum(weight, 0)
    tl.store(out + row * stride + columns, weight.to(out.dtype.element_ty), mask=inside)
