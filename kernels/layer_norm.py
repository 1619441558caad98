"""Layer norm over the last dimension: out = (x - mean) / sqrt(variance + eps) · weight + bias, one program per row.

out, x: [n_rows, n_cols], rows `stride` elements apart, columns contiguous; weight, bias: [n_cols]. One dtype (fp16,
bf16, fp32); eps: fp32. Any n_cols. The variance is that of the centred row, in fp32: no cancellation for a large mean.
"""

import triton
import triton.language as tl


@triton.jit
def layer_norm_kernel(out, x, weight, bias, stride, n_rows, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    out += row * stride
    x += row * stride

    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n_cols, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        total += tl.load(x + columns, mask=columns < n_cols, other=0.0).to(tl.float32)
    mean = tl.sum(total, 0) / n_cols

    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n_cols, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        inside = columns < n_cols
        value = tl.load(x + columns, mask=inside, other=0.0).to(tl.float32)
        centred = tl.where(inside, value - mean, 0.0)
        squares += centred * centred
    scale = 1.0 / tl.sqrt_rn(tl.sum(squares, 0) / n_cols + eps)

    for start in range(0, n_cols, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        inside = columns < n_cols
        value = tl.load(x + columns, mask=inside, other=0.0).to(tl.float32)
        gain = tl.load(weight + columns, mask=inside, other=0.0).to(tl.float32)
        shift = tl.load(bias + columns, mask=inside, other=0.0).to(tl.float32)
        value = (value - mean) * scale * gain + shift
        tl.store(out + columns, value.to(out.dtype.element_ty), mask=inside)
