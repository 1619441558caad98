"""Symmetric quantisation of each row to int8 or fp8: out[r] = round(x[r] / scale[r]), one program per row.

scale[r], fp32, is the largest |x[r]|, or 1e-30 if that is larger, over the largest value of out's type.
out: [n_rows, n_cols] of int8 or an fp8 type, x: fp16, bf16 or fp32; rows `out_stride` and `x_stride` elements apart,
columns contiguous; scale: [n_rows]. Any n_cols. int8 rounds half to even and never gives -128.
"""

import triton
import triton.language as tl


@triton.jit
def largest(DTYPE: tl.constexpr):
    """The largest finite value of a quantised type, as a constant."""
    LIMIT: tl.constexpr = (
        127.0 if DTYPE.is_int8() else 448.0 if DTYPE.is_fp8e4nv() else 240.0 if DTYPE.is_fp8e4b8() else 57344.0
    )
    return LIMIT


@triton.jit
def narrow(value, DTYPE: tl.constexpr):
    """Round fp32 within the range of DTYPE to DTYPE."""
    if DTYPE.is_int8():
        # Adding 1.5 · 2²³ leaves no bit for a fraction: the addition itself rounds half to even.
        value = (value + 12582912.0) - 12582912.0
    return value.to(DTYPE)


@triton.jit
def quantize_kernel(out, scale, x, n_rows, n_cols, out_stride, x_stride, BLOCK: tl.constexpr):
    LIMIT: tl.constexpr = largest(out.dtype.element_ty)
    row = tl.program_id(0).to(tl.int64)
    x += row * x_stride
    out += row * out_stride

    peaks = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n_cols, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        peaks = tl.maximum(peaks, tl.abs(tl.load(x + columns, mask=columns < n_cols, other=0.0).to(tl.float32)))
    peak = tl.maximum(tl.max(peaks, 0), 1e-30)
    tl.store(scale + row, peak / LIMIT)

    inverse = LIMIT / peak
    for start in range(0, n_cols, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        inside = columns < n_cols
        value = tl.load(x + columns, mask=inside, other=0.0).to(tl.float32) * inverse
        value = tl.minimum(tl.maximum(value, -LIMIT), LIMIT)
        tl.store(out + columns, narrow(value, out.dtype.element_ty), mask=inside)
