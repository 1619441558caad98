"""Loads that stay before the stores behind them, and buffers that several values share."""

import numpy as np
import pytest
import triton
import triton.language as tl
from cpu_harness import build

RANDOM = np.random.default_rng(11)
N = 128


@triton.jit
def swap_kernel(x, y, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + o, mask=o < n)
    b = tl.load(y + o, mask=o < n)
    tl.store(x + o, b, mask=o < n)
    tl.store(y + o, a, mask=o < n)


def test_swap_in_place():
    x, y = RANDOM.standard_normal((2, 100)).astype(np.float32)
    a, b = x.copy(), y.copy()
    build(swap_kernel, {"x": "*fp32", "y": "*fp32", "n": "i32"}, {"BLOCK": 64})((2,), a, b, 100)
    assert np.array_equal(a, y) and np.array_equal(b, x)


@triton.jit
def add_where_it_was_read_kernel(x, old, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    place = x + o // 4  # four elements share each place
    tl.store(old + o, tl.atomic_add(place, tl.load(place) + 1))


def test_what_an_atomic_operation_adds_was_read_before_any_element_of_it_added():
    x, old = RANDOM.integers(1, 100, N // 4, np.int32), np.zeros(N, np.int32)
    expected = x + 4 * (x + 1)
    first = x.copy()
    build(add_where_it_was_read_kernel, {"x": "*i32", "old": "*i32"}, {"BLOCK": N})((1,), x, old)
    assert np.array_equal(x, expected)
    assert np.array_equal(np.sort(old.reshape(-1, 4)), first[:, None] + np.arange(4) * (first[:, None] + 1))


@triton.jit
def shift_kernel(x, step, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    v = tl.load(x + o)
    tl.store(x + o + step, v)
    w = tl.load(x + o)
    tl.store(x + BLOCK + o * 2, w + tl.flip(v))


@pytest.mark.parametrize("step", [0, 1, 5, 64])
def test_overlapping_move_reads_before_it_writes(step):
    x = RANDOM.standard_normal(4 * N).astype(np.float32)
    expected = x.copy()
    v = expected[:N].copy()
    expected[step : step + N] = v
    w = expected[:N].copy()
    expected[N : 3 * N : 2] = w + v[::-1]
    build(shift_kernel, {"x": "*fp32", "step": "i32"}, {"BLOCK": N})((1,), x, step)
    assert np.array_equal(x, expected)


@triton.jit
def turn_in_place_kernel(x, N: tl.constexpr):
    i = tl.arange(0, N)
    places = x + i[:, None] * N + i[None, :]
    tl.store(places, tl.trans(tl.load(places)))


def test_transpose_in_place():
    x = RANDOM.standard_normal((32, 32)).astype(np.float32)
    out = x.copy()
    build(turn_in_place_kernel, {"x": "*fp32"}, {"N": 32})((1,), out)
    assert np.array_equal(out, x.T)


@triton.jit
def adam_kernel(p, g, m, v, n, lr, b1, b2, eps, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = o < n
    grad = tl.load(g + o, mask=mask)
    first = tl.load(m + o, mask=mask) * b1 + grad * (1 - b1)
    second = tl.load(v + o, mask=mask) * b2 + grad * grad * (1 - b2)
    tl.store(m + o, first, mask=mask)
    tl.store(v + o, second, mask=mask)
    tl.store(p + o, tl.load(p + o, mask=mask) - lr * first / (tl.sqrt(second) + eps), mask=mask)


def test_adam_step():
    n = 999
    p, g, m = RANDOM.standard_normal((3, n)).astype(np.float32)
    v = RANDOM.random(n).astype(np.float32)
    exact = [each.astype(np.float64) for each in (p, g, m, v)]
    first, second = exact[2] * 0.9 + exact[1] * 0.1, exact[3] * 0.99 + exact[1] ** 2 * 0.01
    types = {
        "p": "*fp32",
        "g": "*fp32",
        "m": "*fp32",
        "v": "*fp32",
        "n": "i32",
        **dict.fromkeys(["lr", "b1", "b2", "eps"], "fp32"),
    }
    build(adam_kernel, types, {"BLOCK": 256})((4,), p, g, m, v, n, 0.1, 0.9, 0.99, 1e-8)
    assert np.allclose(m, first, atol=1e-6) and np.allclose(v, second, atol=1e-6)
    assert np.allclose(p, exact[0] - 0.1 * first / (np.sqrt(second) + 1e-8), atol=1e-5)


@triton.jit
def alias_kernel(out, x, N: tl.constexpr):
    i = tl.arange(0, N)
    places = i[:, None] * N + i[None, :]
    v = tl.sort(tl.load(x + places))
    w = tl.reshape(v, [N * N])
    total = w
    for _ in range(2):
        total = total * 2
    tl.store(out + tl.arange(0, N * N), total - tl.reshape(tl.trans(v), [N * N]))
    square = tl.dot(v, v, v)
    tl.store(out + N * N + places, square + v)
    for _ in range(2):
        square = tl.dot(square, square, square)
    tl.store(out + 2 * N * N + places, square)


def test_buffers_that_several_values_share_are_not_overwritten():
    x = RANDOM.integers(0, 2, (16, 16)).astype(np.float32)
    out = np.zeros((3, 16, 16), np.float32)
    build(alias_kernel, {"out": "*fp32", "x": "*fp32"}, {"N": 16})((1,), out, x)
    v = np.sort(x, 1).astype(np.float64)
    assert np.array_equal(out[0], 4 * v - v.T)
    square = v @ v + v
    assert np.array_equal(out[1], square + v)
    for _ in range(2):
        square = square @ square + square
    assert np.allclose(out[2], square, rtol=1e-6)


@triton.jit
def prefetch_kernel(out, x, n, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    ahead = tl.load(x + o)
    for k in range(n):
        now = ahead
        ahead = tl.load(x + (k + 1) * BLOCK + o)
        tl.store(x + (k + 1) * BLOCK + o, now)
        tl.store(out + k * BLOCK + o, now)


def test_load_ahead_of_a_store_in_a_loop():
    x = np.arange(5 * 32, dtype=np.int32)
    out, expected = np.zeros(4 * 32, np.int32), x[: 4 * 32].copy()
    build(prefetch_kernel, {"out": "*i32", "x": "*i32", "n": "i32"}, {"BLOCK": 32})((1,), out, x, 4)
    assert np.array_equal(out, expected) and np.array_equal(x[32:], expected)
