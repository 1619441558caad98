"""Integers, shifts and comparisons of the CPU engine, against NumPy."""

import numpy as np
import pytest
import triton
import triton.language as tl
from cpu_harness import NUMPY, build

RANDOM = np.random.default_rng(11)
N = 128


def integers(dtype, count=N):
    bounds = np.iinfo(dtype)
    values = RANDOM.integers(bounds.min, bounds.max, count, dtype, endpoint=True)
    edges = np.array([bounds.min, bounds.max, 0, 1, bounds.max - 1, bounds.min + 1], dtype)
    values[: len(edges)] = edges
    return values


@triton.jit
def binary_kernel(out, x, y, n, OP: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    a = tl.load(x + offsets, mask=mask)
    b = tl.load(y + offsets, mask=mask)
    if OP == "div":
        r = a // b
    elif OP == "mod":
        r = a % b
    elif OP == "shl":
        r = a << b
    elif OP == "shr":
        r = a >> b
    elif OP == "min":
        r = tl.minimum(a, b)
    elif OP == "max":
        r = tl.maximum(a, b)
    elif OP == "xor":
        r = (a ^ b) & (a | b)
    elif OP == "mul":
        r = a * b + (a - b)
    tl.store(out + offsets, r, mask=mask)


def build_binary(op, element):
    types = {"out": f"*{element}", "x": f"*{element}", "y": f"*{element}", "n": "i32"}
    return build(binary_kernel, types, {"OP": op, "BLOCK": N})


@pytest.mark.parametrize("element", ["i8", "i16", "i32", "i64", "u8", "u32", "u64"])
@pytest.mark.parametrize("op", ["div", "mod", "min", "max", "xor", "mul"])
def test_integer_arithmetic(op, element):
    dtype = NUMPY[element]
    kernel = build_binary(op, element)
    n = 101
    x, y = integers(dtype), integers(dtype)[::-1].copy()
    y[y == 0] = 3
    out = np.zeros(N, dtype)
    kernel((1,), out, x, y, n)
    with np.errstate(over="ignore"):
        wide_x, wide_y = x.astype(object), y.astype(object)
        truncated = [abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) for a, b in zip(wide_x, wide_y, strict=True)]
        expected = {
            "div": lambda: np.array([q for q in truncated], object),
            "mod": lambda: np.array([a - q * b for a, b, q in zip(wide_x, wide_y, truncated, strict=True)], object),
            "min": lambda: np.minimum(x, y), "max": lambda: np.maximum(x, y), "xor": lambda: (x ^ y) & (x | y),
            "mul": lambda: x * y + (x - y),
        }[op]()  # fmt: skip
    overflow = (y == -1) & (x == np.iinfo(dtype).min) if np.iinfo(dtype).min < 0 else np.zeros(N, bool)
    keep = ~overflow[:n]
    assert np.array_equal(out[:n][keep], np.array(expected)[:n][keep].astype(dtype))
    assert not out[n:].any()


@pytest.mark.parametrize("element", ["i32", "i64", "u32", "i8"])
def test_division_by_zero_in_masked_lanes_does_not_trap(element):
    dtype = NUMPY[element]
    for op in ("div", "mod"):
        kernel = build(
            binary_kernel,
            {"out": f"*{element}", "x": f"*{element}", "y": f"*{element}", "n": "i32"},
            {"OP": op, "BLOCK": N},
        )
        x, y = integers(dtype), np.zeros(N, dtype)
        y[:5] = 7
        out = np.zeros(N, dtype)
        assert kernel((1,), out, x, y, N) == 0
        exact = x[:5].astype(object)
        quotient = np.array([int(abs(a) // 7) * (1 if a >= 0 else -1) for a in exact], object)
        assert np.array_equal(out[:5], (quotient if op == "div" else exact - quotient * 7).astype(dtype))


@pytest.mark.parametrize("element", ["i32", "u32", "i8", "i64"])
@pytest.mark.parametrize("op", ["shl", "shr"])
def test_shifts(op, element):
    dtype = NUMPY[element]
    kernel = build_binary(op, element)
    bits = np.iinfo(dtype).bits
    x, y = integers(dtype), RANDOM.integers(0, bits, N).astype(dtype)
    out = np.zeros(N, dtype)
    kernel((1,), out, x, y, N)
    assert np.array_equal(out, x << y if op == "shl" else x >> y)


@triton.jit
def compare_kernel(out, x, y, n, OP: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    a = tl.load(x + offsets, mask=offsets < n)
    b = tl.load(y + offsets, mask=offsets < n)
    if OP == "lt":
        r = a < b
    elif OP == "le":
        r = a <= b
    elif OP == "gt":
        r = a > b
    elif OP == "ge":
        r = a >= b
    elif OP == "eq":
        r = a == b
    else:
        r = a != b
    tl.store(out + offsets, tl.where(r, 1, 2).to(tl.int8), mask=offsets < n)


@pytest.mark.parametrize("element", ["i32", "u32", "i64", "fp32", "fp16"])
@pytest.mark.parametrize("op", ["lt", "le", "gt", "ge", "eq", "ne"])
def test_comparisons(op, element):
    dtype = NUMPY[element]
    if element.startswith("fp"):
        x = RANDOM.choice(np.array([0.0, -0.0, 1.5, -2, np.inf, -np.inf, np.nan], dtype), N)
        y = RANDOM.choice(np.array([0.0, -0.0, 1.5, -2, np.inf, -np.inf, np.nan], dtype), N)
    else:
        x, y = integers(dtype), integers(dtype)
        y[::3] = x[::3]
    out = np.zeros(N, np.int8)
    build(compare_kernel, {"out": "*i8", "x": f"*{element}", "y": f"*{element}", "n": "i32"}, {"OP": op, "BLOCK": N})(
        (1,), out, x, y, N
    )
    numpy_op = {
        "lt": np.less,
        "le": np.less_equal,
        "gt": np.greater,
        "ge": np.greater_equal,
        "eq": np.equal,
        "ne": np.not_equal,
    }[op]
    assert np.array_equal(out, np.where(numpy_op(x, y), 1, 2))
