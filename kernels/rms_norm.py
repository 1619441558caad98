"""RMS norm over the last dimension, with a residual added first if HAS_RESIDUAL, one program per row.

Without: out = x / sqrt(mean(x²) + eps) · weight. With: residual becomes x + residual, rounded to its dtype, in place,
and out is the norm of that. out, x, residual: [n_rows, n_cols], rows `stride` elements apart, columns contiguous;
weight: [n_cols]; residual may be null when HAS_RESIDUAL is false. One dtype (fp16, bf16, fp32); eps: fp32. Any n_cols.
"""

import triton
import triton.language as tl


@triton.jit
def load_sum(x, residual, columns, inside, HAS_RESIDUAL: tl.constexpr):
    """One block of x, or of x + residual rounded as it will be stored."""
    value = tl.load(x + columns, mask=inside, other=0.0).to(tl.float32)
    if HAS_RESIDUAL:
        value += tl.load(residual + columns, mask=inside, other=0.0).to(tl.float32)
        value = value.to(residual.dtype.element_ty).to(tl.float32)
    return value


@triton.jit
def rms_norm_kernel(
    out, x, residual, weight, stride, n_rows, n_cols, eps, HAS_RESIDUAL: tl.constexpr, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    out += row * stride
    x += row * stride
    residual += row * stride

    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n_cols, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        value = load_sum(x, residual, columns, columns < n_cols, HAS_RESIDUAL)
        squares += value * value
    scale = 1.0 / tl.sqrt_rn(tl.sum(squares, 0) / n_cols + eps)

    # The residual is written only here, after its last read: nothing is read back from memory within a program.
    for start in range(0, n_cols, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        inside = columns < n_cols
        value = load_sum(x, residual, columns, inside, HAS_RESIDUAL)
        if HAS_RESIDUAL:
            tl.store(residual + columns, value.to(residual.dtype.element_ty), mask=inside)
        gain = tl.load(weight + columns, mask=inside, other=0.0).to(tl.float32)
        tl.store(out + columns, (value * scale * gain).to(out.dtype.element_ty), mask=inside)
