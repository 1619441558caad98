"""Greedy choice: out[r] = the lowest index of the largest x[r, c], one program per row.

out: [n_rows] of i64; x: [n_rows, n_cols] of fp16, bf16 or fp32, rows `stride` elements apart, columns contiguous.
A NaN counts as -inf; a row without any larger value gives 0. Any n_cols ≥ 1.
"""

import triton
import triton.language as tl


@triton.jit
def better(value, index, other_value, other_index):
    """The larger value with its index; the lower index when both are equal."""
    keep = (value > other_value) | ((value == other_value) & (index < other_index))
    return tl.where(keep, value, other_value), tl.where(keep, index, other_index)


@triton.jit
def argmax_kernel(out, x, stride, n_rows, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x += row.to(tl.int64) * stride
    best = tl.full([BLOCK], float("-inf"), tl.float32)
    place = tl.arange(0, BLOCK)
    for start in range(0, n_cols, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        value = tl.load(x + columns, mask=columns < n_cols, other=float("-inf")).to(tl.float32)
        larger = value > best  # never true for a NaN
        best = tl.where(larger, value, best)
        place = tl.where(larger, columns, place)
    _, winner = tl.reduce((best, place), 0, better)
    tl.store(out + row, winner.to(tl.int64))
