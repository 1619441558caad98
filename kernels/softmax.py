"""Softmax over the last dimension, one program per row; the first BLOCK columns are read once, any further ones twice.

out, x: [n_rows, n_cols], both with rows `stride` elements apart and columns contiguous. One dtype (fp16, bf16, fp32);
the arithmetic is fp32. Any n_cols ≥ 1; a row of -inf alone gives NaN.
"""

import triton
import triton.language as tl


@triton.jit
def exp_below(value, peak):
    """exp(value - peak); where every value so far is -inf, and so is the peak, zeros instead of NaN."""
    return tl.exp(value - tl.where(peak == float("-inf"), 0.0, peak))


@triton.jit
def softmax_kernel(out, x, stride, n_rows, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    out += row * stride
    x += row * stride
    columns = tl.arange(0, BLOCK)

    first = tl.load(x + columns, mask=columns < n_cols, other=float("-inf")).to(tl.float32)
    first_peak = tl.max(first, 0)
    weight = exp_below(first, first_peak)
    peak = first_peak
    total = tl.sum(weight, 0)
    for start in range(BLOCK, n_cols, BLOCK):
        further = start + columns
        value = tl.load(x + further, mask=further < n_cols, other=float("-inf")).to(tl.float32)
        new_peak = tl.maximum(peak, tl.max(value, 0))
        total = total * exp_below(peak, new_peak) + tl.sum(exp_below(value, new_peak), 0)
        peak = new_peak

    weight *= exp_below(first_peak, peak) / total
    tl.store(out + columns, weight.to(out.dtype.element_ty), mask=columns < n_cols)
    for start in range(BLOCK, n_cols, BLOCK):
        further = start + columns
        value = tl.load(x + further, mask=further < n_cols, other=float("-inf")).to(tl.float32)
        tl.store(out + further, (exp_below(value, peak) / total).to(out.dtype.element_ty), mask=further < n_cols)
