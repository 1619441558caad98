"""Matrix product with epilogue: out = activation(a · b + bias), fp32 accumulation.

a: [m, k], b: [k, n], out: [m, n], rows `*_stride` elements apart, columns contiguous; bias: [n], may be null when
HAS_BIAS is false. One dtype (fp16, bf16, fp32). ACTIVATION as in `activations.activate`. PRECISION is that of fp32
products: `ieee`, or `tf32` where the tensor cores have it.
"""

import triton
import triton.language as tl
from activations import activate


@triton.jit
def tile_place(m, n, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUP_M: tl.constexpr):
    """Row and column of this program's tile; GROUP_M rows of tiles walk together, so that b's tiles stay cached."""
    program = tl.program_id(0)
    tiles_n = tl.cdiv(n, BLOCK_N)
    first_m = program // (GROUP_M * tiles_n) * GROUP_M
    rows = min(tl.cdiv(m, BLOCK_M) - first_m, GROUP_M)
    inside = program % (GROUP_M * tiles_n)
    return first_m + inside % rows, inside // rows


@triton.jit
def matmul_kernel(
    out, a, b, bias, m, n, k, out_stride, a_stride, b_stride,
    HAS_BIAS: tl.constexpr, ACTIVATION: tl.constexpr, PRECISION: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    tile_m, tile_n = tile_place(m, n, BLOCK_M, BLOCK_N, GROUP_M)
    rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)
    a_block = a + rows[:, None].to(tl.int64) * a_stride + depth[None, :]
    b_block = b + depth[:, None].to(tl.int64) * b_stride + columns[None, :]
    b_step = BLOCK_K * b_stride.to(tl.int64)

    total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in range(0, k, BLOCK_K):
        left = tl.load(a_block, mask=(rows[:, None] < m) & (depth[None, :] < k - start), other=0.0)
        right = tl.load(b_block, mask=(depth[:, None] < k - start) & (columns[None, :] < n), other=0.0)
        total = tl.dot(left, right, total, input_precision=PRECISION)
        a_block += BLOCK_K
        b_block += b_step

    if HAS_BIAS:
        total += tl.load(bias + columns, mask=columns < n, other=0.0).to(tl.float32)[None, :]
    total = activate(total, ACTIVATION)
    out_block = out + rows[:, None].to(tl.int64) * out_stride + columns[None, :]
    tl.store(out_block, total.to(out.dtype.element_ty), mask=(rows[:, None] < m) & (columns[None, :] < n))
