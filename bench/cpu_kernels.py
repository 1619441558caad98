"""Kernels that `bench/cpu.py` runs beside those of `kernels/`."""

import triton
import triton.language as tl


@triton.jit
def vector_add_kernel(out, x, y, n, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < n
    tl.store(out + place, tl.load(x + place, mask=inside) + tl.load(y + place, mask=inside), mask=inside)


@triton.jit
def gather_kernel(out, x, index, n, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < n
    taken = tl.load(index + place, mask=inside, other=0)
    tl.store(out + place, tl.load(x + taken, mask=inside), mask=inside)


@triton.jit
def small_matmul_kernel(
    out, a, b, n, k, TOTAL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    """out = a · b of whole blocks, of bytes or small floats."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)
    a_block = a + rows[:, None] * k + depth[None, :]
    b_block = b + depth[:, None] * n + columns[None, :]
    total = tl.zeros([BLOCK_M, BLOCK_N], TOTAL)
    for _ in range(0, k, BLOCK_K):
        total = tl.dot(tl.load(a_block), tl.load(b_block), total, out_dtype=TOTAL)
        a_block += BLOCK_K
        b_block += BLOCK_K * n
    tl.store(out + rows[:, None] * n + columns[None, :], total)


@triton.jit
def products_kernel(out, a, b, rounds, N: tl.constexpr):
    """Products of blocks that stay in the cache, one of them turned, as attention makes them."""
    rows, columns = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    x, y = tl.load(a + rows * N + columns), tl.load(b + rows * N + columns)
    total = tl.zeros([N, N], tl.float32)
    for _ in range(rounds):
        total = tl.dot(x, tl.trans(y), total, input_precision="ieee")
    tl.store(out + rows * N + columns, total)


@triton.jit
def sort_kernel(out, x, N: tl.constexpr):
    place = tl.arange(0, N)
    tl.store(out + place, tl.sort(tl.load(x + place)))
