"""Attention forward: out = softmax(scale · q kᵀ) v for each head, without ever storing the scores.

q, out: [batch, heads, q_length, HEAD_DIM]; k, v: [batch, kv_heads, kv_length, HEAD_DIM]; heads is a multiple of
kv_heads (grouped queries). Batch, head and row strides in elements, the last dimension contiguous. One dtype (fp16,
bf16, fp32); scores, sums and accumulation are fp32. CAUSAL aligns the last query with the last key; a query that sees
no key gives zeros. HEAD_DIM is a power of two.
"""

import triton
import triton.language as tl


@triton.jit
def attend(
    state, q, k, v, scale, first, last, kv_length, rows, k_stride, v_stride,
    CAUSAL: tl.constexpr, MASKED: tl.constexpr, BLOCK_N: tl.constexpr, HEAD_DIM: tl.constexpr,
):  # fmt: skip
    """Fold keys [first, last) into `state`: the running sum of values, maximum and sum of weights of each row."""
    total, peak, weight = state
    depth = tl.arange(0, HEAD_DIM)
    for start in range(first, last, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        inside = keys < kv_length
        k_place = k + keys[:, None].to(tl.int64) * k_stride + depth[None, :]
        v_place = v + keys[:, None].to(tl.int64) * v_stride + depth[None, :]
        k_block = tl.load(k_place, mask=inside[:, None], other=0.0) if MASKED else tl.load(k_place)
        score = tl.dot(q, tl.trans(k_block), input_precision="ieee") * scale
        if MASKED:
            seen = inside[None, :]
            if CAUSAL:
                seen = seen & (keys[None, :] <= rows[:, None])
            score = tl.where(seen, score, float("-inf"))
        new_peak = tl.maximum(peak, tl.max(score, 1))
        # A row that has seen no key yet has peak -inf: subtract 0 there, since -inf - -inf is not a number.
        shift = tl.where(new_peak == float("-inf"), 0.0, new_peak)
        share = tl.exp2(score - shift[:, None])
        fade = tl.exp2(peak - shift)
        weight = weight * fade + tl.sum(share, 1)
        v_block = tl.load(v_place, mask=inside[:, None], other=0.0) if MASKED else tl.load(v_place)
        total = tl.dot(share.to(v.dtype.element_ty), v_block, total * fade[:, None], input_precision="ieee")
        peak = new_peak
    return total, peak, weight


@triton.jit
def attention_kernel(
    out, q, k, v, scale, batch, heads, kv_heads, q_length, kv_length,
    out_batch_stride, out_head_stride, out_stride, q_batch_stride, q_head_stride, q_stride,
    k_batch_stride, k_head_stride, k_stride, v_batch_stride, v_head_stride, v_stride,
    CAUSAL: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    first_row = tl.program_id(0) * BLOCK_M
    item = (tl.program_id(1) // heads).to(tl.int64)
    head = (tl.program_id(1) % heads).to(tl.int64)
    kv_head = head // (heads // kv_heads)
    q += item * q_batch_stride + head * q_head_stride
    k += item * k_batch_stride + kv_head * k_head_stride
    v += item * v_batch_stride + kv_head * v_head_stride
    out += item * out_batch_stride + head * out_head_stride

    rows = first_row + tl.arange(0, BLOCK_M)
    depth = tl.arange(0, HEAD_DIM)
    present = (rows < q_length)[:, None]
    q_block = tl.load(q + rows[:, None].to(tl.int64) * q_stride + depth[None, :], mask=present, other=0.0)
    state = (
        tl.zeros([BLOCK_M, HEAD_DIM], tl.float32),
        tl.full([BLOCK_M], float("-inf"), tl.float32),
        tl.zeros([BLOCK_M], tl.float32),
    )
    # Whole blocks of keys that every row of the tile sees need no mask; the diagonal and the ragged end do.
    shift = kv_length - q_length
    last = kv_length
    whole = kv_length
    if CAUSAL:
        last = tl.minimum(kv_length, first_row + BLOCK_M + shift)
        whole = tl.maximum(tl.minimum(kv_length, first_row + shift + 1), 0)
    whole = whole // BLOCK_N * BLOCK_N
    scale *= 1.4426950408889634  # weights are powers of two
    state = attend(state, q_block, k, v, scale, 0, whole, kv_length, rows + shift, k_stride, v_stride,
                   CAUSAL, False, BLOCK_N, HEAD_DIM)  # fmt: skip
    state = attend(state, q_block, k, v, scale, whole, last, kv_length, rows + shift, k_stride, v_stride,
                   CAUSAL, True, BLOCK_N, HEAD_DIM)  # fmt: skip
    total, _, weight = state
    total = total / tl.where(weight == 0.0, 1.0, weight)[:, None]
    out_block = out + rows[:, None].to(tl.int64) * out_stride + depth[None, :]
    tl.store(out_block, total.to(out.dtype.element_ty), mask=present)
