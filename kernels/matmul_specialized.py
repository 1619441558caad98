"""Warp-specialised matrix product on tensor descriptors from the host: out = a · b, fp32 accumulation.

a: descriptor of [m, k], b: of [k, n], out: of [m, n], with blocks of [BLOCK_M, BLOCK_K], [BLOCK_K, BLOCK_N] and
[BLOCK_M, BLOCK_N]; one dtype (fp16, bf16). One group of warps keeps TMA loads in flight, others multiply. One tile per
program. TMA writes rows of out in units of 16 bytes: what is left of the last one in a row becomes zero.
"""

import triton
import triton.language as tl


@triton.jit
def matmul_specialized_kernel(out, a, b, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    tiles_m = tl.cdiv(m, BLOCK_M)
    row = tl.program_id(0) % tiles_m * BLOCK_M
    column = tl.program_id(0) // tiles_m * BLOCK_N
    total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for depth in tl.range(0, tl.cdiv(k, BLOCK_K), warp_specialize=True):
        left = a.load([row, depth * BLOCK_K])
        right = b.load([depth * BLOCK_K, column])
        total = tl.dot(left, right, total)
    out.store([row, column], total.to(out.dtype))
