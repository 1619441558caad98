"""Products in loops that are made the other way round, so that what is loaded each time is not turned."""

import re

import numpy as np
import pytest
import triton
import triton.language as tl
from cpu_harness import build
from level_tiers import EVERY_LEVEL

TURNING = r"vector.shuffle .*\[0, (?!1,)"  # lanes of two vectors in turn


@triton.jit
def fold_kernel(
    out, q, k, v, count, limit,
    FORM: tl.constexpr, SUM: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """Blocks of k and v folded into what is stored: a matrix, and a column of M numbers after it."""
    rows, columns, depth, width = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K), tl.arange(0, D)
    left = tl.load(q + rows[:, None] * K + depth[None, :])
    total = tl.zeros([M, D], SUM)
    wide = tl.zeros([M, N], SUM)
    weight = tl.zeros([M], SUM)
    for start in range(count):
        keys = start * N + columns
        inside = keys < limit
        block = tl.load(k + keys[:, None] * K + depth[None, :], mask=inside[:, None], other=0)
        score = tl.dot(left, tl.trans(block), out_dtype=SUM)
        if FORM == "shares":
            score = tl.where(inside[None, :] & (rows[:, None] + 40 > keys[None, :]), score * 0.125, float("-inf"))
            peak = tl.max(score, 1)
            shift = tl.where(peak == float("-inf"), 0.0, peak)
            part = tl.exp2(score - shift[:, None])
            weight += tl.sum(part, 1) + shift
            taken = part.to(v.dtype.element_ty)
        elif FORM == "numbers":
            score = tl.where(inside[None, :], score + rows[:, None] * 3 - (keys * 7)[None, :], -5)
            weight = weight * 3 + tl.max(score, 1) - tl.sum(score, 1) + tl.sum(tl.sum(score ^ 9, 0), 0)
            taken = (score & 15).to(tl.int8)
        elif FORM == "places":
            weight = weight * 2 + tl.argmax(score, 1)
            taken = (score // 64).to(tl.int8)
        elif FORM == "also added":
            wide = wide * 2 + score
            taken = (score & 7).to(tl.int8)
        loaded = tl.load(v + keys[:, None] * D + width[None, :], mask=inside[:, None], other=0)
        total = tl.dot(taken, loaded, total, out_dtype=SUM)
    if FORM == "also added":
        weight = tl.max(wide, 1)
    tl.store(out + rows[:, None] * D + width[None, :], total)
    tl.store(out + M * D + rows, weight)


def fold(form, q, k, v, limit, blocks):
    """The same, by NumPy."""
    wide_type = np.float64 if form == "shares" else np.int32
    q, k, v = (each.astype(wide_type) for each in (q, k, v))
    size = len(k) // blocks
    rows, weight, wide, total = np.arange(len(q)), np.zeros(len(q), wide_type), 0, 0
    for start in range(blocks):
        keys = start * size + np.arange(size)
        inside = keys < limit
        score = q @ np.where(inside[:, None], k[keys], 0).T
        if form == "shares":
            score = np.where(inside & (rows[:, None] + 40 > keys), score * 0.125, -np.inf)
            peak = score.max(1)
            shift = np.where(np.isinf(peak), 0, peak)
            taken = np.exp2(score - shift[:, None])
            weight = weight + taken.sum(1) + shift
        elif form == "numbers":
            score = np.where(inside, score + rows[:, None] * 3 - keys * 7, -5)
            weight = weight * 3 + score.max(1) - score.sum(1) + (score ^ 9).sum()
            taken = score & 15
        elif form == "places":
            weight = weight * 2 + score.argmax(1)
            taken = np.trunc(score / 64).astype(np.int8)
        else:
            wide = wide * 2 + score
            taken = score & 7
        total = total + taken @ np.where(inside[:, None], v[keys], 0)
    return np.concatenate([total.ravel(), wide.max(1) if form == "also added" else weight])


def run(form, element, level, sizes=(32, 32, 32, 32), blocks=3):
    m, n, k, d = sizes
    rng = np.random.default_rng(m + n)
    arrays = [rng.integers(-9, 10, shape).astype(element) for shape in ((m, k), (n * blocks, k), (n * blocks, d))]
    total = np.float32 if form == "shares" else np.int32
    word = {"int8": "i8", "float16": "fp16", "float32": "fp32"}[element]
    types = {"out": "*fp32" if form == "shares" else "*i32", **dict.fromkeys("qkv", f"*{word}")}
    types |= {"count": "i32", "limit": "i32"}
    constants = {"FORM": form, "SUM": tl.float32 if form == "shares" else tl.int32}
    constants |= dict(zip("MNKD", sizes, strict=True))
    kernel = build(fold_kernel, types, constants, level=level)
    for limit in (n * blocks, n * blocks - 5, 0):
        out = np.zeros(m * (d + 1), total)
        kernel((1,), out, *arrays, blocks, limit)
        expected = fold(form, *arrays, limit, blocks)
        if form == "shares":
            assert np.allclose(out, expected, rtol=1e-4, atol=0.05 if element == "float16" else 1e-3)
        else:
            assert np.array_equal(out, expected.astype(np.int32)), (limit, sizes)
    return kernel


@pytest.mark.parametrize("level", EVERY_LEVEL)
@pytest.mark.parametrize(
    ("form", "element"),
    [("shares", "float32"), ("shares", "float16"), ("numbers", "int8"), ("places", "int8"), ("also added", "int8")],
)
def test_products_with_what_a_loop_loads(form, element, level):
    kernel = run(form, element, level)
    if element == "float32":
        before, inside = (re.search(TURNING, text) for text in kernel.loops.split(" : i32 {", 1))
        assert before and not inside


@pytest.mark.all
def test_products_of_every_shape():
    for sizes in ((8, 32, 32, 8), (64, 32, 32, 16), (16, 64, 32, 64), (128, 32, 64, 32), (4, 32, 32, 2)):
        run("numbers", "int8", "x86-64-v3", sizes, 2)
