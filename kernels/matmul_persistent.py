"""Persistent matrix product on tensor descriptors that the kernel makes: out = a · b, fp32 accumulation.

a: [m, k], b: [k, n], out: [m, n], rows `*_stride` elements apart and a multiple of 16 bytes, columns contiguous; one
dtype (fp16, bf16). Each of `programs` programs (one per multiprocessor, or so) walks every `programs`-th tile. On sm_90
and later the descriptors lie in global scratch and drive TMA; elsewhere they are plain pointer arithmetic.
TMA writes rows of out in units of 16 bytes: what is left of the last one in a row becomes zero.
"""

import triton
import triton.language as tl


@triton.jit
def matmul_persistent_kernel(
    out, a, b, m, n, k, out_stride, a_stride, b_stride, programs,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    a_tiles = tl.make_tensor_descriptor(a, [m, k], [a_stride.to(tl.int64), 1], [BLOCK_M, BLOCK_K])
    b_tiles = tl.make_tensor_descriptor(b, [k, n], [b_stride.to(tl.int64), 1], [BLOCK_K, BLOCK_N])
    out_tiles = tl.make_tensor_descriptor(out, [m, n], [out_stride.to(tl.int64), 1], [BLOCK_M, BLOCK_N])
    tiles_m = tl.cdiv(m, BLOCK_M)
    for tile in tl.range(tl.program_id(0), tiles_m * tl.cdiv(n, BLOCK_N), programs):
        row = tile % tiles_m * BLOCK_M
        column = tile // tiles_m * BLOCK_N
        total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
        for depth in range(0, k, BLOCK_K):
            total = tl.dot(a_tiles.load([row, depth]), b_tiles.load([depth, column]), total)
        out_tiles.store([row, column], total.to(out.dtype.element_ty))
