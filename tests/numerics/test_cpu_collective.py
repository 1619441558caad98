"""Ops across lanes: reductions, scans, products, atomics, reshapes and gathers of the CPU engine, against NumPy."""

import numpy as np
import pytest
import triton
import triton.language as tl
from cpu_harness import NUMPY, build, from_bf16, to_bf16

RANDOM = np.random.default_rng(5)


@triton.jit
def _first(a, b):
    return a


@triton.jit
def reduce_kernel(out, x, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr, OP: tl.constexpr):
    v = tl.load(x + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    if OP == "sum":
        r = tl.sum(v, AXIS)
    elif OP == "max":
        r = tl.max(v, AXIS)
    elif OP == "min":
        r = tl.min(v, AXIS)
    elif OP == "argmax":
        r = tl.argmax(v, AXIS)
    elif OP == "argmin":
        r = tl.argmin(v, AXIS)
    elif OP == "xor":
        r = tl.xor_sum(v, AXIS)
    tl.store(out + tl.arange(0, M if AXIS == 1 else N), r)


@pytest.mark.parametrize("shape", [(1, 64), (4, 128), (64, 2), (16, 16), (32, 1)])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("op", ["sum", "max", "argmax", "argmin"])
def test_reductions(op, axis, shape):
    m, n = shape
    result = "i32" if op.startswith("arg") else "fp32"
    kernel = build(reduce_kernel, {"out": f"*{result}", "x": "*fp32"}, {"M": m, "N": n, "AXIS": axis, "OP": op})
    x = RANDOM.integers(-5, 5, shape).astype(np.float32)  # many ties: the first index wins
    out = np.zeros(shape[1 - axis], NUMPY[result])
    kernel((1,), out, x)
    assert np.array_equal(out, getattr(np, op)(x, axis))


@pytest.mark.parametrize("element", ["i8", "i32", "u32", "i64", "fp16"])
@pytest.mark.parametrize("op", ["max", "min", "sum", "xor"])
def test_reductions_of_other_elements(op, element):
    if op == "xor" and element == "fp16":
        return
    dtype = NUMPY[element]
    kernel = build(
        reduce_kernel,
        {"out": "*i64" if element != "fp16" else "*fp32", "x": f"*{element}"},
        {"M": 4, "N": 64, "AXIS": 1, "OP": op},
    )
    x = RANDOM.integers(0 if element[0] == "u" else -100, 100, (4, 64)).astype(dtype)
    out = np.zeros(4, np.float32 if element == "fp16" else np.int64)
    kernel((1,), out, x)
    wide = x.astype(np.float64) if element == "fp16" else x.astype(np.int64)
    expected = np.bitwise_xor.reduce(wide, 1) if op == "xor" else getattr(np, op)(wide, 1)
    assert np.allclose(out, expected, rtol=2e-3)


@triton.jit
def extremes_kernel(out, x, N: tl.constexpr):
    v = tl.load(x + tl.arange(0, N))
    tl.store(out, tl.max(v, 0))
    tl.store(out + 1, tl.min(v, 0))
    tl.store(out + 2, tl.sum(v, 0))


SPECIAL = [
    [np.nan], [np.inf], [-np.inf, np.inf], [np.nan] * 64, [-0.0] * 64, [-np.inf] * 64, [np.inf] * 64,
    [np.nan] * 63 + [-np.inf], [np.nan] * 63 + [np.inf], [np.inf] + [np.nan] * 63,
    [np.nan] * 31 + [3.0] + [np.nan] * 32,
]  # fmt: skip


@pytest.mark.parametrize("element", ["fp32", "fp64", "fp16"])
def test_reductions_with_special_values(element):
    for special in SPECIAL:
        x = np.linspace(-1, 1, 64).astype(NUMPY[element])
        x[: len(special)] = special
        out = np.zeros(3, NUMPY[element])
        build(extremes_kernel, {"out": f"*{element}", "x": f"*{element}"}, {"N": 64})((1,), out, x)
        with np.errstate(invalid="ignore"):
            expected = np.array([np.fmax.reduce(x), np.fmin.reduce(x), x.sum(dtype=np.float64)])
        assert np.allclose(out, expected, equal_nan=True, atol=1e-3 if element == "fp16" else 1e-6), special
        if special[0] == 0:
            assert np.signbit(out[2]), "a sum of negative zeros is negative zero"


@triton.jit
def _affine_join(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@triton.jit
def scan_kernel(out, x, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr, REVERSE: tl.constexpr, OP: tl.constexpr):
    places = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    v = tl.load(x + places)
    if OP == "sum":
        r = tl.cumsum(v, AXIS, reverse=REVERSE)
    elif OP == "prod":
        r = tl.cumprod(v, AXIS, reverse=REVERSE)
    else:
        _, r = tl.associative_scan((v * 0 + 2, v), AXIS, _affine_join, reverse=REVERSE)
    tl.store(out + places, r)


@pytest.mark.parametrize("shape", [(1, 64), (4, 32), (8, 4), (32, 1), (2, 2)])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("reverse", [False, True])
def test_scans(reverse, axis, shape):
    for op in ("sum", "prod", "affine"):
        constants = {"M": shape[0], "N": shape[1], "AXIS": axis, "REVERSE": reverse, "OP": op}
        kernel = build(scan_kernel, {"out": "*i64", "x": "*i64"}, constants)
        x = RANDOM.integers(-3, 4, shape).astype(np.int64)
        out = np.zeros_like(x)
        kernel((1,), out, x)
        v = np.flip(x, axis) if reverse else x
        if op == "affine":
            expected = np.zeros_like(v)
            lines, result = np.moveaxis(v, axis, 0), np.moveaxis(expected, axis, 0)
            total = np.zeros_like(lines[0])
            for index, line in enumerate(lines):
                total = line if index == 0 else total * 2 + line
                result[index] = total
        else:
            expected = {"sum": np.cumsum, "prod": np.cumprod}[op](v, axis)
        assert np.array_equal(out, np.flip(expected, axis) if reverse else expected), op


@triton.jit
def dot_kernel(out, a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, TURN: tl.constexpr, OUT: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    left = tl.load(a + m[:, None] * K + k[None, :])
    right = tl.trans(tl.load(b + n[:, None] * K + k[None, :])) if TURN else tl.load(b + k[:, None] * N + n[None, :])
    start = tl.load(c + m[:, None] * N + n[None, :])
    total = tl.dot(left, right, start, out_dtype=OUT, input_precision="tf32")
    tl.store(out + m[:, None] * N + n[None, :], total + start)


@pytest.mark.parametrize("element", ["fp32", "fp16", "bf16", "i8", "fp64"])
@pytest.mark.parametrize("turn", [False, True])
@pytest.mark.parametrize("shape", [(16, 16, 32), (32, 64, 32), (64, 16, 64)])
def test_products(shape, turn, element):
    m, n, k = shape
    result = {"i8": "i32", "fp64": "fp64"}.get(element, "fp32")
    out_type = {"i32": tl.int32, "fp32": tl.float32, "fp64": tl.float64}[result]
    kernel = build(
        dot_kernel, {"out": f"*{result}", "a": f"*{element}", "b": f"*{element}", "c": f"*{result}"},
        {"M": m, "N": n, "K": k, "TURN": turn, "OUT": out_type},
    )  # fmt: skip
    store = to_bf16 if element == "bf16" else lambda v: v.astype(NUMPY[element])
    load = from_bf16 if element == "bf16" else lambda v: v
    scale = 100 if element == "i8" else 1
    a, b = (
        store(scale * RANDOM.standard_normal((m, k)) % 127),
        store(scale * RANDOM.standard_normal((n, k) if turn else (k, n)) % 127),
    )
    c = (10 * RANDOM.standard_normal((m, n))).astype(NUMPY[result])
    out = np.zeros_like(c)
    kernel((1,), out, a, b, c)
    exact = (
        load(a).astype(np.float64) @ (load(b).astype(np.float64).T if turn else load(b).astype(np.float64)) + 2.0 * c
    )
    assert np.array_equal(out, exact) if element == "i8" else np.allclose(out, exact, rtol=1e-5, atol=1e-3)


@triton.jit
def batched_dot_kernel(out, a, b, B: tl.constexpr, M: tl.constexpr):
    i, m = tl.arange(0, B), tl.arange(0, M)
    places = i[:, None, None] * M * M + m[None, :, None] * M + m[None, None, :]
    tl.store(out + places, tl.dot(tl.load(a + places), tl.load(b + places)))


def test_batched_product():
    a, b = RANDOM.standard_normal((2, 4, 16, 16)).astype(np.float32)
    out = np.zeros_like(a)
    build(batched_dot_kernel, {"out": "*fp32", "a": "*fp32", "b": "*fp32"}, {"B": 4, "M": 16})((1,), out, a, b)
    assert np.allclose(out, a @ b, atol=1e-4)


@triton.jit
def atomic_kernel(out, old, x, n, OP: tl.constexpr, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    v = tl.load(x + o)
    if OP == "add":
        r = tl.atomic_add(out + o % 8, v, mask=o < n)
    elif OP == "max":
        r = tl.atomic_max(out + o % 8, v, mask=o < n)
    elif OP == "min":
        r = tl.atomic_min(out + o % 8, v, mask=o < n)
    elif OP == "xchg":
        r = tl.atomic_xchg(out + o % 8, v, mask=o < n)
    elif OP == "or":
        r = tl.atomic_or(out + o % 8, v, mask=o < n)
    tl.store(old + o, r, mask=o < n)


FLOAT_ATOMICS = {"fp16": ["add"], "fp64": ["add", "xchg"], "fp32": ["add", "xchg", "max", "min"]}


@pytest.mark.parametrize("element", ["i32", "i64", "u32", "fp32", "fp16", "fp64"])
@pytest.mark.parametrize("op", ["add", "max", "min", "xchg", "or"])
def test_atomics(op, element):
    if op not in FLOAT_ATOMICS.get(element, op):
        return
    dtype = NUMPY[element]
    kernel = build(
        atomic_kernel,
        {"out": f"*{element}", "old": f"*{element}", "x": f"*{element}", "n": "i32"},
        {"OP": op, "BLOCK": 64},
    )
    x = RANDOM.integers(0, 9, 64).astype(dtype)
    out, old = RANDOM.integers(0, 9, 8).astype(dtype), np.zeros(64, dtype)
    expected, seen = out.copy(), np.zeros(64, dtype)
    steps = {"add": np.add, "max": np.maximum, "min": np.minimum, "xchg": lambda a, b: b, "or": lambda a, b: a | b}
    for i in range(50):
        seen[i] = expected[i % 8]
        expected[i % 8] = steps[op](expected[i % 8], x[i])
    kernel((1,), out, old, x, 50)
    assert np.array_equal(out, expected) and np.array_equal(old, seen)


@triton.jit
def lock_kernel(out, lock, seen):
    before = tl.atomic_cas(lock, 0, 5)
    after = tl.atomic_cas(lock, 0, 9)
    tl.store(seen, before)
    tl.store(seen + 1, after)
    tl.atomic_add(out, 1)


def test_compare_and_swap():
    out, lock, seen = np.zeros(1, np.int32), np.zeros(1, np.int32), np.full(2, 77, np.int32)
    assert build(lock_kernel, {"out": "*i32", "lock": "*i32", "seen": "*i32"})((3,), out, lock, seen) == 0
    assert (out[0], lock[0], seen.tolist()) == (3, 5, [5, 5])


@triton.jit
def move_kernel(out, x, index, OP: tl.constexpr):
    i, j = tl.arange(0, 8), tl.arange(0, 16)
    v = tl.load(x + i[:, None] * 16 + j[None, :])
    if OP == "reshape":
        r = tl.reshape(tl.trans(v), [4, 32])
        tl.store(out + tl.arange(0, 4)[:, None] * 32 + tl.arange(0, 32)[None, :], r)
    elif OP == "join":
        r = tl.join(v, v * 2)
        tl.store(out + i[:, None, None] * 32 + j[None, :, None] * 2 + tl.arange(0, 2)[None, None, :], r)
    elif OP == "split":
        a, b = tl.split(tl.reshape(v, [8, 8, 2]))
        tl.store(out + i[:, None] * 8 + i[None, :], a - 3 * b)
    elif OP == "interleave":
        tl.store(out + i[:, None] * 32 + tl.arange(0, 32)[None, :], tl.interleave(v, -v))
    elif OP == "cat":
        s = tl.sum(v, 0)
        tl.store(out + tl.arange(0, 32), tl.cat(s, s + 1, can_reorder=True))
    elif OP == "permute":
        r = tl.permute(tl.reshape(v, [2, 4, 16]), [2, 0, 1])
        tl.store(out + j[:, None, None] * 8 + tl.arange(0, 2)[None, :, None] * 4 + tl.arange(0, 4)[None, None, :], r)
    elif OP == "gather":
        at = tl.load(index + i[:, None] * 16 + j[None, :])
        tl.store(out + i[:, None] * 16 + j[None, :], tl.gather(v, at, 1))
    elif OP == "flip":
        tl.store(out + i[:, None] * 16 + j[None, :], tl.flip(v, 1))
    elif OP == "histogram":
        tl.store(
            out + j, tl.histogram(tl.reshape(tl.load(index + i[:, None] * 16 + j[None, :]), [128]), 16).to(tl.float32)
        )


@triton.jit
def histogram_kernel(out, x, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + tl.arange(0, BINS), tl.histogram(tl.load(x + i, mask=i < n, other=-1), BINS, mask=i < n))


@pytest.mark.parametrize("element", ["i32", "u32"])
def test_histograms_count_what_is_in_a_bin(element):
    for bins, block, n in [(16, 256, 256), (16, 256, 250), (2, 8, 7), (4, 1, 1), (64, 32, 30), (2048, 4096, 4001)]:
        x = RANDOM.integers(-2, bins + 2, block).astype(NUMPY[element])
        x[::3] = x[0]
        out = np.zeros(bins, np.int32)
        types = {"out": "*i32", "x": f"*{element}", "n": "i32"}
        build(histogram_kernel, types, {"BINS": bins, "BLOCK": block})((1,), out, x, n)
        inside = x[:n][(x[:n] >= 0) & (x[:n] < bins)]
        assert np.array_equal(out, np.bincount(inside, minlength=bins)), (bins, block, n)


@pytest.mark.parametrize(
    "op", ["reshape", "join", "split", "interleave", "cat", "permute", "gather", "flip", "histogram"]
)
def test_moves(op):
    x = RANDOM.integers(-50, 50, (8, 16)).astype(np.float32)
    index = RANDOM.integers(0, 16, (8, 16)).astype(np.int32)
    pairs = x.reshape(8, 8, 2)
    expected = {
        "reshape": lambda: x.T.reshape(4, 32), "join": lambda: np.stack([x, x * 2], -1),
        "split": lambda: pairs[..., 0] - 3 * pairs[..., 1], "interleave": lambda: np.stack([x, -x], -1).reshape(8, 32),
        "cat": lambda: np.concatenate([x.sum(0), x.sum(0) + 1]),
        "permute": lambda: x.reshape(2, 4, 16).transpose(2, 0, 1),
        "gather": lambda: np.take_along_axis(x, index, 1), "flip": lambda: x[:, ::-1],
        "histogram": lambda: np.bincount(index.ravel(), minlength=16),
    }[op]()  # fmt: skip
    out = np.zeros(expected.size, np.float32)
    build(move_kernel, {"out": "*fp32", "x": "*fp32", "index": "*i32"}, {"OP": op})((1,), out, x, index)
    assert np.array_equal(out, np.ravel(expected))


@triton.jit
def scatter_kernel(out, x, index, n, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    at = tl.load(index + o, mask=o < n, other=0)
    v = tl.load(x + at, mask=o < n)
    tl.store(out + at, v * 2, mask=(o < n) & (v > 0))


@pytest.mark.parametrize("element", ["fp32", "i8", "fp64", "i16"])
def test_gather_and_scatter(element):
    dtype = NUMPY[element]
    x = RANDOM.integers(-50, 50, 64).astype(dtype)
    index = RANDOM.permutation(64).astype(np.int32)
    index[50:] = 10**9  # masked off: never touched
    out, expected = np.zeros(64, dtype), np.zeros(64, dtype)
    at = index[:50]
    expected[at] = np.where(x[at] > 0, x[at] * 2, 0)
    build(scatter_kernel, {"out": f"*{element}", "x": f"*{element}", "index": "*i32", "n": "i32"}, {"BLOCK": 64})(
        (1,), out, x, index, 50
    )
    assert np.array_equal(out, expected)


@triton.jit
def seeded_kernel(out, seed, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + o, tl.randint(seed, o).to(tl.int64) & 0xFFFFFFFF, mask=o < n)


def philox(seed, offsets):
    """Philox 4×32-10 (Salmon et al. 2011): the first of the four words, for counters (offset, 0, 0, 0)."""
    mask = 0xFFFFFFFF
    words = []
    for offset in offsets:
        c, k = [int(offset), 0, 0, 0], [seed & mask, seed >> 32]
        for _ in range(10):
            a, b = 0xCD9E8D57 * c[2], 0xD2511F53 * c[0]
            c = [(a >> 32) ^ c[1] ^ k[0], a & mask, (b >> 32) ^ c[3] ^ k[1], b & mask]
            k = [(k[0] + 0x9E3779B9) & mask, (k[1] + 0xBB67AE85) & mask]
        words.append(c[0])
    return np.array(words, np.int64)


def test_philox():
    out = np.zeros(100, np.int64)
    build(seeded_kernel, {"out": "*i64", "seed": "i64", "n": "i32"}, {"BLOCK": 64})((2,), out, 0x123456789AB, 100)
    assert np.array_equal(out, philox(0x123456789AB, range(100)))
