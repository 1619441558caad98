"""`tl.dot_scaled` of every pair of formats and packing, against its float64 meaning."""

import itertools

import numpy as np
import pytest
import triton
import triton.language as tl
from cpu_fuzz.numbers import from_memory
from cpu_harness import LEVELS, build, from_bf16, to_bf16

M, N, K = 32, 16, 64
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


@triton.jit
def scaled_kernel(
    out, a, b, a_scale, b_scale, LEFT: tl.constexpr, RIGHT: tl.constexpr, HAS_LEFT: tl.constexpr,
    HAS_RIGHT: tl.constexpr, LEFT_K: tl.constexpr, RIGHT_K: tl.constexpr, AM: tl.constexpr, AK: tl.constexpr,
    BK: tl.constexpr, BN: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    x = tl.load(a + tl.arange(0, AM)[:, None] * AK + tl.arange(0, AK)[None, :])
    y = tl.load(b + tl.arange(0, BK)[:, None] * BN + tl.arange(0, BN)[None, :])
    s, t = None, None
    if HAS_LEFT:
        s = tl.load(a_scale + tl.arange(0, M)[:, None] * (K // 32) + tl.arange(0, K // 32)[None, :])
    if HAS_RIGHT:
        t = tl.load(b_scale + tl.arange(0, N)[:, None] * (K // 32) + tl.arange(0, K // 32)[None, :])
    product = tl.dot_scaled(x, s, LEFT, y, t, RIGHT, lhs_k_pack=LEFT_K, rhs_k_pack=RIGHT_K)
    tl.store(out + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], product)


def draw(rng, kind, shape, packed):
    """What memory holds, and its values; e2m1 is packed along the dimension `packed`."""
    if kind == "e2m1":
        codes = rng.integers(0, 16, shape).astype(np.uint8)
        low, high = (np.take(codes, range(first, shape[packed], 2), packed) for first in (0, 1))
        return (low | (high << 4)).astype(np.uint8), E2M1[codes]
    values = rng.standard_normal(shape)
    if kind in ("bf16", "fp16"):
        stored = to_bf16(values.astype(np.float32)) if kind == "bf16" else values.astype(np.float16)
        return stored, np.float64(from_bf16(stored) if kind == "bf16" else stored)
    stored = rng.integers(0, 256, shape).astype(np.uint8)
    decoded = from_memory({"e4m3": "f8E4M3FN", "e5m2": "f8E5M2"}[kind], stored)
    stored[~np.isfinite(decoded)] = 0x38
    return stored, np.float64(from_memory({"e4m3": "f8E4M3FN", "e5m2": "f8E5M2"}[kind], stored))


KINDS = ("e2m1", "e4m3", "e5m2", "bf16", "fp16")
CASES = [
    (left, right, True, right not in ("bf16", "fp16"), True, True)
    for left, right in itertools.product(KINDS[:3], KINDS)
]
CASES += [("bf16", "e2m1", False, True, True, True), ("e2m1", "e2m1", True, True, False, False)]
CASES += [("e2m1", "bf16", True, False, False, True), ("fp16", "e2m1", False, True, True, False)]


@pytest.mark.parametrize(("left", "right", "has_left", "has_right", "left_k", "right_k"), CASES)
def test_products_of_scaled_blocks(left, right, has_left, has_right, left_k, right_k):
    rng = np.random.default_rng(17)
    a, x = draw(rng, left, (M, K), 1 if left_k else 0)
    b, y = draw(rng, right, (K, N), 0 if right_k else 1)
    scales = [rng.integers(120, 134, (rows, K // 32)).astype(np.uint8) for rows in (M, N)]
    x = x * np.repeat(2.0 ** (scales[0] - 127.0), 32, 1) if has_left else x
    y = y * np.repeat(2.0 ** (scales[1] - 127.0), 32, 1).T if has_right else y
    types = {"e2m1": "u8", "e4m3": "u8", "e5m2": "u8", "bf16": "bf16", "fp16": "fp16"}
    constants = {"LEFT": left, "RIGHT": right, "HAS_LEFT": has_left, "HAS_RIGHT": has_right, "LEFT_K": left_k,
                 "RIGHT_K": right_k, "AM": a.shape[0], "AK": a.shape[1], "BK": b.shape[0], "BN": b.shape[1], "M": M,
                 "N": N, "K": K}  # fmt: skip
    signature = {"out": "*fp32", "a": f"*{types[left]}", "b": f"*{types[right]}", "a_scale": "*u8", "b_scale": "*u8"}
    out = np.zeros((M, N), np.float32)
    level = LEVELS[CASES.index((left, right, has_left, has_right, left_k, right_k)) % len(LEVELS)]
    build(scaled_kernel, signature, constants, level=level)((1,), out, a, b, *scales)
    bound = (np.abs(x) @ np.abs(y)) * K * 2.0**-24
    assert np.all(np.abs(out - x @ y) <= bound)


def test_scales_at_the_ends():
    """0 is the smallest power, 255 is NaN."""
    rng = np.random.default_rng(17)
    a, x = draw(rng, "e2m1", (M, K), 1)
    b, y = draw(rng, "bf16", (K, N), 0)
    scale = np.full((M, 2), 0, np.uint8)
    scale[1] = 255
    constants = {"LEFT": "e2m1", "RIGHT": "bf16", "HAS_LEFT": True, "HAS_RIGHT": False, "LEFT_K": True, "RIGHT_K": True,
                 "AM": M, "AK": K // 2, "BK": K, "BN": N, "M": M, "N": N, "K": K}  # fmt: skip
    signature = {"out": "*fp32", "a": "*u8", "b": "*bf16", "a_scale": "*u8", "b_scale": "*u8"}
    out = np.zeros((M, N), np.float32)
    build(scaled_kernel, signature, constants)((1,), out, a, b, scale, scale)
    assert np.isnan(out[1]).all()
    exact = (x * 2.0**-127 @ y)[2:]
    assert np.all(np.abs(out[2:] - exact) <= np.abs(exact) * 1e-5 + K * 2.0**-149)
