"""Cases of the kernels that work row by row: activations, softmax, norms, sums, choices, quantisation."""

from __future__ import annotations

import math

import numpy as np

from kernel_cases.case import EXACT, STANDARD, Argument, KernelCase, Problem, Shape, Tolerance, Values, blank, filled
from kernel_cases.dtypes import FP8, HALF_ULP, Floats, round_to

# Columns that no block size divides, and an odd stride: the ragged shape takes the variant without hints.
RAGGED = (3, 781)
ROW_SHAPES: tuple[Shape, ...] = ((4, 64), RAGGED, (3, 4096))
erf = np.vectorize(math.erf, otypes=[np.float64])


def gap_of(shape: Shape) -> int:
    """Elements between rows: odd for shapes that are ragged anyway, else a multiple of 16."""
    return 32 if shape[-1] % 16 == 0 else 3


def draw(generator: np.random.Generator, shape: Shape, element: str, scale: float = 1.0) -> Floats:
    """Normal numbers as `element` holds them."""
    return round_to(generator.standard_normal(shape) * scale, element)


def with_edges(values: Floats, edges: list[float], element: str) -> Floats:
    """`values` with `edges` in the first places of the first row."""
    planted = values.copy()
    planted[0, : len(edges)] = round_to(edges, element)
    return planted


def sigmoid(x: Floats) -> Floats:
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, small) / (1.0 + small)


def gelu(x: Floats, form: str) -> Floats:
    """GELU in either form; infinities give what the formula gives."""
    with np.errstate(invalid="ignore", over="ignore"):
        if form == "erf":
            return 0.5 * x * (1.0 + erf(x / math.sqrt(2.0)))
        return x * sigmoid(2.0 * math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3))


def make_bias_gelu(values: Values, shape: Shape, generator: np.random.Generator) -> Problem:
    element = str(values["dtype"])
    x = with_edges(draw(generator, shape, element, 3.0), [0.0, -0.0, 30.0, -30.0, np.inf, np.nan, 6e4, -6e4], element)
    bias = draw(generator, shape[1:], element)
    bias[:8] = 0.0
    gap = gap_of(shape)
    out = blank(element, shape, gap=gap)
    arguments: dict[str, Argument] = {
        "out": out, "x": filled(x, element, gap=gap), "bias": filled(bias, element),
        "n_rows": shape[0], "n_cols": shape[1], "out_stride": out.strides[0], "x_stride": out.strides[0],
    }  # fmt: skip
    return Problem(arguments, {"out": gelu(x + bias, str(values["FORM"]))}, {})


def make_swiglu(values: Values, shape: Shape, generator: np.random.Generator) -> Problem:
    element = str(values["dtype"])
    gate = with_edges(draw(generator, shape, element, 4.0), [0.0, 80.0, -80.0, np.nan, 6e4], element)
    up = draw(generator, shape, element)
    up[0, :5] = 0.5
    gap = gap_of(shape)
    out, x = blank(element, shape, gap=gap), filled(np.concatenate([gate, up], axis=1), element, gap=gap)
    arguments: dict[str, Argument] = {
        "out": out, "x": x, "n_rows": shape[0], "n_cols": shape[1],
        "out_stride": out.strides[0], "x_stride": x.strides[0],
    }  # fmt: skip
    return Problem(arguments, {"out": gate * sigmoid(gate) * up}, {})


def make_softmax(values: Values, shape: Shape, generator: np.random.Generator) -> Problem:
    element = str(values["dtype"])
    x = with_edges(draw(generator, shape, element, 5.0), [-np.inf, 200.0, 200.0, -6e4], element)
    x[1] = x[1, 0]  # a row of equal numbers
    x[2:, : shape[1] // 2] = -np.inf  # nothing in the first block of a long row
    weight = np.exp(x - x.max(axis=1, keepdims=True))
    gap = gap_of(shape)
    out = blank(element, shape, gap=gap)
    arguments: dict[str, Argument] = {
        "out": out, "x": filled(x, element, gap=gap), "stride": out.strides[0], "n_rows": shape[0], "n_cols": shape[1],
    }  # fmt: skip
    return Problem(arguments, {"out": weight / weight.sum(axis=1, keepdims=True)}, {})


def make_layer_norm(values: Values, shape: Shape, generator: np.random.Generator) -> Problem:
    element = str(values["dtype"])
    x = draw(generator, shape, element, 2.0)
    x[0] = round_to(x[0] + 500.0, element)  # a mean far above the spread
    x[1] = 3.0  # no spread at all
    weight, bias = draw(generator, shape[1:], element), draw(generator, shape[1:], element)
    gap, eps = gap_of(shape), 1e-5
    centred = x - x.mean(axis=1, keepdims=True)
    wanted = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + eps) * weight + bias
    out = blank(element, shape, gap=gap)
    arguments: dict[str, Argument] = {
        "out": out, "x": filled(x, element, gap=gap), "weight": filled(weight, element), "bias": filled(bias, element),
        "stride": out.strides[0], "n_rows": shape[0], "n_cols": shape[1], "eps": eps,
    }  # fmt: skip
    return Problem(arguments, {"out": wanted}, {})


def make_rms_norm(values: Values, shape: Shape, generator: np.random.Generator) -> Problem:
    element, has_residual = str(values["dtype"]), values["HAS_RESIDUAL"]
    x, weight = draw(generator, shape, element), draw(generator, shape[1:], element)
    x[1] = 0.0
    gap, eps = gap_of(shape), 1e-6
    expected, total = {}, x
    out, residual = blank(element, shape, gap=gap), None
    if has_residual:
        addend = draw(generator, shape, element)
        residual = filled(addend, element, gap=gap)
        total = expected["residual"] = round_to(x + addend, element)
    expected["out"] = total / np.sqrt((total**2).mean(axis=1, keepdims=True) + eps) * weight
    arguments: dict[str, Argument] = {
        "out": out, "x": filled(x, element, gap=gap), "residual": residual, "weight": filled(weight, element),
        "stride": out.strides[0], "n_rows": shape[0], "n_cols": shape[1], "eps": eps,
    }  # fmt: skip
    return Problem(arguments, expected, {})


def make_cumsum(values: Values, shape: Shape, generator: np.random.Generator) -> Problem:
    element = str(values["dtype"])
    if element == "i32":
        x = generator.integers(-(2**20), 2**20, shape).astype(np.float64)
    else:
        x = draw(generator, shape, element)
    gap = gap_of(shape)
    out = blank(element, shape, gap=gap)
    arguments: dict[str, Argument] = {
        "out": out, "x": filled(x, element, gap=gap), "n_rows": shape[0], "n_cols": shape[1],
        "out_stride": out.strides[0], "x_stride": out.strides[0],
    }  # fmt: skip
    return Problem(arguments, {"out": np.cumsum(x, axis=1)}, {})


def make_argmax(values: Values, shape: Shape, generator: np.random.Generator) -> Problem:
    element = str(values["dtype"])
    x = draw(generator, shape, element)
    x[0, [5, 17, shape[1] - 1]] = 100.0  # a tie: the lowest index wins
    x[0, 3] = np.nan
    x[1] = -np.inf
    wanted = np.argmax(np.where(np.isnan(x), -np.inf, x), axis=1).astype(np.float64)
    array = filled(x, element, gap=gap_of(shape))
    arguments: dict[str, Argument] = {
        "out": blank("i64", shape[:1]), "x": array, "stride": array.strides[0], "n_rows": shape[0], "n_cols": shape[1],
    }  # fmt: skip
    return Problem(arguments, {"out": wanted}, {})


def make_quantize(values: Values, shape: Shape, generator: np.random.Generator) -> Problem:
    element, narrow = str(values["dtype"]), str(values.get("fp8", "i8"))
    largest = FP8[narrow].largest if narrow in FP8 else 127.0
    x = draw(generator, shape, element, 10.0)
    x[1] = 0.0
    peak = np.maximum(np.abs(x).max(axis=1), 1e-30)
    gap = gap_of(shape)
    out, source = blank(narrow, shape, gap=gap), filled(x, element, gap=gap)
    arguments: dict[str, Argument] = {
        "out": out, "scale": blank("fp32", shape[:1]), "x": source, "n_rows": shape[0], "n_cols": shape[1],
        "out_stride": out.strides[0], "x_stride": source.strides[0],
    }  # fmt: skip
    # Against the value before rounding, at half a step: a wrong direction of rounding shows.
    tolerances = {"out": _half_step(narrow), "scale": Tolerance(2e-7, 0.0)}
    return Problem(arguments, {"out": x * (largest / peak)[:, None], "scale": peak / largest}, tolerances)


def _half_step(narrow: str) -> Tolerance:
    if narrow not in FP8:
        return Tolerance(1e-6, 0.5)
    kind = FP8[narrow]
    smallest_step = 2.0 ** (1 - kind.bias - kind.mantissa_bits)
    return Tolerance(HALF_ULP[narrow] + 1e-6, smallest_step / 2)


# Sums of n rounded numbers: fp32 errors grow with the sum of sizes, not with the result.
_SUMS = {**STANDARD, "fp16": Tolerance(2.0**-10, 1e-3), "fp32": Tolerance(2e-6, 2e-4), "i32": Tolerance(0.0, 0.0)}
# A mean of 500 with a spread of 2: centring in fp32 leaves an error of about 500 · 2⁻²⁴ / 2.
_CENTRED = {
    **STANDARD,
    "fp16": Tolerance(2.0**-10, 2e-4),
    "bf16": Tolerance(2.0**-7, 2e-4),
    "fp32": Tolerance(2e-6, 2e-4),
}

CASES = (
    KernelCase("bias_gelu", make_bias_gelu, ROW_SHAPES),
    KernelCase("swiglu", make_swiglu, ROW_SHAPES),
    KernelCase("softmax", make_softmax, ROW_SHAPES),
    KernelCase("layer_norm", make_layer_norm, ROW_SHAPES, _CENTRED),
    KernelCase("rms_norm", make_rms_norm, ROW_SHAPES),
    KernelCase("cumsum", make_cumsum, ROW_SHAPES, _SUMS),
    KernelCase("argmax", make_argmax, ROW_SHAPES, EXACT),
    KernelCase("quantize_int8", make_quantize, ROW_SHAPES),
    KernelCase("quantize_fp8", make_quantize, ROW_SHAPES),
)
