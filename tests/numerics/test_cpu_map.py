"""`tl.map_elementwise`: on vectors, several elements to a call, with loops and loads."""

import numpy as np
import pytest
import triton
import triton.language as tl
from cpu_harness import build, make_ttir

from precast.engines import cpu
from precast.errors import PassError

RANDOM = np.random.default_rng(11)


@triton.jit
def _both(a, b):
    return a + b, a - b


@triton.jit
def map_kernel(x, y, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    a, b = tl.map_elementwise(_both, tl.load(x + o), tl.load(y + o))
    tl.store(x + o, a)
    tl.store(y + o, b)


def test_map_elementwise():
    x, y = RANDOM.standard_normal((2, 64)).astype(np.float32)
    a, b = x.copy(), y.copy()
    build(map_kernel, {"x": "*fp32", "y": "*fp32"}, {"BLOCK": 64})((1,), a, b)
    assert np.array_equal(a, x + y) and np.array_equal(b, x - y)


@triton.jit
def _rotate(a0, a1, a2, a3, b0, b1, b2, b3):
    if a0 > 0:
        return a1 + b0, a2, a3, a0, b1, b2, b3, b0 // a0
    return a0, a1, a2, a3, b0, b1, b2, b3


@triton.jit
def pack_kernel(x, y, n, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    o = tl.arange(0, ROWS)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    a, b = tl.map_elementwise(_rotate, tl.load(x + o, o < n, 0), tl.load(y + o), pack=4)
    tl.store(x + o, a)
    tl.store(y + o, b)


@pytest.mark.parametrize(("rows", "block"), [(1, 4), (4, 32), (8, 2)])
def test_map_elementwise_takes_several_elements_that_follow_one_another(rows, block):
    x, y = RANDOM.integers(-3, 9, (2, rows * block)).astype(np.int32)
    n = rows * block - 3
    a, b = x.copy(), y.copy()
    build(pack_kernel, {"x": "*i32", "y": "*i32", "n": "i32"}, {"ROWS": rows, "BLOCK": block})((1,), a, b, n)
    x[n:] = 0
    for i in range(0, rows * block, 4):
        if x[i] > 0:
            p, q = x[i : i + 4].copy(), y[i : i + 4].copy()
            x[i : i + 4] = p[1] + q[0], p[2], p[3], p[0]
            y[i : i + 4] = q[1], q[2], q[3], abs(q[0]) // p[0] * (1 if q[0] >= 0 else -1)
    assert np.array_equal(a, x) and np.array_equal(b, y)


@triton.jit
def _collatz(n, table):
    steps = tl.load(table)
    while n > 1:
        n = 3 * n + 1 if n % 2 else n // 2
        steps += 1
    return steps, n


@triton.jit
def element_kernel(out, x, table, N: tl.constexpr):
    i = tl.arange(0, N)
    steps, ends = tl.map_elementwise(_collatz, tl.load(x + i), table + i % 2)
    tl.store(out + i, steps * ends)


def test_map_elementwise_may_loop_and_load():
    x, table = np.arange(1, 33, dtype=np.int32), np.array([2, 9], np.int32)
    out = np.zeros(32, np.int32)
    build(element_kernel, {"out": "*i32", "x": "*i32", "table": "*i32"}, {"N": 32})((1,), out, x, table)
    expected = []
    for place, number in enumerate(x.tolist()):
        steps = int(table[place % 2])
        while number > 1:
            number = 3 * number + 1 if number % 2 else number // 2
            steps += 1
        expected.append(steps)
    assert out.tolist() == expected


@triton.jit
def pack_all_kernel(x, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    a, b = tl.map_elementwise(_rotate, tl.load(x + o), tl.load(x + o), pack=4)
    tl.store(x + o, a + b)


def test_map_elementwise_refuses_to_pack_more_than_there_is():
    text = make_ttir(pack_all_kernel, {"x": "*i32"}, {"BLOCK": 2}, locations=True)
    with pytest.raises(PassError) as caught:
        cpu.lower_ttir(text, "x86-64-v3")
    assert caught.value.message == "the CPU engine cannot lower `tt.map_elementwise`: it packs 4 of 2 elements"
    assert caught.value.where is not None and caught.value.where.file.endswith("test_cpu_map.py")
