"""Rounding towards zero, and the 8-bit format that MLIR has no type for, bit by bit against NumPy."""

import numpy as np
import pytest
import triton
import triton.language as tl
from cpu_harness import LEVELS, build, from_bf16
from kernel_cases.dtypes import decode

RANDOM = np.random.default_rng(53)
STORED = {"fp16": np.float16, "bf16": np.uint16, "fp32": np.float32, "fp64": np.float64}
SOURCE = np.concatenate([
    RANDOM.standard_normal(1024) * np.exp(RANDOM.uniform(-45, 45, 1024)), RANDOM.standard_normal(1008) * 30,
    [0.0, -0.0, np.nan, 448, -465, 57344, 70000, -1e-45, 1e-30, -1e39, 65519, 2.0**-24, -(2.0**-25), 3e-8, 239, 255],
])  # fmt: skip


@triton.jit
def round_kernel(out, x, ROUNDING: tl.constexpr, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + o, tl.load(x + o).to(out.dtype.element_ty, fp_downcast_rounding=ROUNDING))


def convert(values, source, target, rounding=None, level=LEVELS[-1]):
    kernel = build(
        round_kernel,
        {"out": f"*{target}", "x": f"*{source}"},
        {"ROUNDING": rounding, "BLOCK": 256},
        level=level,
    )
    out = np.zeros(len(values), STORED.get(target, np.uint8))
    kernel((len(values) // 256,), out, values)
    return out


def finite_magnitudes(element):
    """Every number of a format that is not negative, in order, as float64."""
    bits = np.arange(1 << 7 if element.startswith("fp8") else 1 << 15).astype(
        np.uint8 if element.startswith("fp8") else np.uint16
    )
    numbers = decode(bits.view(np.float16) if element == "fp16" else bits, element)
    return np.unique(numbers[np.isfinite(numbers)])


@pytest.mark.parametrize(
    ("target", "source", "level"),
    [("fp16", "fp32", LEVELS[0]), ("fp16", "fp64", LEVELS[0]), ("fp16", "fp32", LEVELS[-1]),
     ("bf16", "fp64", LEVELS[-1]), ("bf16", "fp32", LEVELS[-1]), ("fp8e5", "fp64", LEVELS[-1]),
     ("fp8e4nv", "fp32", LEVELS[-1]), ("fp8e4b8", "fp64", LEVELS[-1]), ("fp8e5b16", "fp32", LEVELS[-1])],
)  # fmt: skip
def test_rounding_towards_zero(target, source, level):
    with np.errstate(over="ignore"):
        values = SOURCE.astype(STORED[source])
    values = np.where(np.isinf(values), np.float32(3e38), values)
    got = convert(values, source, target, "rtz", level)
    numbers = decode(got, target)
    table, exact = finite_magnitudes(target), values.astype(np.float64)
    nan = np.isnan(exact)
    nearest = table[np.searchsorted(table, np.abs(exact[~nan]), "right") - 1]
    assert np.array_equal(numbers[~nan], np.copysign(nearest, exact[~nan]))
    assert np.isnan(numbers[nan]).all()


def test_doubles_to_singles_towards_zero():
    values = SOURCE[np.abs(SOURCE) < 1e38]
    values = values[: len(values) // 256 * 256]
    got = convert(values, "fp64", "fp32", "rtz").astype(np.float64)
    assert np.all(np.abs(got) <= np.abs(values))
    above = np.nextafter(np.abs(got).astype(np.float32), np.float32(np.inf)).astype(np.float64)
    assert np.all(np.abs(values) < above)


def decode_e4b15(bits):
    magnitude = bits & 0x7F
    exponent, mantissa = magnitude >> 3, (magnitude & 7) / 8.0
    value = np.where(exponent == 0, mantissa * 2.0**-14, (1 + mantissa) * 2.0 ** (exponent - 15.0))
    return np.where(bits & 0x80, -value, value)


@pytest.mark.parametrize("target", ["fp16", "bf16", "fp32", "fp64", "fp8e5"])
def test_e4b15_as_other_floats(target):
    bits = np.arange(256, dtype=np.uint8)
    got = convert(bits, "fp8e4b15", target)
    exact = decode_e4b15(bits)
    if target == "fp8e5":
        expected = np.abs(decode(np.arange(124, dtype=np.uint8), target))
        distance = np.abs(np.abs(exact)[:, None] - expected[None, :]).min(1)
        assert np.array_equal(np.abs(np.abs(decode(got, target)) - np.abs(exact)), distance)
        return
    found = from_bf16(got) if target == "bf16" else got
    assert np.array_equal(found.astype(np.float64), exact)
    assert np.array_equal(np.signbit(found), np.signbit(exact))


@pytest.mark.parametrize("source", ["fp16", "bf16", "fp32", "fp64"])
def test_other_floats_as_e4b15(source):
    table = decode_e4b15(np.arange(0x7F, dtype=np.uint8))
    values = np.concatenate([table, -table, (table[1:] + table[:-1]) / 2 + 1e-3 * (table[1:] - table[:-1])])
    values = np.resize(np.concatenate([values, [5.0, -np.inf, 1.9]]), 512)
    stored = values.astype(np.float32)
    if source == "bf16":
        stored = (stored.view(np.uint32) >> 16).astype(np.uint16)
        values = from_bf16(stored).astype(np.float64)
    else:
        stored = values.astype(STORED[source])
        values = stored.astype(np.float64)
    got = decode_e4b15(convert(stored, source, "fp8e4b15"))
    limited = np.minimum(np.abs(values), 1.75)
    unit = np.where(limited < 2.0**-13, 2.0**-17, 2.0 ** (np.floor(np.log2(np.maximum(limited, 2.0**-14))) - 3))
    assert np.all(np.abs(np.abs(got) - limited) <= unit / 2 * 1.01)
    assert np.array_equal(np.signbit(got), np.signbit(values))
    exact = np.isin(np.abs(values), table)
    assert exact.sum() >= 254 and np.array_equal(got[exact], values[exact])


@triton.jit
def constant_kernel(out, VALUE: tl.constexpr, TYPE: tl.constexpr, N: tl.constexpr):
    tl.store(out + tl.arange(0, N), tl.full((N,), VALUE, TYPE).to(tl.uint8, bitcast=True))


@pytest.mark.parametrize(
    ("value", "type_", "bits"),
    [(-0.0, tl.float8e5, 0x80), (float("inf"), tl.float8e5, 0x7C), (float("-inf"), tl.float8e5, 0xFC),
     (1.4, tl.float8e5, 0x3E), (-0.0, tl.float8e4nv, 0x80), (-448.0, tl.float8e4nv, 0xFE)],
)  # fmt: skip
def test_constants_keep_infinity_and_the_sign_of_zero(value, type_, bits):
    out = np.zeros(4, np.uint8)
    build(constant_kernel, {"out": "*u8"}, {"VALUE": value, "TYPE": type_, "N": 4})((1,), out)
    assert np.array_equal(out, np.full(4, bits, np.uint8))
