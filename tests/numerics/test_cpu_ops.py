"""Op by op: integers, comparisons, masks, memory, control flow and hazards of the CPU engine, against NumPy."""

import numpy as np
import pytest
import triton
import triton.language as tl
from cpu_harness import NUMPY, build, make_ttir

from precast.engines import cpu
from precast.errors import PassError

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


@pytest.mark.parametrize("element", ["i8", "i16", "i32", "i64", "u8", "u32", "u64"])
@pytest.mark.parametrize("op", ["div", "mod", "min", "max", "xor", "mul"])
def test_integer_arithmetic(op, element):
    dtype = NUMPY[element]
    kernel = build(
        binary_kernel,
        {"out": f"*{element}", "x": f"*{element}", "y": f"*{element}", "n": "i32"},
        {"OP": op, "BLOCK": N},
    )
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
    kernel = build(
        binary_kernel,
        {"out": f"*{element}", "x": f"*{element}", "y": f"*{element}", "n": "i32"},
        {"OP": op, "BLOCK": N},
    )
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


@triton.jit
def mask_kernel(out, x, lo, hi, FORM: tl.constexpr, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    if FORM == "lt":
        mask = c < hi
    elif FORM == "le":
        mask = c <= hi
    elif FORM == "gt":
        mask = hi > c
    elif FORM == "ge":
        mask = hi >= c
    elif FORM == "from":
        mask = c >= lo
    elif FORM == "above":
        mask = c > lo
    elif FORM == "between":
        mask = (c >= lo) & (c < hi)
    elif FORM == "outside":
        mask = (c < lo) | (c >= hi)
    elif FORM == "equal":
        mask = c == lo
    elif FORM == "odd":
        mask = ((c % 3) == 1) & (c < hi)
    elif FORM == "not":
        mask = (c < hi) == 0
    v = tl.load(x + c, mask=mask, other=-1.0)
    tl.store(out + c, v * 2, mask=mask)
    tl.store(out + BLOCK, tl.sum(v, 0))


@pytest.mark.parametrize("form", ["lt", "le", "gt", "ge", "from", "above", "between", "outside", "equal", "odd", "not"])
def test_ragged_masks(form):
    kernel = build(mask_kernel, {"out": "*fp32", "x": "*fp32", "lo": "i32", "hi": "i32"}, {"FORM": form, "BLOCK": N})
    c = np.arange(N)
    x = RANDOM.integers(-9, 9, N).astype(np.float32)
    for lo, hi in [(0, N), (3, 101), (64, 64), (-5, 500), (90, 20), (0, 0), (33, 96), (N, -3)]:
        mask = {
            "lt": c < hi, "le": c <= hi, "gt": hi > c, "ge": hi >= c, "from": c >= lo, "above": c > lo,
            "between": (c >= lo) & (c < hi), "outside": (c < lo) | (c >= hi), "equal": c == lo,
            "odd": (c % 3 == 1) & (c < hi), "not": ~(c < hi),
        }[form]  # fmt: skip
        out = np.full(N + 1, 77, np.float32)
        kernel((1,), out, x, lo, hi)
        assert np.array_equal(out[:N], np.where(mask, x * 2, 77)), (lo, hi)
        assert out[N] == np.where(mask, x, -1).sum(), (lo, hi)


@triton.jit
def tile_kernel(out, x, m, n, sm, sn, om, on, M: tl.constexpr, N: tl.constexpr, TURN: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    v = tl.load(
        x + rows[:, None] * sm + columns[None, :] * sn, mask=(rows[:, None] < m) & (columns[None, :] < n), other=5
    )
    if TURN:
        tl.store(
            out + columns[:, None] * om + rows[None, :] * on,
            tl.trans(v),
            mask=(columns[:, None] < n) & (rows[None, :] < m),
        )
    else:
        tl.store(out + rows[:, None] * om + columns[None, :] * on, v, mask=(rows[:, None] < m) & (columns[None, :] < n))


@pytest.mark.parametrize("element", ["fp32", "i8", "i64", "fp16"])
@pytest.mark.parametrize("turn", [False, True])
def test_ragged_tiles_with_any_strides(turn, element):
    dtype = NUMPY[element]
    types = {"out": f"*{element}", "x": f"*{element}", **dict.fromkeys(["m", "n", "sm", "sn", "om", "on"], "i32")}
    kernel = build(tile_kernel, types, {"M": 16, "N": 64, "TURN": turn})
    unit = build(
        tile_kernel,
        {k: v for k, v in types.items() if k not in ("sn", "on")},
        {"M": 16, "N": 64, "TURN": turn, "sn": 1, "on": 1},
    )
    for m, n in [(16, 64), (37, 129), (1, 1), (15, 70)]:
        x = RANDOM.integers(-99, 99, (m, n)).astype(dtype)
        grid = (triton.cdiv(m, 16), triton.cdiv(n, 64))
        expected = x.T if turn else x
        out = np.zeros(expected.shape, dtype)
        unit(grid, out, x, m, n, n, expected.shape[1])
        assert np.array_equal(out, expected), (m, n)
        out = np.zeros(expected.shape, dtype)
        last = x[::-1, ::-1]  # read backwards through negative strides
        kernel(grid, out, x.ctypes.data + x.nbytes - x.itemsize, m, n, -n, -1, expected.shape[1], 1)
        assert np.array_equal(out, last.T if turn else last), (m, n)


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
    assert caught.value.where is not None and caught.value.where.file.endswith("test_cpu_ops.py")


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


@triton.jit
def wrap_kernel(out, n, low, FORM: tl.constexpr, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    if FORM == "range":
        keep = (c - low).to(tl.uint32) < n.to(tl.uint32)
    elif FORM == "range_from":
        keep = (c - low).to(tl.uint32, bitcast=True) >= n.to(tl.uint32)
    elif FORM == "wide":
        keep = (c - low).to(tl.uint32).to(tl.int64) < n
    elif FORM == "small":
        keep = c.to(tl.int8) < n.to(tl.int8)
    elif FORM == "small_wide":
        keep = c.to(tl.uint8).to(tl.int32) <= n
    elif FORM == "long":
        keep = (c.to(tl.int64) - low) <= n.to(tl.int64) * 0 + 0x7FFFFFFFFFFFFFFF
    elif FORM == "hash":
        keep = (c * 0x5BD1E995).to(tl.int64) < n
    tl.store(out + c, 1, mask=keep)


@pytest.mark.parametrize("form", ["range", "range_from", "wide", "small", "small_wide", "long", "hash"])
def test_masks_whose_index_wraps(form):
    kernel = build(wrap_kernel, {"out": "*i32", "n": "i32", "low": "i32"}, {"FORM": form, "BLOCK": 512})
    c = np.arange(512)
    for n, low in [(100, 37), (7, 0), (300, -5), (0, 3), (127, 511)]:
        unsigned = (c - low) % 2**32
        hashed = (c.astype(np.int32) * np.int32(0x5BD1E995)).astype(np.int64)
        keep = {
            "range": unsigned < n, "range_from": unsigned >= n, "wide": unsigned < n,
            "small": c.astype(np.int8) < np.int32(n).astype(np.int8),
            "small_wide": c.astype(np.uint8) <= n, "long": c >= 0, "hash": hashed < n,
        }[form]  # fmt: skip
        out = np.zeros(512, np.int32)
        kernel((1,), out, n, low)
        assert np.array_equal(out, keep), (n, low)
