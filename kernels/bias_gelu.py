"""Fused bias and GELU: out[r, c] = gelu(x[r, c] + bias[c]).

out, x: [n_rows, n_cols], rows `out_stride` and `x_stride` elements apart, columns contiguous; bias: [n_cols].
All of one dtype (fp16, bf16, fp32); the arithmetic is fp32. FORM: `erf` or `tanh`.
"""

import triton
import triton.language as tl
from activations import activate


@triton.jit
def bias_gelu_kernel(out, x, bias, n_rows, n_cols, out_stride, x_stride, FORM: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < n_cols
    value = tl.load(x + row * x_stride + columns, mask=inside, other=0.0).to(tl.float32)
    value += tl.load(bias + columns, mask=inside, other=0.0).to(tl.float32)
    value = activate(value, "gelu_" + FORM)
    tl.store(out + row * out_stride + columns, value.to(out.dtype.element_ty), mask=inside)
