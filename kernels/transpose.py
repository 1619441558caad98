"""Transpose: out[c, r] = x[r, c].

x: [n_rows, n_cols], out: [n_cols, n_rows], rows `x_stride` and `out_stride` elements apart, columns contiguous.
One dtype, copied as bits: any type of that size.
"""

import triton
import triton.language as tl


@triton.jit
def transpose_kernel(out, x, n_rows, n_cols, out_stride, x_stride, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = (rows < n_rows)[:, None] & (columns < n_cols)[None, :]
    tile = tl.load(x + rows[:, None].to(tl.int64) * x_stride + columns[None, :], mask=inside)
    place = out + columns[:, None].to(tl.int64) * out_stride + rows[None, :]
    tl.store(place, tl.trans(tile), mask=tl.trans(inside))
