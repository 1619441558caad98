"""Cases of the kernels that multiply matrices: products with epilogue, persistent, warp-specialised; attention."""

from __future__ import annotations

import numpy as np

from kernel_cases.case import Argument, Array, Descriptor, KernelCase, Problem, Shape, Tolerance, Values, blank, filled
from kernel_cases.dtypes import HALF_ULP, STORAGE, Floats
from kernel_cases.rows import draw, gelu, sigmoid

# m, n, k: one tile or less, ragged, several tiles.
PRODUCT_SHAPES: tuple[Shape, ...] = ((32, 64, 48), (101, 83, 67), (192, 256, 160))
# batch, heads, kv_heads, q_length, kv_length: square, ragged with grouped queries, more keys than queries, and fewer.
ATTENTION_SHAPES: tuple[Shape, ...] = ((1, 2, 2, 64, 64), (2, 4, 2, 77, 101), (1, 2, 1, 16, 160), (1, 1, 1, 150, 70))


def activate(x: Floats, activation: str) -> Floats:
    """The activation of a matmul's epilogue."""
    if activation.startswith("gelu_"):
        return gelu(x, activation.removeprefix("gelu_"))
    return {"none": x, "relu": np.maximum(x, 0.0), "silu": x * sigmoid(x)}[activation]


def product_tolerance(element: str, depth: int) -> Tolerance:
    """One rounding of the result, and fp32 sums of `depth` products of about 1."""
    return Tolerance(2 * HALF_ULP[element], depth * 2.0**-22)


def operands(values: Values, shape: Shape, generator: np.random.Generator, gap: int) -> tuple[Array, Array, Array]:
    """out, a and b of a product m × n × k, the inputs filled."""
    element, (m, n, k) = str(values["dtype"]), shape
    a, b = draw(generator, (m, k), element), draw(generator, (k, n), element)
    return blank(element, (m, n), gap=gap), filled(a, element, gap=gap), filled(b, element, gap=gap)


def make_matmul(values: Values, shape: Shape, generator: np.random.Generator) -> Problem:
    element = str(values["dtype"])
    out, a, b = operands(values, shape, generator, 0 if shape[1] % 16 == 0 else 3)
    wanted, bias = a.values() @ b.values(), None
    if values["HAS_BIAS"]:
        bias = filled(draw(generator, shape[1:2], element), element)
        wanted = wanted + bias.values()
    arguments: dict[str, Argument] = {
        "out": out, "a": a, "b": b, "bias": bias, "m": shape[0], "n": shape[1], "k": shape[2],
        "out_stride": out.strides[0], "a_stride": a.strides[0], "b_stride": b.strides[0],
    }  # fmt: skip
    wanted = activate(wanted, str(values["ACTIVATION"]))
    return Problem(arguments, {"out": wanted}, {"out": product_tolerance(element, shape[2])})


def aligned_gap(columns: int) -> int:
    """A gap that makes rows a multiple of 16 elements long, as descriptors need."""
    return -columns % 16 + 16


def slack(columns: int, element: str) -> int:
    """Elements between the end of a row and the next 16 bytes, which TMA writes too."""
    return -columns % (16 // np.dtype(STORAGE[element]).itemsize)


def _descriptor_operands(values: Values, shape: Shape, generator: np.random.Generator) -> tuple[Array, Array, Array]:
    element, (m, n, k) = str(values["dtype"]), shape
    a, b = draw(generator, (m, k), element), draw(generator, (k, n), element)
    out = blank(element, (m, n), gap=aligned_gap(n), slack=slack(n, element))
    return out, filled(a, element, gap=aligned_gap(k)), filled(b, element, gap=aligned_gap(n))


def make_persistent(values: Values, shape: Shape, generator: np.random.Generator) -> Problem:
    out, a, b = _descriptor_operands(values, shape, generator)
    arguments: dict[str, Argument] = {
        "out": out, "a": a, "b": b, "m": shape[0], "n": shape[1], "k": shape[2],
        "out_stride": out.strides[0], "a_stride": a.strides[0], "b_stride": b.strides[0], "programs": 3,
    }  # fmt: skip
    tolerance = product_tolerance(out.element, shape[2])
    return Problem(arguments, {"out": a.values() @ b.values()}, {"out": tolerance})


def make_specialized(values: Values, shape: Shape, generator: np.random.Generator) -> Problem:
    out, a, b = _descriptor_operands(values, shape, generator)
    arguments: dict[str, Argument] = {
        "out": Descriptor(out, ("BLOCK_M", "BLOCK_N")), "a": Descriptor(a, ("BLOCK_M", "BLOCK_K")),
        "b": Descriptor(b, ("BLOCK_K", "BLOCK_N")), "m": shape[0], "n": shape[1], "k": shape[2],
    }  # fmt: skip
    tolerance = product_tolerance(out.element, shape[2])
    return Problem(arguments, {"out": a.values() @ b.values()}, {"out": tolerance})


def attention(q: Floats, k: Floats, v: Floats, scale: float, causal: bool) -> Floats:
    """softmax(scale · q kᵀ) v for [batch, heads, length, depth], keys and values repeated for grouped queries."""
    groups = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, groups, axis=1), np.repeat(v, groups, axis=1)
    score = scale * (q @ k.swapaxes(2, 3))
    if causal:
        last_key = np.arange(q.shape[2])[:, None] + k.shape[2] - q.shape[2]
        score = np.where(np.arange(k.shape[2])[None, :] <= last_key, score, -np.inf)
    peak = score.max(axis=3, keepdims=True)
    weight = np.exp(score - np.where(np.isfinite(peak), peak, 0.0))
    total = weight.sum(axis=3, keepdims=True)
    return weight @ v / np.where(total == 0, 1.0, total)


def make_attention(values: Values, shape: Shape, generator: np.random.Generator) -> Problem:
    element, depth = str(values["dtype"]), int(str(values["HEAD_DIM"]))
    batch, heads, kv_heads, q_length, kv_length = shape
    gap = 0 if q_length % 16 == 0 else 5
    q = filled(draw(generator, (batch, heads, q_length, depth), element), element, gap=gap)
    k = filled(draw(generator, (batch, kv_heads, kv_length, depth), element), element, gap=gap)
    v = filled(draw(generator, (batch, kv_heads, kv_length, depth), element), element, gap=gap)
    out = blank(element, q.shape, gap=gap)
    scale = depth**-0.5
    arguments: dict[str, Argument] = {
        "out": out, "q": q, "k": k, "v": v, "scale": scale,
        "batch": batch, "heads": heads, "kv_heads": kv_heads, "q_length": q_length, "kv_length": kv_length,
    }  # fmt: skip
    for name, array in (("out", out), ("q", q), ("k", k), ("v", v)):
        places = (f"{name}_batch_stride", f"{name}_head_stride", f"{name}_stride")
        arguments |= dict(zip(places, array.strides[:3], strict=True))
    wanted = attention(q.values(), k.values(), v.values(), scale, bool(values["CAUSAL"]))
    # The weights are rounded to the element type before they meet the values.
    tolerance = Tolerance(4 * HALF_ULP[element], 8 * HALF_ULP[element] + 2e-6)
    return Problem(arguments, {"out": wanted}, {"out": tolerance})


CASES = (
    KernelCase("matmul", make_matmul, PRODUCT_SHAPES),
    KernelCase("matmul_persistent", make_persistent, PRODUCT_SHAPES),
    KernelCase("matmul_specialized", make_specialized, PRODUCT_SHAPES),
    KernelCase("attention", make_attention, ATTENTION_SHAPES),
)
