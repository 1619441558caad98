"""Transpose in Gluon, through shared memory with layouts by hand: out[c, r] = x[r, c].

x: [n_rows, n_cols], out: [n_cols, n_rows], rows `x_stride` and `out_stride` elements apart, columns contiguous; one
dtype, copied as bits. Both global accesses run along rows; the tile in shared memory has a padding element after each
row, so that reading a column meets every bank once. WARP_SIZE is that of the target.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def gluon_transpose_kernel(out, x, n_rows, n_cols, out_stride, x_stride, BLOCK: gl.constexpr, WARP_SIZE: gl.constexpr):
    row_wise: gl.constexpr = gl.BlockedLayout([1, 1], [1, WARP_SIZE], [gl.num_warps(), 1], [1, 0])
    padded: gl.constexpr = gl.PaddedSharedLayout.with_identity_for([[BLOCK, 1]], [BLOCK, BLOCK], [1, 0])
    first_row = gl.program_id(0) * BLOCK
    first_column = gl.program_id(1) * BLOCK
    down = gl.arange(0, BLOCK, gl.SliceLayout(1, row_wise))
    along = gl.arange(0, BLOCK, gl.SliceLayout(0, row_wise))

    rows = (first_row + down)[:, None]
    columns = (first_column + along)[None, :]
    tile = gl.load(x + rows.to(gl.int64) * x_stride + columns, mask=(rows < n_rows) & (columns < n_cols))
    shared = gl.allocate_shared_memory(x.dtype.element_ty, [BLOCK, BLOCK], padded, tile)
    turned = shared.permute((1, 0)).load(row_wise)

    rows = (first_column + down)[:, None]
    columns = (first_row + along)[None, :]
    place = out + rows.to(gl.int64) * out_stride + columns
    gl.store(place, turned, mask=(rows < n_cols) & (columns < n_rows))
