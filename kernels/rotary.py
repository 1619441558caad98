"""Rotary position embedding: each pair (a, b) of a head turns into (a cos - b sin, a sin + b cos).

out, x: [n_tokens, n_heads, HEAD_DIM], tokens `out_stride` and `x_stride` elements apart, heads and elements contiguous;
out may be x. cos, sin: [max_position, HEAD_DIM / 2], contiguous; positions: [n_tokens] of i64. One dtype (fp16, bf16,
fp32), the arithmetic is fp32. A pair is (i, i + HEAD_DIM / 2), or neighbours (2i, 2i + 1) when INTERLEAVED.
"""

import triton
import triton.language as tl


@triton.jit
def turn(a, b, cos, sin):
    """The pair (a, b) turned by the angle of `cos` and `sin`."""
    return a * cos - b * sin, a * sin + b * cos


@triton.jit
def rotary_kernel(
    out, x, cos, sin, positions, n_tokens, n_heads, out_stride, x_stride,
    INTERLEAVED: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_HEADS: tl.constexpr,
):  # fmt: skip
    HALF: tl.constexpr = HEAD_DIM // 2
    token = tl.program_id(0).to(tl.int64)
    heads = tl.program_id(1) * BLOCK_HEADS + tl.arange(0, BLOCK_HEADS)
    present = (heads < n_heads)[:, None]
    pair = tl.arange(0, HALF)
    angle = tl.load(positions + token) * HALF + pair
    cosine = tl.load(cos + angle).to(tl.float32)[None, :]
    sine = tl.load(sin + angle).to(tl.float32)[None, :]
    out += token * out_stride
    x += token * x_stride
    if INTERLEAVED:
        place = heads[:, None] * HEAD_DIM + tl.arange(0, HEAD_DIM)[None, :]
        value = tl.load(x + place, mask=present, other=0.0).to(tl.float32)
        first, second = tl.split(tl.reshape(value, [BLOCK_HEADS, HALF, 2]))
        first, second = turn(first, second, cosine, sine)
        value = tl.reshape(tl.join(first, second), [BLOCK_HEADS, HEAD_DIM])
        tl.store(out + place, value.to(out.dtype.element_ty), mask=present)
    else:
        place = heads[:, None] * HEAD_DIM + pair[None, :]
        first = tl.load(x + place, mask=present, other=0.0).to(tl.float32)
        second = tl.load(x + place + HALF, mask=present, other=0.0).to(tl.float32)
        first, second = turn(first, second, cosine, sine)
        tl.store(out + place, first.to(out.dtype.element_ty), mask=present)
        tl.store(out + place + HALF, second.to(out.dtype.element_ty), mask=present)
