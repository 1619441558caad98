"""Products of bytes, exact at every level, and of bf16; with the instructions of the levels above v4."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import triton
import triton.language as tl
from cpu_harness import LEVELS, build, from_bf16, make_ttir, to_bf16
from level_tiers import EVERY_LEVEL
from test_cpu_levels import disassemble, emit

INSTRUCTIONS = {
    "x86-64-v4-vnni": ["vpdpbusd"],
    "x86-64-v4-bf16": ["vpdpbusd", "vdpbf16ps"],
    "x86-64-v4-amx": ["tdpbssd", "tdpbf16ps"],
}
BYTES = {"x86-64-v4-vnni": "vpdpbusd", "x86-64-v4-bf16": "vpdpbusd", "x86-64-v4-amx": "tdpbssd"}


@triton.jit
def product_kernel(
    out, a, b, c, m, n, k, sa, sb, FORM: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    rows, columns, depth = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    total = tl.load(c + rows[:, None] * BN + columns[None, :])
    for start in range(0, k, BK):
        inside = depth + start < k
        left = tl.load(a + rows[:, None] * sa + depth[None, :] + start, (rows[:, None] < m) & inside[None, :], 0)
        if FORM == "turned":
            place = b + columns[:, None] * sb + depth[None, :] + start
            right = tl.trans(tl.load(place, (columns[:, None] < n) & inside[None, :], 0))
        elif FORM == "left turned":
            left = tl.trans(tl.load(a + (depth[:, None] + start) * sa + rows[None, :], inside[:, None], 0))
            right = tl.load(b + (depth[:, None] + start) * sb + columns[None, :], inside[:, None], 0)
        else:
            place = b + (depth[:, None] + start) * sb + columns[None, :]
            right = tl.load(place, inside[:, None] & (columns[None, :] < n), 0)
        if FORM == "computed":
            left, right = left ^ 3, right + 1
        total = tl.dot(left, right, total)
    tl.store(out + rows[:, None] * BN + columns[None, :], total)


@triton.jit
def repeated_kernel(out, a, b, rounds, BATCH: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    """The right factor stays; with a batch, so many products at a time."""
    if BATCH:
        item, row, column = (
            tl.arange(0, 2)[:, None, None],
            tl.arange(0, M)[None, :, None],
            tl.arange(0, N)[None, None, :],
        )
        x, y = (
            tl.load(a + (item * M + row) * N + column),
            tl.load(b + (item * N + tl.arange(0, N)[None, :, None]) * N + column),
        )
        total = tl.full([2, M, N], 3, tl.int32)
        place = (item * M + row) * N + column
    else:
        row, column = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
        x, y = tl.load(a + row * N + column), tl.load(b + tl.arange(0, N)[:, None] * N + column)
        total = tl.full([M, N], 3, tl.int32)
        place = row * N + column
    total = tl.dot(x, y, total)
    for _ in range(rounds):
        total = tl.dot(x, y, total)
    tl.store(out + place, total)


def bytes_at_random(rng, shape):
    """Numbers of which a quarter is the smallest or the largest."""
    return rng.choice([-128, 127, *range(-128, 128, 2)], shape, p=[0.125, 0.125, *[0.75 / 128] * 128]).astype(np.int8)


@pytest.mark.parametrize("level", EVERY_LEVEL)
@pytest.mark.parametrize("form", ["plain", "turned", "left turned", "computed"])
def test_products_of_bytes(form, level):
    rng = np.random.default_rng(17)
    types = {"out": "*i32", "a": "*i8", "b": "*i8", "c": "*i32", **dict.fromkeys(["m", "n", "k", "sa", "sb"], "i32")}
    for bm, bn, bk in [(16, 32, 64)] if form != "plain" else [(64, 128, 32)]:
        kernel = build(product_kernel, types, {"FORM": form, "BM": bm, "BN": bn, "BK": bk}, level=level)
        for m, n, k in [
            (bm, bn, 2 * bk),
            (5, 7, bk + 1),
            (bm - 1, bn, 3),
            (1, bn - 3, 3 * bk - 2),
            (0, 5, 9),
            (3, 0, 7),
        ]:
            whole = form == "left turned"
            m, n = (bm, bn) if whole else (m, n)
            a, b = bytes_at_random(rng, (m, k)), bytes_at_random(rng, (k, n))
            c = rng.integers(-(2**31), 2**31, (bm, bn)).astype(np.int32)
            stored = [
                np.ascontiguousarray(x.T) if form == name else x for x, name in ((a, "left turned"), (b, "turned"))
            ]
            out = np.zeros((bm, bn), np.int32)
            kernel((1,), out, *stored, c, m, n, k, stored[0].shape[1], stored[1].shape[1])
            left, right = np.zeros((bm, -(-k // bk) * bk), np.int8), np.zeros((-(-k // bk) * bk, bn), np.int8)
            left[:m, :k], right[:k, :n] = a, b
            if form == "computed":
                left, right = left ^ np.int8(3), right + np.int8(1)
            expected = c.astype(np.int64) + left.astype(np.int64) @ right.astype(np.int64)
            assert np.array_equal(out, expected.astype(np.int32)), (m, n, k)
        assert all((word in kernel.loops) is (word == BYTES.get(level)) for word in set(BYTES.values()))


@pytest.mark.parametrize("rows", [8, 16])
@pytest.mark.parametrize("batch", [False, True])
def test_a_factor_that_stays(batch, rows):
    rng = np.random.default_rng(3)
    a, b = bytes_at_random(rng, (2, rows, 32)), bytes_at_random(rng, (2, 32, 32))
    out = np.zeros((2, rows, 32), np.int32)
    types = {"out": "*i32", "a": "*i8", "b": "*i8", "rounds": "i32"}
    kernel = build(repeated_kernel, types, {"BATCH": batch, "M": rows, "N": 32}, level=LEVELS[-1])
    kernel((1,), out, a, b, 3)
    expected = 3 + 4 * (a.astype(np.int32) @ b.astype(np.int32))
    assert np.array_equal(out[: 1 + batch], expected[: 1 + batch])


@triton.jit
def counted_kernel(out, a, b, count, TURN: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """The right factor is masked by a count of its elements, which no row or column alone tells."""
    rows, columns, depth = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    left = tl.load(a + rows[:, None] * K + depth[None, :])
    if TURN:
        place = columns[:, None] * K + depth[None, :]
        right = tl.trans(tl.load(b + place, place < count, 0))
    else:
        place = depth[:, None] * N + columns[None, :]
        right = tl.load(b + place, place < count, 0)
    tl.store(out + rows[:, None] * N + columns[None, :], tl.dot(left, right))


@pytest.mark.parametrize("level", EVERY_LEVEL)
@pytest.mark.parametrize("turn", [False, True])
def test_a_mask_that_counts_elements(level, turn):
    rng = np.random.default_rng(29)
    m, n, k = 8, 32, 64
    types = {"out": "*i32", "a": "*i8", "b": "*i8", "count": "i32"}
    kernel = build(counted_kernel, types, {"TURN": turn, "M": m, "N": n, "K": k}, level=level)
    for count in (0, 1, 5, 31, 33, 65, 700, 1337, n * k - 1, n * k):
        a, b = bytes_at_random(rng, (m, k)), bytes_at_random(rng, n * k)
        out = np.zeros((m, n), np.int32)
        kernel((1,), out, a, b, count)
        kept = np.where(np.arange(n * k) < count, b, 0).astype(np.int32)
        right = kept.reshape(n, k).T if turn else kept.reshape(k, n)
        assert np.array_equal(out, a.astype(np.int32) @ right), count


def product(element, total):
    types = {"out": f"*{total}", "a": f"*{element}", "b": f"*{element}", "c": f"*{total}"}
    types |= dict.fromkeys(["m", "n", "k", "sa", "sb"], "i32")
    return types, {"FORM": "plain", "BM": 16, "BN": 64, "BK": 32}


@pytest.mark.parametrize("level", INSTRUCTIONS)
def test_a_level_has_its_instructions(level, tmp_path):
    """Which are built, also where this processor has them not."""
    text = ""
    for element, total in [("i8", "i32"), ("bf16", "fp32")]:
        types, constants = product(element, total)
        text += disassemble(emit(make_ttir(product_kernel, types, tuple(constants.items())), level), tmp_path)
    assert [each for each in ("vpdpbusd", "vdpbf16ps", "tdpbssd", "tdpbf16ps") if each in text] == INSTRUCTIONS[level]


@pytest.mark.all
@pytest.mark.skipif("x86-64-v4" not in LEVELS, reason="it takes a processor with AVX-512")
def test_products_of_matrices_as_llvm_spells_them_out():
    """On processors without AMX too; the programs are drawn ones."""
    command = [sys.executable, "-W", "ignore", "-m", "emulated.matrices", "600000", "150"]
    done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    assert int(done.stdout.split()[0]) >= 5


@pytest.mark.parametrize(("form", "size"), [("plain", 16), ("plain", 64), ("turned", 32), ("left turned", 32)])
def test_products_of_bf16(form, size):
    """Sums of k products, in any order: k ulp of the sum of magnitudes. What is not finite reaches what it must."""
    rng = np.random.default_rng(5)
    types, constants = product("bf16", "fp32")
    kernel = build(product_kernel, types, {**constants, "FORM": form, "BM": size, "BN": 64}, level=LEVELS[-1])
    for m, n, k in [(size - 3, 50, 64), (size, 64, 90), (size, 64, 96)] if form != "left turned" else [(size, 64, 70)]:
        a, b = (to_bf16(rng.standard_normal(shape).astype(np.float32)) for shape in ((m, k), (k, n)))
        a[1, 2], b[3, 4] = to_bf16(np.array([np.inf, np.nan], np.float32))
        c, out = rng.standard_normal((size, 64)).astype(np.float32), np.zeros((size, 64), np.float32)
        stored = [np.ascontiguousarray(x.T) if form == name else x for x, name in ((a, "left turned"), (b, "turned"))]
        kernel((1,), out, *stored, c, m, n, k, stored[0].shape[1], stored[1].shape[1])
        left, right = np.zeros((size, k)), np.zeros((k, 64))
        left[:m], right[:, :n] = from_bf16(a), from_bf16(b)
        with np.errstate(invalid="ignore"):
            expected, size_ = c + left @ right, np.abs(c) + np.abs(left) @ np.abs(right)
        finite = np.isfinite(expected)
        assert (np.abs(out - expected)[finite] <= k * 2.0**-24 * size_[finite]).all()
        assert np.array_equal(out[~finite], expected[~finite].astype(np.float32), equal_nan=True)
        assert not finite[1].any()
        assert not finite[:, 4].any()
