"""Mathematical functions and number formats of the CPU engine: errors in ulp, special values, every 8-bit float."""

import math
from pathlib import Path

import numpy as np
import pytest
import triton
import triton.language as tl
from cpu_harness import LEVEL, LEVELS, build, from_bf16, make_ttir, to_bf16, ulp_error
from kernel_cases.dtypes import decode, encode
from triton.language.extra import libdevice

from precast.engines import cpu
from precast.errors import PassError

RANDOM = np.random.default_rng(3)
COUNT = 1 << 16


@triton.jit
def function_kernel(out, x, OP: tl.constexpr, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + o)
    if OP == "exp":
        r = tl.exp(v)
    elif OP == "exp2":
        r = tl.exp2(v)
    elif OP == "log":
        r = tl.log(v)
    elif OP == "log2":
        r = tl.log2(v)
    elif OP == "erf":
        r = tl.erf(v)
    elif OP == "sin":
        r = tl.sin(v)
    elif OP == "cos":
        r = tl.cos(v)
    elif OP == "sqrt":
        r = tl.sqrt_rn(v)
    elif OP == "rsqrt":
        r = tl.rsqrt(v)
    elif OP == "tanh":
        r = libdevice.tanh(v)
    elif OP == "expm1":
        r = libdevice.expm1(v)
    elif OP == "pow":
        r = libdevice.pow(v, v)
    elif OP == "floor":
        r = tl.floor(v) + 0.25 * tl.ceil(v)
    elif OP == "abs":
        r = tl.abs(v)
    tl.store(out + o, r)


# Function → (largest error in ulp, range of arguments).
ERRORS = {
    "exp": (1.0, -104, 89), "exp2": (1.0, -150, 128), "log": (1.0, 1e-45, 3e38), "log2": (1.5, 1e-45, 3e38),
    "erf": (1.3, -5, 5), "tanh": (1.5, -10, 10), "sin": (0.6, -1000, 1000), "cos": (0.6, -1000, 1000),
    "sqrt": (0.5, 0, 3e38), "rsqrt": (1.5, 1e-38, 3e38), "expm1": (1.5, -20, 80), "pow": (1.5, 0, 30),
    "floor": (0.5, -99, 99), "abs": (0.5, -9, 9),
}  # fmt: skip


def exact(op, x):
    with np.errstate(all="ignore"):
        if op == "erf":
            return np.array([math.erf(v) for v in x])
        if op == "floor":
            return np.floor(x) + 0.25 * np.ceil(x)
        if op == "rsqrt":
            return 1 / np.sqrt(x)
        if op == "pow":
            return x**x
        return getattr(np, op)(x)


def arguments(op):
    """Values over the whole range, half of them spaced by exponent."""
    _, low, high = ERRORS[op]
    linear = RANDOM.uniform(low, min(high, 1e6), COUNT // 2)
    sign = -1.0 if low < 0 else 1.0
    tiny = np.exp(RANDOM.uniform(-87, math.log(high), COUNT // 2)) * RANDOM.choice([1.0, sign], COUNT // 2)
    return np.clip(np.concatenate([linear, tiny]), low, high).astype(np.float32)


# Functions that have instructions of their own there.
ON_AVX512 = [(op, level) for op in ("exp", "exp2") for level in LEVELS if level == "x86-64-v4"]
ON_OLDER = [(op, level) for op in ERRORS for level in ("x86-64-v3", "x86-64-v2")]


@pytest.mark.parametrize(("op", "level"), ON_OLDER + ON_AVX512)
def test_errors_in_ulp(op, level):
    x = arguments(op)
    out = np.zeros_like(x)
    kernel = build(function_kernel, {"out": "*fp32", "x": "*fp32"}, {"OP": op, "BLOCK": 1024}, level=level)
    kernel((COUNT // 1024,), out, x)
    allowed = ERRORS[op][0] + (0.6 if level == "x86-64-v2" else 0.0)  # without fused multiply-add
    assert ulp_error(out, exact(op, x.astype(np.float64))) <= allowed


SPECIAL = np.array(
    [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 3.4e38, -3.4e38, 1, -1, 100, -110, 1e10, 0.5, 2], np.float32
)


SPECIAL_IN = ["exp", "exp2", "log", "log2", "erf", "tanh", "sin", "cos", "sqrt", "rsqrt", "abs"]


@pytest.mark.parametrize(("op", "level"), [(op, LEVEL) for op in SPECIAL_IN] + ON_AVX512)
def test_special_values(op, level):
    x = np.tile(SPECIAL, 4)
    out = np.zeros_like(x)
    build(function_kernel, {"out": "*fp32", "x": "*fp32"}, {"OP": op, "BLOCK": 64}, level=level)((1,), out, x)
    with np.errstate(all="ignore"):
        expected = exact(op, x.astype(np.float64)).astype(np.float32)
    assert np.allclose(out, expected, rtol=3e-7, atol=1e-45, equal_nan=True)
    zero = ~np.isnan(expected) & (expected == 0)
    assert np.array_equal(np.signbit(out[zero]), np.signbit(expected[zero]))


@pytest.mark.parametrize("op", ["exp", "log", "sin", "tanh", "erf"])
def test_functions_of_doubles(op):
    x = RANDOM.uniform(0.1, 5, 64)
    out = np.zeros_like(x)
    build(function_kernel, {"out": "*fp64", "x": "*fp64"}, {"OP": op, "BLOCK": 64})((1,), out, x)
    assert np.allclose(out, exact(op, x), rtol=1e-15)


@triton.jit
def convert_kernel(out, x, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + o, tl.load(x + o).to(out.dtype.element_ty))


def convert(values, source, target, target_dtype):
    out = np.zeros(len(values), target_dtype)
    build(convert_kernel, {"out": f"*{target}", "x": f"*{source}"}, {"BLOCK": 256})((len(values) // 256,), out, values)
    return out


HARD = np.concatenate([
    RANDOM.standard_normal(2048) * np.exp(RANDOM.uniform(-40, 40, 2048)),
    RANDOM.standard_normal(1008) * 300, [0.0, -0.0, np.inf, -np.inf, np.nan, 448, 464, 465, 57344, 61440, 1e-45],
    [65504, 65520, 2**-9, 2**-10, 3e38],
]).astype(np.float32)  # fmt: skip


@pytest.mark.parametrize("source", ["fp32", "fp64"])
def test_conversions_to_bf16(source):
    values = HARD if source == "fp32" else np.concatenate([HARD[:-16].astype(np.float64) * (1 + 1e-12), HARD[-16:]])
    out = convert(values, source, "bf16", np.uint16)
    expected = to_bf16(values.astype(np.float32)) if source == "fp32" else nearest_bf16(values)
    nan = np.isnan(values)
    assert np.array_equal(out[~nan], expected[~nan]) and np.isnan(from_bf16(out[nan])).all()


def nearest_bf16(values):
    """float64 → bf16 bits in one rounding: between truncation and the next value, ties to even."""
    with np.errstate(all="ignore"):
        single = values.astype(np.float32)
        toward = np.where(
            np.abs(single.astype(np.float64)) > np.abs(values), np.nextafter(single, np.float32(0)), single
        )
        low = toward.view(np.uint32) >> 16
        middle = ((low << 16) | 0x8000).view(np.float32).astype(np.float64)
        up = (np.abs(values) > np.abs(middle)) | ((np.abs(values) == np.abs(middle)) & (low & 1 == 1))
    finite = np.isfinite(values)
    return np.where(finite, low + up, to_bf16(values.astype(np.float32))).astype(np.uint16)


def test_conversions_to_half():
    with np.errstate(over="ignore"):
        assert np.array_equal(convert(HARD, "fp32", "fp16", np.float16), HARD.astype(np.float16), equal_nan=True)
        wide = HARD.astype(np.float64) * (1 + 1e-12)
        assert np.array_equal(convert(wide, "fp64", "fp16", np.float16), wide.astype(np.float16), equal_nan=True)


@pytest.mark.parametrize("element", ["fp8e4nv", "fp8e5", "fp8e4b8", "fp8e5b16"])
def test_every_8_bit_float(element):
    bits = np.arange(256, dtype=np.uint8)
    for target, dtype in (("fp32", np.float32), ("fp16", np.float16)):
        assert np.array_equal(
            convert(bits, element, target, dtype), decode(bits, element).astype(dtype), equal_nan=True
        )
    out = convert(HARD, "fp32", element, np.uint8)
    nan = np.isnan(HARD)
    with np.errstate(over="ignore"):
        finite = np.nan_to_num(HARD.astype(np.float64), posinf=1e9, neginf=-1e9)  # infinities saturate too
    minus_zero = 0x80 if element in ("fp8e4nv", "fp8e5") else 0  # where the others have their one NaN
    expected = np.where(HARD == 0, np.where(np.signbit(HARD), minus_zero, 0), encode(finite, element))
    assert np.array_equal(out[~nan], expected[~nan])
    assert np.isnan(decode(out[nan], element)).all()


@pytest.mark.parametrize("target", ["i8", "i32", "i64", "u8"])
def test_floats_to_integers_saturate(target):
    dtype = {"i8": np.int8, "i32": np.int32, "i64": np.int64, "u8": np.uint8}[target]
    bounds = np.iinfo(dtype)
    out = convert(HARD, "fp32", target, dtype)
    numbers = [0 if np.isnan(v) else int(v) if np.isfinite(v) else 2**70 if v > 0 else -(2**70) for v in HARD]
    expected = [min(max(v, bounds.min), bounds.max) for v in numbers]
    assert np.array_equal(out, np.array(expected, object).astype(dtype))


@pytest.mark.parametrize("target", ["fp16", "bf16", "fp32", "fp64"])
def test_integers_to_floats_round_once(target):
    values = RANDOM.integers(-(2**31), 2**31, 1024).astype(np.int32)
    values[:512] >>= RANDOM.integers(0, 31, 512).astype(np.int32)
    dtype = {"fp16": np.float16, "bf16": np.uint16, "fp32": np.float32, "fp64": np.float64}[target]
    out = convert(values, "i32", target, dtype)
    with np.errstate(over="ignore"):
        expected = nearest_bf16(values.astype(np.float64)) if target == "bf16" else values.astype(dtype)
    assert np.array_equal(out, expected)


@triton.jit
def small_float_kernel(out, x, y, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    a, b = tl.load(x + o), tl.load(y + o)
    tl.store(out + o, tl.where(a > b, a * b - a, -b))


@pytest.mark.parametrize("element", ["bf16", "fp16"])
def test_arithmetic_of_small_floats_rounds_each_step(element):
    x, y = RANDOM.standard_normal((2, 256)).astype(np.float32)
    out = np.zeros(256, np.uint16 if element == "bf16" else np.float16)
    store, load = (
        (to_bf16, from_bf16) if element == "bf16" else (lambda v: v.astype(np.float16), lambda v: v.astype(np.float32))
    )
    a, b = load(store(x)), load(store(y))
    build(small_float_kernel, {"out": f"*{element}", "x": f"*{element}", "y": f"*{element}"}, {"BLOCK": 256})(
        (1,), out, store(x), store(y)
    )
    expected = np.where(a > b, load(store(load(store(a * b)) - a)), -b)
    assert np.array_equal(load(out), expected)


@triton.jit
def assembly_kernel(out):
    o = tl.arange(0, 32)
    v = tl.inline_asm_elementwise("mov.u32 $0, $1;", "=r,r", [o], dtype=tl.int32, is_pure=True, pack=1)
    tl.store(out + o, v)


def test_inline_assembly_is_refused_at_its_line():
    text = make_ttir(assembly_kernel, {"out": "*i32"}, locations=True)
    with pytest.raises(PassError) as caught:
        cpu.lower_ttir(text, "x86-64-v3")
    assert caught.value.message == "the CPU engine cannot lower `tt.elementwise_inline_asm`: it is assembly of a GPU"
    assert caught.value.where is not None and caught.value.where.file.endswith("test_cpu_maths.py")
    line = Path(__file__).read_text().splitlines()[caught.value.where.line - 1]
    assert "inline_asm_elementwise" in line
