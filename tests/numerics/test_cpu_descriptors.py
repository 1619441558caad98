"""Tensor descriptors that a kernel makes: tiles at ragged ends, rows by number, and what is combined in memory."""

import numpy as np
import pytest
import triton
import triton.language as tl
from cpu_harness import NUMPY, build

RANDOM = np.random.default_rng(61)
ROWS, COLUMNS = 21, 48


@triton.jit
def tile_kernel(out, sums, x, m, n, FORM: tl.constexpr, PADDING: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [m, n], [n, 1], [M, N], padding_option=PADDING)
    target = tl.make_tensor_descriptor(out, [m, n], [n, 1], [M, N])
    row, column = tl.program_id(1) * M, tl.program_id(0) * N
    tile = source.load([row, column])
    if FORM == "store":
        target.store([row, column], tile)
    elif FORM == "add":
        target.atomic_add([row, column], tile)
    elif FORM == "min":
        target.atomic_min([row, column], tile)
    elif FORM == "max":
        target.atomic_max([row, column], tile)
    elif FORM == "and":
        target.atomic_and([row, column], tile)
    elif FORM == "or":
        target.atomic_or([row, column], tile)
    elif FORM == "xor":
        target.atomic_xor([row, column], tile)
    tl.store(sums + tl.program_id(1) * tl.num_programs(0) + tl.program_id(0), tl.sum(tile.to(tl.float64)))


def run_tiles(form, element, padding="zero"):
    x, start = (RANDOM.integers(0, 9, (ROWS, COLUMNS)).astype(NUMPY[element]) for _ in range(2))
    out, sums = start.copy(), np.zeros((3, 2))
    types = {"out": f"*{element}", "sums": "*fp64", "x": f"*{element}", "m": "i32", "n": "i32"}
    kernel = build(tile_kernel, types, {"FORM": form, "PADDING": padding, "M": 8, "N": 32})
    kernel((2, 3), out, sums, x, ROWS, COLUMNS)
    return x, start, out, sums


COMBINED = {
    "store": lambda old, new: new, "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and,
    "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip


@pytest.mark.parametrize(
    ("form", "element"),
    [("store", "fp16"), ("add", "fp16"), ("add", "fp32"), ("add", "u64"), ("min", "i32"), ("max", "u64"),
     ("and", "u32"), ("or", "i64"), ("xor", "i32")],
)  # fmt: skip
def test_tiles_are_stored_and_combined_inside_of_the_shape(form, element):
    x, start, out, sums = run_tiles(form, element)
    assert np.array_equal(out, COMBINED[form](start, x))
    padded = np.pad(x, ((0, 24 - ROWS), (0, 64 - COLUMNS))).astype(np.float64)
    assert np.array_equal(sums, padded.reshape(3, 8, 2, 32).sum((1, 3)))


def test_tiles_are_padded_with_nan_where_it_is_asked_for():
    _, _, _, sums = run_tiles("store", "fp32", "nan")
    assert np.isnan(sums).tolist() == [[False, True], [False, True], [True, True]]


@triton.jit
def row_kernel(out, x, rows, m, n, column, FORM: tl.constexpr, R: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, R), tl.arange(0, N)
    dense = i[:, None] * N + j[None, :]
    if FORM == "gather":
        source = tl.make_tensor_descriptor(x, [m, n], [n, 1], [1, N])
        tl.store(out + dense, source.gather(tl.load(rows + i), column))
    else:
        target = tl.make_tensor_descriptor(out, [m, n], [n, 1], [1, N])
        target.scatter(tl.load(x + dense), tl.load(rows + i), column)


@pytest.mark.parametrize("element", ["fp32", "fp16", "i8"])
@pytest.mark.parametrize("column", [0, 16, 40])
def test_rows_by_number(column, element):
    types = {"out": f"*{element}", "x": f"*{element}", "rows": "*i32", **dict.fromkeys(("m", "n", "column"), "i32")}
    rows = RANDOM.permutation(ROWS)[:16].astype(np.int32)
    rows[3] = ROWS + 2  # which is not there
    x = RANDOM.integers(1, 99, (ROWS, COLUMNS)).astype(NUMPY[element])
    out = np.full((16, 32), 7, NUMPY[element])
    width = min(32, COLUMNS - column)
    build(row_kernel, types, {"FORM": "gather", "R": 16, "N": 32})((1,), out, x, rows, ROWS, COLUMNS, column)
    expected = np.zeros_like(out)
    expected[rows < ROWS, :width] = x[rows[rows < ROWS], column : column + width]
    assert np.array_equal(out, expected)
    values, spread = RANDOM.integers(1, 99, (16, 32)).astype(NUMPY[element]), x.copy()
    build(row_kernel, types, {"FORM": "scatter", "R": 16, "N": 32})((1,), spread, values, rows, ROWS, COLUMNS, column)
    x[rows[rows < ROWS], column : column + width] = values[rows < ROWS, :width]
    assert np.array_equal(spread, x)
