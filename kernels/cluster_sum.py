"""Sum of each row by a cluster of two thread blocks that share the row: out[r] = x[r, 0] + … + x[r, n_cols - 1].

out: [n_rows] of fp32; x: [n_rows, n_cols] of fp32, rows `stride` elements apart, columns contiguous. The two halves of
a block meet through distributed shared memory. sm_90 and later.
"""

import triton
import triton.language as tl


@triton.jit
def cluster_sum_kernel(out, x, stride, n_rows, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x += row.to(tl.int64) * stride
    total = 0.0
    for start in range(0, n_cols, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        total += tl.sum(tl.load(x + columns, mask=columns < n_cols, other=0.0), 0)
    tl.store(out + row, total)
