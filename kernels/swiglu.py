"""SwiGLU on a packed projection: out[r, c] = silu(x[r, c]) · x[r, n_cols + c].

out: [n_rows, n_cols]; x: [n_rows, 2 · n_cols], gate in the first half, up-projection in the second; rows
`out_stride` and `x_stride` elements apart, columns contiguous. One dtype (fp16, bf16, fp32); the arithmetic is fp32.
"""

import triton
import triton.language as tl
from activations import silu


@triton.jit
def swiglu_kernel(out, x, n_rows, n_cols, out_stride, x_stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < n_cols
    x += row * x_stride
    gate = tl.load(x + columns, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(x + n_cols + columns, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + row * out_stride + columns, (silu(gate) * up).to(out.dtype.element_ty), mask=inside)
