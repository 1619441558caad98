"""Cases of the kernels around tokens and vectors: rotary, embedding, cross-entropy, transpose, histogram, dropout."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kernel_cases.case import EXACT, STANDARD, Argument, KernelCase, Problem, Shape, Tolerance, Values, blank, filled
from kernel_cases.rows import ROW_SHAPES, draw, gap_of


def make_rotary(values: Values, shape: Shape, generator: np.random.Generator) -> Problem:
    element, depth, interleaved = str(values["dtype"]), int(str(values["HEAD_DIM"])), bool(values["INTERLEAVED"])
    tokens, heads, gap = shape
    angle = np.arange(64)[:, None] / 10000.0 ** (np.arange(depth // 2) / (depth // 2))
    cos, sin = filled(np.cos(angle), element), filled(np.sin(angle), element)
    positions = generator.integers(0, 64, tokens)
    x, out = filled(draw(generator, (tokens, heads * depth), element), element, gap=gap), None
    out = blank(element, (tokens, heads * depth), gap=gap)
    pairs = x.values().reshape(tokens, heads, *((depth // 2, 2) if interleaved else (2, depth // 2)))
    a, b = np.moveaxis(pairs, 3 if interleaved else 2, 0)
    cosine, sine = cos.values()[positions][:, None, :], sin.values()[positions][:, None, :]
    turned = np.stack([a * cosine - b * sine, a * sine + b * cosine], axis=3 if interleaved else 2)
    arguments: dict[str, Argument] = {
        "out": out, "x": x, "cos": cos, "sin": sin, "positions": filled(positions, "i64"),
        "n_tokens": tokens, "n_heads": heads, "out_stride": out.strides[0], "x_stride": x.strides[0],
    }  # fmt: skip
    return Problem(arguments, {"out": turned.reshape(tokens, heads * depth)}, {})


def make_embedding(values: Values, shape: Shape, generator: np.random.Generator) -> Problem:
    element, index, (n_ids, n_cols) = str(values["dtype"]), str(values["index"]), shape
    first_id, n_rows, gap = 100, 50, gap_of(shape)
    table = filled(draw(generator, (n_rows, n_cols), element), element, gap=gap)
    ids = generator.integers(first_id, first_id + n_rows, n_ids)
    ids[:2] = first_id - 1, first_id + n_rows - 1  # one of another shard, one at the very end
    here = (ids >= first_id) & (ids < first_id + n_rows)
    wanted = np.where(here[:, None], table.values()[np.where(here, ids - first_id, 0)], 0.0)
    out = blank(element, shape, gap=gap)
    arguments: dict[str, Argument] = {
        "out": out, "table": table, "ids": filled(ids, index), "n_ids": n_ids, "n_cols": n_cols,
        "first_id": first_id, "n_rows": n_rows, "out_stride": out.strides[0], "table_stride": table.strides[0],
    }  # fmt: skip
    return Problem(arguments, {"out": wanted}, {})


def make_cross_entropy(values: Values, shape: Shape, generator: np.random.Generator) -> Problem:
    element, cap = str(values["dtype"]), float(str(values["SOFTCAP"]))
    logits = draw(generator, shape, element, 8.0)
    logits[0, 1:] = -np.inf if cap == 0 else logits[0, 1:]  # a single possible token
    ignored = -100
    targets = generator.integers(0, shape[1], shape[0])
    targets[0], targets[-1] = 0, ignored
    capped = cap * np.tanh(logits / cap) if cap else logits
    peak = capped.max(axis=1)
    lse = peak + np.log(np.exp(capped - peak[:, None]).sum(axis=1))
    counted = targets != ignored
    chosen = capped[np.arange(shape[0]), np.where(counted, targets, 0)]
    array = filled(logits, element, gap=gap_of(shape))
    arguments: dict[str, Argument] = {
        "loss": blank("fp32", shape[:1]), "lse": blank("fp32", shape[:1]), "logits": array,
        "targets": filled(targets, "i64"), "stride": array.strides[0],
        "n_rows": shape[0], "n_cols": shape[1], "ignored": ignored,
    }  # fmt: skip
    near = Tolerance(2e-6, 4e-6)
    expected = {"loss": np.where(counted, lse - chosen, 0.0), "lse": lse}
    return Problem(arguments, expected, {"loss": near, "lse": near})


def make_transpose(values: Values, shape: Shape, generator: np.random.Generator) -> Problem:
    element, gap = str(values["dtype"]), gap_of(shape)
    x = generator.integers(-100, 100, shape).astype(np.float64)
    out, source = blank(element, shape[::-1], gap=gap), filled(x, element, gap=gap)
    arguments: dict[str, Argument] = {
        "out": out, "x": source, "n_rows": shape[0], "n_cols": shape[1],
        "out_stride": out.strides[0], "x_stride": source.strides[0],
    }  # fmt: skip
    return Problem(arguments, {"out": x.T}, {})


def make_histogram(values: Values, shape: Shape, generator: np.random.Generator) -> Problem:
    bins = int(str(values["BINS"]))
    x = generator.integers(-3, bins + 3, shape)  # a few on either side are not counted
    before = generator.integers(0, 10, bins)
    wanted = before + np.bincount(x[(x >= 0) & (x < bins)], minlength=bins)
    arguments = {"counts": filled(before, "i32"), "x": filled(x, str(values["index"])), "n": shape[0]}
    return Problem(arguments, {"counts": wanted.astype(np.float64)}, {})


def philox(seed: int, counter: npt.NDArray[np.uint32]) -> list[npt.NDArray[np.uint32]]:
    """The four words of Philox 4×32 with 10 rounds for each counter (Salmon et al., SC 2011)."""
    words = [counter.astype(np.uint64), *(np.zeros(counter.shape, np.uint64) for _ in range(3))]
    keys = [seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF]
    low = np.uint64(0xFFFFFFFF)
    for _ in range(10):
        a, b = words[0] * np.uint64(0xD2511F53), words[2] * np.uint64(0xCD9E8D57)
        words = [(b >> np.uint64(32)) ^ words[1] ^ np.uint64(keys[0]), b & low,
                 (a >> np.uint64(32)) ^ words[3] ^ np.uint64(keys[1]), a & low]  # fmt: skip
        keys = [(keys[0] + 0x9E3779B9) & 0xFFFFFFFF, (keys[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return [word.astype(np.uint32) for word in words]


def uniform(words: npt.NDArray[np.uint32]) -> npt.NDArray[np.float32]:
    """Triton's map of 32 random bits to [0, 1): the size of the signed word, times a little less than 2⁻³¹."""
    signed = words.view(np.int32)
    size = np.where(signed < 0, -signed - 1, signed)
    return np.multiply(size.astype(np.float32), np.float32(4.6566127342e-10), dtype=np.float32)


def make_dropout(values: Values, shape: Shape, generator: np.random.Generator) -> Problem:
    element, (n,) = str(values["dtype"]), shape
    x, p, seed = draw(generator, shape, element), 0.3, 0x123456789ABCDEF
    words = np.stack(philox(seed, np.arange(-(-n // 4), dtype=np.uint32)), axis=1).reshape(-1)[:n]
    keep = uniform(words) >= np.float32(p)
    arguments = {"out": blank(element, shape), "x": filled(x, element), "n": n, "p": p, "seed": seed}
    return Problem(arguments, {"out": np.where(keep, x / (1.0 - p), 0.0)}, {})


CASES = (
    # tokens, heads, gap between tokens
    KernelCase("rotary", make_rotary, ((4, 8, 0), (5, 3, 7), (2, 17, 16))),
    KernelCase("embedding", make_embedding, ROW_SHAPES, EXACT),
    KernelCase("cross_entropy", make_cross_entropy, ROW_SHAPES),
    KernelCase("transpose", make_transpose, ((64, 64), (77, 131), (128, 192)), EXACT),
    KernelCase("histogram", make_histogram, ((2048,), (777,), (8192,)), EXACT),
    KernelCase("dropout", make_dropout, ((1024,), (1001,), (4096,)), STANDARD),
)
