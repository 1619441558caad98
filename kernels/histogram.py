"""Histogram: counts[v] += how often v occurs in x, each block counted on chip and then added with atomics.

counts: [BINS] of i32, not cleared; x: [n] of i32 or i64, contiguous. Values outside [0, BINS) are not counted. BINS is
a power of two. Counts tokens per expert, for example.
"""

import triton
import triton.language as tl


@triton.jit
def histogram_kernel(counts, x, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    places = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + places, mask=places < n, other=-1)
    known = (value >= 0) & (value < BINS)
    block_counts = tl.histogram(value.to(tl.int32), BINS, mask=known)
    tl.atomic_add(counts + tl.arange(0, BINS), block_counts, mask=block_counts > 0, sem="relaxed")
