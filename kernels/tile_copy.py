"""Copy a matrix tile by tile through host tensor descriptors: TMA on sm_90 and later, pointers elsewhere.

out, x: descriptors of [n_rows, n_cols] with blocks of [BLOCK_ROWS, BLOCK_COLS] and one dtype (i8, fp16, fp32). Reads
past the edge give zeros, writes past it are dropped, but for what TMA needs to fill the last 16 bytes of a row.
"""

import triton
import triton.language as tl


@triton.jit
def tile_copy_kernel(out, x, n_rows, n_cols, BLOCK_ROWS: tl.constexpr, BLOCK_COLS: tl.constexpr):
    place = [tl.program_id(0) * BLOCK_ROWS, tl.program_id(1) * BLOCK_COLS]
    out.store(place, x.load(place))
