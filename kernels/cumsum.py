"""Cumulative sum of each row: out[r, c] = x[r, 0] + … + x[r, c], one program per row.

out, x: [n_rows, n_cols], rows `out_stride` and `x_stride` elements apart, columns contiguous. One dtype: fp16 and bf16
add up in fp32; i32 wraps around. Any n_cols.
"""

import triton
import triton.language as tl


@triton.jit
def cumsum_kernel(out, x, n_rows, n_cols, out_stride, x_stride, BLOCK: tl.constexpr):
    WIDE: tl.constexpr = tl.int32 if x.dtype.element_ty.is_int() else tl.float32
    row = tl.program_id(0).to(tl.int64)
    x += row * x_stride
    out += row * out_stride
    before = tl.zeros([], WIDE)
    for start in range(0, n_cols, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        inside = columns < n_cols
        value = tl.load(x + columns, mask=inside, other=0).to(WIDE)
        tl.store(out + columns, (before + tl.cumsum(value, 0)).to(out.dtype.element_ty), mask=inside)
        before += tl.sum(value, 0)
