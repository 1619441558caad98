"""Loops, branches, calls, programs of a grid and scalar arguments of the CPU engine."""

import numpy as np
import triton
import triton.language as tl
from cpu_harness import build

RANDOM = np.random.default_rng(11)
N = 128


@triton.jit
def while_kernel(out, x, n, BLOCK: tl.constexpr):
    o = tl.program_id(0)
    value = tl.load(x + o)
    steps = 0
    lanes = tl.arange(0, BLOCK)
    trace = tl.zeros([BLOCK], tl.int32)
    while value > 1:
        if value % 2 == 0:
            value = value // 2
        else:
            if value > 1000000:  # never: a nested branch all the same
                value = 1
                steps += 1
            else:
                value = 3 * value + 1
        trace = tl.where(lanes == steps, value, trace) + 0
        steps += 1
    tl.store(out + o * BLOCK + lanes, trace)
    tl.store(out + n * BLOCK + o, steps)


def test_while_loop_with_tensor_and_nested_ifs():
    x = np.array([1, 2, 3, 7, 6, 40], np.int32)
    out = np.zeros(6 * 32 + 6, np.int32)
    build(while_kernel, {"out": "*i32", "x": "*i32", "n": "i32"}, {"BLOCK": 32})((6,), out, x, 6)
    for row, start in enumerate(x):
        value, trace = int(start), []
        while value > 1:
            value = value // 2 if value % 2 == 0 else 3 * value + 1
            trace.append(value)
        assert out[6 * 32 + row] == len(trace)
        assert out[row * 32 : row * 32 + len(trace)].tolist() == trace


@triton.jit
def branch_kernel(out, x, n, BLOCK: tl.constexpr):
    if tl.program_id(0) >= n:
        return
    o = tl.arange(0, BLOCK)
    v = tl.load(x + tl.program_id(0) * BLOCK + o)
    total = tl.sum(v, 0)
    if total > 0:
        if total > 4:
            v = v * 2
            total = 0.0
        else:
            v = v + 1
    else:
        v = -v
    for k in range(3):
        if k == 1:
            v += k
        else:
            v = tl.where(v > 0, v - 0.5, v)
    tl.store(out + tl.program_id(0) * BLOCK + o, v)


def test_branches_with_tensors_and_early_return():
    x = RANDOM.standard_normal((6, 64)).astype(np.float32)
    out = np.zeros_like(x)
    build(branch_kernel, {"out": "*fp32", "x": "*fp32", "n": "i32"}, {"BLOCK": 64})((6,), out, x, 5)
    v = np.where(x.sum(1, keepdims=True) > 4, x * 2, np.where(x.sum(1, keepdims=True) > 0, x + 1, -x)).astype(
        np.float32
    )
    for k in range(3):
        v = v + 1 if k == 1 else np.where(v > 0, v - np.float32(0.5), v)
    assert np.allclose(out[:5], v[:5]) and not out[5].any()


@triton.jit
def fibonacci_kernel(out, x, y, count, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    a = tl.load(x + o)
    b = tl.load(y + o)
    for _ in range(count):
        a, b = b, a + b
    tl.store(out + o, a)
    tl.store(out + BLOCK + o, tl.flip(b))


def test_carried_tensors_are_assigned_at_once():
    x, y = RANDOM.integers(0, 9, (2, 64)).astype(np.int64)
    for count in (0, 1, 7):
        out = np.zeros(128, np.int64)
        build(fibonacci_kernel, {"out": "*i64", "x": "*i64", "y": "*i64", "count": "i32"}, {"BLOCK": 64})(
            (1,), out, x, y, count
        )
        a, b = x, y
        for _ in range(count):
            a, b = b, a + b
        assert np.array_equal(out[:64], a) and np.array_equal(out[64:], b[::-1])


@triton.jit
def carried_turn_kernel(out, x, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i[:, None] * N + i[None, :])
    s = tl.zeros([N], tl.float32)
    for _ in range(3):
        s = s + tl.sum(v, 1)
        v = tl.trans(v) + s[None, :]
    tl.store(out + i[:, None] * N + i[None, :], v)


def test_carried_tensor_that_is_transposed():
    x = RANDOM.integers(-3, 3, (16, 16)).astype(np.float32)
    out = np.zeros_like(x)
    build(carried_turn_kernel, {"out": "*fp32", "x": "*fp32"}, {"N": 16})((1,), out, x)
    v, s = x.astype(np.float64), np.zeros(16)
    for _ in range(3):
        s = s + v.sum(1)
        v = v.T + s[None, :]
    assert np.array_equal(out, v)


@triton.jit
def assert_kernel(x, n, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    v = tl.load(x + o)
    tl.device_assert(v < n, "too big")
    tl.store(x + o, v)


def test_assert_sets_the_status():
    kernel = build(assert_kernel, {"x": "*i32", "n": "i32"}, {"BLOCK": 32}, debug=True)
    x = np.arange(32, dtype=np.int32)
    assert kernel((1,), x, 32) == 0
    assert kernel((1,), x, 31) == 1


@triton.jit(noinline=True)
def _triangle(n):
    total = 0
    for k in range(n):
        total += k
    return total, n


@triton.jit
def call_kernel(out, n):
    a, b = _triangle(n)
    c, _ = _triangle(b + 1)
    tl.store(out, a)
    tl.store(out + 1, c)


def test_calls_are_put_in_place():
    out = np.zeros(2, np.int32)
    build(call_kernel, {"out": "*i32", "n": "i32"})((1,), out, 7)
    assert out.tolist() == [21, 28]


@triton.jit
def grid_kernel(out, BLOCK: tl.constexpr):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    at = x + tl.num_programs(0) * (y + tl.num_programs(1) * z)
    tl.store(out + at, x + 100 * y + 10000 * z + BLOCK)


def test_program_ids_run_with_x_fastest():
    out = np.zeros((4, 3, 5), np.int32)
    build(grid_kernel, {"out": "*i32"}, {"BLOCK": 7})((5, 3, 4), out)
    z, y, x = np.indices((4, 3, 5))
    assert np.array_equal(out, x + 100 * y + 10000 * z + 7)


SCALARS = {
    "i1": 1,
    "i8": -3,
    "u8": 250,
    "i16": -300,
    "i32": -70000,
    "i64": -(2**40),
    "fp16": 1.5,
    "bf16": -2.5,
    "fp32": 0.1,
    "fp64": 0.1,
}


@triton.jit
def scalar_kernel(out, a, b, c, d, e, f, g, h, i, j):
    tl.store(out, a.to(tl.float64))
    tl.store(out + 1, b.to(tl.float64))
    tl.store(out + 2, c.to(tl.float64))
    tl.store(out + 3, d.to(tl.float64))
    tl.store(out + 4, e.to(tl.float64))
    tl.store(out + 5, f.to(tl.float64))
    tl.store(out + 6, g.to(tl.float64))
    tl.store(out + 7, h.to(tl.float64))
    tl.store(out + 8, i.to(tl.float64))
    tl.store(out + 9, j)


def test_scalar_arguments_of_every_type():
    names = scalar_kernel.arg_names[1:]
    out = np.zeros(10)
    kernel = build(scalar_kernel, {"out": "*fp64", **dict(zip(names, SCALARS, strict=True))})
    kernel((1,), out, *SCALARS.values())
    expected = [float(np.float32(value)) if kind == "fp32" else value for kind, value in SCALARS.items()]
    assert np.array_equal(out, expected)
