"""Cross-entropy forward over a vocabulary of any size, one program per row, logits read once.

loss[r] = lse[r] - logits[r, targets[r]], or 0 where targets[r] is `ignored`; lse[r] = log(sum(exp(logits[r])));
lse: [n_rows] and loss: [n_rows] of fp32, logits: [n_rows, n_cols] of fp16, bf16 or fp32, rows `stride` elements apart;
targets: [n_rows] of i64. SOFTCAP c > 0 replaces each logit x by c · tanh(x / c) first; 0 leaves it.
"""

import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def cap(x, SOFTCAP: tl.constexpr):
    """Squash x smoothly into (-SOFTCAP, SOFTCAP)."""
    if SOFTCAP > 0:
        x = SOFTCAP * libdevice.tanh(x * (1.0 / SOFTCAP))
    return x


@triton.jit
def cross_entropy_kernel(
    loss, lse, logits, targets, stride, n_rows, n_cols, ignored, SOFTCAP: tl.constexpr, BLOCK: tl.constexpr
):
    row = tl.program_id(0)
    logits += row.to(tl.int64) * stride
    peak = float("-inf")
    total = 0.0
    for start in range(0, n_cols, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        inside = columns < n_cols
        value = cap(tl.load(logits + columns, mask=inside, other=0.0).to(tl.float32), SOFTCAP)
        value = tl.where(inside, value, float("-inf"))
        new_peak = tl.maximum(peak, tl.max(value, 0))
        # A row of -inf so far: subtract 0 there, since -inf - -inf is not a number.
        shift = tl.where(new_peak == float("-inf"), 0.0, new_peak)
        total = total * tl.exp(peak - shift) + tl.sum(tl.exp(value - shift), 0)
        peak = new_peak
    result = peak + tl.log(total)
    tl.store(lse + row, result)

    target = tl.load(targets + row)
    counted = target != ignored
    chosen = cap(tl.load(logits + target, mask=counted, other=0.0).to(tl.float32), SOFTCAP)
    tl.store(loss + row, tl.where(counted, result - chosen, 0.0))
