"""Embedding gather, with the rows of a shard: out[i] = table[ids[i] - first_id], or zeros where that row is not here.

out: [n_ids, n_cols], table: [n_rows, n_cols], rows `out_stride` and `table_stride` elements apart, columns contiguous;
ids: [n_ids] of i32 or i64. One dtype (fp16, bf16, fp32). Shards of a vocabulary add up to the whole result.
"""

import triton
import triton.language as tl


@triton.jit
def embedding_kernel(out, table, ids, n_ids, n_cols, first_id, n_rows, out_stride, table_stride, BLOCK: tl.constexpr):
    place = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    row = tl.load(ids + place).to(tl.int64) - first_id
    present = tl.where((row >= 0) & (row < n_rows), n_cols, 0)
    value = tl.load(table + row * table_stride + columns, mask=columns < present, other=0.0)
    tl.store(out + place * out_stride + columns, value, mask=columns < n_cols)
