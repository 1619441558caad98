"""Masks and ragged tiles of the CPU engine, with any bounds and strides, against NumPy."""

import numpy as np
import pytest
import triton
import triton.language as tl
from cpu_harness import NUMPY, build

RANDOM = np.random.default_rng(11)
N = 128


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
def known_lanes_kernel(out, x, hi, COUNT: tl.constexpr, BLOCK: tl.constexpr):
    row, c = tl.arange(0, 2)[:, None], tl.arange(0, BLOCK)[None, :]
    v = tl.load(x + row + c, mask=(row + c < hi) & (c < COUNT), other=5)
    tl.store(out + row * BLOCK + c, v)


@pytest.mark.parametrize("count", [6, 10, 18, 22, 26])
def test_lanes_that_are_off_in_any_case(count):
    """LLVM 22 reads lanes that are off of a wide load, some of whose lanes are known to be off."""
    kernel = build(known_lanes_kernel, {"out": "*i32", "x": "*i32", "hi": "i32"}, {"COUNT": count, "BLOCK": 32})
    x, c, row = np.arange(100, 140, dtype=np.int32), np.arange(32), np.arange(2)[:, None]
    for hi in (0, 1, 7, 20, 24, 40):
        out = np.zeros((2, 32), np.int32)
        kernel((1,), out, x, hi)
        assert np.array_equal(out, np.where((row + c < hi) & (c < count), x[row + c], 5)), hi


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


@triton.jit
def counted_kernel(out, x, count, STORE: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    rows, columns = tl.arange(0, M), tl.arange(0, N)
    place = rows[:, None] * N + columns[None, :]
    turned = columns[:, None] * M + rows[None, :]
    if STORE:
        tl.store(out + turned, tl.trans(tl.load(x + place)), turned < count)
    else:
        tl.store(out + turned, tl.trans(tl.load(x + place, place < count, -1)))


@pytest.mark.parametrize("element", ["i8", "i32"])
@pytest.mark.parametrize("store", [False, True])
def test_a_transpose_under_a_mask_that_counts_elements(store, element):
    """Of which no row or column alone tells where it ends."""
    m, n = 32, 64
    x = np.arange(m * n).astype(NUMPY[element]).reshape(m, n)
    types = {"out": f"*{element}", "x": f"*{element}", "count": "i32"}
    kernel = build(counted_kernel, types, {"STORE": store, "M": m, "N": n})
    index = np.arange(m * n)
    for count in (0, 1, 7, 9, 64, 65, 700, 1500, m * n - 3, m * n):
        out = np.full((n, m), -2, x.dtype)
        kernel((1,), out, x, count)
        if store:
            expected = np.where(index.reshape(n, m) < count, x.T, -2)
        else:
            expected = np.where(index.reshape(m, n) < count, x, -1).T
        assert np.array_equal(out, expected), count


@triton.jit
def slanted(out, x, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i, j = tl.arange(0, ROWS)[:, None], tl.arange(0, COLUMNS)[None, :]
    v = tl.load(x + i * COLUMNS + j, mask=i + j < n, other=0)
    tl.store(out + tl.arange(0, COLUMNS), tl.sum(v, 0))


@pytest.mark.parametrize("n", [0, 1, 5, 8, 20, 22, 23])
def test_masks_whose_rows_end_elsewhere_in_each_column(n):
    kernel = build(slanted, {"out": "*i32", "x": "*i32", "n": "i32"}, {"ROWS": 8, "COLUMNS": 16})
    x, out = RANDOM.integers(1, 9, (8, 16)).astype(np.int32), np.zeros(16, np.int32)
    kernel((1,), out, x, n)
    i, j = np.indices(x.shape)
    assert (out == np.where(i + j < n, x, 0).sum(0)).all()
