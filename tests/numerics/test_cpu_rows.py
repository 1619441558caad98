"""Rows in blocks on the CPU engine: a block that a loop adds up is one number, a row's programs follow one another."""

import numpy as np
import pytest
import triton
import triton.language as tl
from cpu_harness import LEVEL, LEVELS, build
from level_tiers import EVERY_LEVEL


@triton.jit
def total_kernel(out, x, n, step, START: tl.constexpr, FORM: tl.constexpr, BLOCK: tl.constexpr):
    total = tl.full([BLOCK], START, tl.float32)
    other = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n, step):
        i = start + tl.arange(0, BLOCK)
        value = tl.load(x + i, mask=i < n, other=0.0)
        if FORM == "weighed":
            value = value * total
        if FORM == "two":
            other += value * value
        total = total - value if FORM == "subtracted" else value + total if FORM == "turned" else total + value
    if FORM == "kept":
        tl.store(out + 2 + tl.arange(0, BLOCK), total)
    tl.store(out, tl.sum(total, 0))
    if FORM == "largest":
        tl.store(out + 1, tl.max(total, 0))
    if FORM == "two":
        tl.store(out + 1, tl.sum(other, 0))


def add_blocks(x, n, start, form, block):
    total = np.full(block, start, np.float32)
    for first in range(0, n, block):
        value = np.zeros(block, np.float32)
        value[: len(x[first:n][:block])] = x[first:n][:block]
        value = value * total if form == "weighed" else -value if form == "subtracted" else value
        total = total + value
    return total


@pytest.mark.parametrize("level", LEVELS if EVERY_LEVEL else [LEVEL])
@pytest.mark.parametrize("form", ["plain", "turned", "two", "weighed", "subtracted", "kept", "largest"])
def test_a_block_that_is_added_up_and_summed_is_one_number(form, level):
    block = 512
    constants = {"START": 0.0, "FORM": form, "BLOCK": block}
    kernel = build(total_kernel, {"out": "*fp32", "x": "*fp32", "n": "i32", "step": "i32"}, constants, level=level)
    for n in (0, 1, 511, 512, 513, 1500):
        x = np.random.default_rng(n).integers(-3, 4, 1500).astype(np.float32)
        out = np.full(2 + block, 7, np.float32)
        kernel((1,), out, x, n, block)
        total = add_blocks(x, n, 0, form, block)
        second = {"two": np.sum(x[:n] ** 2), "largest": total.max()}.get(form, 7)
        assert out[:2].tolist() == [total.sum(), second], n
        assert out[2:].tolist() == (total.tolist() if form == "kept" else [7] * block), n
    if form in ("plain", "turned", "two"):
        assert "scf.while" not in kernel.loops, "a loop for each element"
        assert kernel.facts.thread_scratch_bytes < 4 * block


def test_a_sum_that_does_not_begin_at_zero_keeps_its_beginning():
    constants = {"START": 1.0, "FORM": "plain", "BLOCK": 512}
    kernel = build(total_kernel, {"out": "*fp32", "x": "*fp32", "n": "i32", "step": "i32"}, constants)
    out = np.zeros(1, np.float32)
    kernel((1,), out, np.ones(700, np.float32), 700, 512)
    assert out[0] == 1212


@triton.jit
def blocks_kernel(out, x, n, stride, FORM: tl.constexpr, BLOCK: tl.constexpr):
    first, second = tl.program_id(0), tl.program_id(1)
    if FORM == "turned":
        first, second = second, first
    i = second * BLOCK + tl.arange(0, BLOCK)
    place = i * stride + first if FORM == "columns" else first * stride + i
    if FORM == "apart":
        place += second * BLOCK
    inside = i < n
    tl.store(out + place, tl.load(x + place, mask=inside) + first, mask=inside)


@pytest.mark.parametrize(("form", "second"), [("rows", True), ("turned", False), ("columns", False), ("apart", False)])
def test_programs_of_one_row_follow_one_another(form, second):
    """Any part of the grid is run by whoever is given its numbers; all numbers are all programs."""
    types = {"out": "*fp32", "x": "*fp32", "n": "i32", "stride": "i32"}
    kernel = build(blocks_kernel, types, {"FORM": form, "BLOCK": 16})
    rows, blocks, grid = 5, 3, (3, 5, 2) if form == "turned" else (5, 3, 2)
    x = np.arange(5000, dtype=np.float32)
    whole = np.zeros_like(x)
    kernel(grid, whole, x, 45, 100)
    parts = np.zeros_like(x)
    for number in range(2 * rows * blocks):
        before = parts.copy()
        kernel.run(grid, number, number + 1, parts, x, 45, 100)
        if number == 1:
            assert (np.flatnonzero(parts != before)[0] == 16) == (second or form == "turned")
    assert np.array_equal(parts, whole)
    assert np.count_nonzero(whole) >= 5 * 45 - 1
