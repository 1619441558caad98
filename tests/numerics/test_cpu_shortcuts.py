"""What the CPU engine leaves out or does at once, because the result is the same: it is, and it is left out."""

import numpy as np
import pytest
import triton
import triton.language as tl
from cpu_harness import LEVEL, LEVELS, build
from level_tiers import EVERY_LEVEL


@triton.jit
def sort_kernel(out, x, M: tl.constexpr, N: tl.constexpr, FORM: tl.constexpr):
    i = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    v = tl.load(x + i)
    if FORM == "up":
        v = tl.sort(v)
    elif FORM == "down":
        v = tl.sort(v, descending=True)
    elif FORM == "flip":
        v = tl.flip(v, 1)
    elif FORM == "rows":
        v = tl.flip(v, 0)
    elif FORM == "both":
        v = tl.flip(tl.sort(tl.flip(v, 0)), 1) + tl.flip(v, 1)
    elif FORM == "again":
        for _ in range(3):
            v = tl.flip(v, 1) - 2 * v
    tl.store(out + i, v)


def again(x):
    for _ in range(3):
        x = x[:, ::-1] - 2 * x
    return x


SORTS = {
    "up": np.sort, "down": lambda x: np.sort(x)[:, ::-1], "flip": lambda x: x[:, ::-1], "rows": lambda x: x[::-1],
    "both": lambda x: np.sort(x[::-1])[:, ::-1] + x[:, ::-1], "again": again,
}  # fmt: skip


@pytest.mark.parametrize(
    ("form", "element", "shapes"),
    [*((form, "i32", [(4, 16)]) for form in SORTS), ("both", "fp32", [(1, 64), (16, 2)]), ("both", "i8", [(4, 16)])],
)
def test_halves_that_change_places(form, element, shapes):
    types = {"i32": np.int32, "fp32": np.float32, "i8": np.int8}
    for m, n in shapes:
        x = np.random.default_rng(n).integers(-30, 30, (m, n)).astype(types[element])
        out = np.zeros_like(x)
        kernel = build(sort_kernel, {"out": f"*{element}", "x": f"*{element}"}, {"M": m, "N": n, "FORM": form})
        kernel((1,), out, x)
        assert np.array_equal(out, SORTS[form](x)), (m, n)
        assert "vector.reduction" not in kernel.loops


def test_each_step_of_a_sort_is_two_loops():
    count = {}
    for n in (64, 1024):
        x = np.random.default_rng(n).standard_normal(n).astype(np.float32)
        out = np.zeros_like(x)
        kernel = build(sort_kernel, {"out": "*fp32", "x": "*fp32"}, {"M": 1, "N": n, "FORM": "up"})
        kernel((1,), out, x)
        assert np.array_equal(out, np.sort(x))
        steps = n.bit_length() * (n.bit_length() - 1) // 2
        count[n] = kernel.loops.count("scf.for") / steps
    assert max(count.values()) <= 2.5


@triton.jit
def ragged_dot_kernel(
    out, a, b, c, m, n, k, sa, sb, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, TURN: tl.constexpr
):
    rows, columns, depth = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    total = tl.load(c + rows[:, None] * BN + columns[None, :])
    for start in range(0, k, BK):
        inside = depth + start < k
        left = tl.load(a + rows[:, None] * sa + depth[None, :] + start, (rows[:, None] < m) & inside[None, :], 0.0)
        if TURN:
            right = tl.trans(
                tl.load(
                    b + columns[:, None] * sb + depth[None, :] + start, (columns[:, None] < n) & inside[None, :], 0.0
                )
            )
        else:
            right = tl.load(
                b + (depth[:, None] + start) * sb + columns[None, :], inside[:, None] & (columns[None, :] < n), 0.0
            )
        total = tl.dot(left, right, total, input_precision="ieee")
    tl.store(out + rows[:, None] * BN + columns[None, :], total)


def ragged_dot(a, b, c, m, n, k, level=LEVEL, turn=False, blocks=(32, 64, 16)):
    bm, bn, bk = blocks
    kind = {np.dtype(np.float32): "fp32", np.dtype(np.float16): "fp16"}[a.dtype]
    types = {"out": "*fp32", "a": f"*{kind}", "b": f"*{kind}", "c": "*fp32"}
    types |= dict.fromkeys(["m", "n", "k", "sa", "sb"], "i32")
    kernel = build(ragged_dot_kernel, types, {"BM": bm, "BN": bn, "BK": bk, "TURN": turn}, level=level)
    out = np.full((bm, bn), 7, np.float32)
    stored = np.ascontiguousarray(b.T) if turn else b
    kernel((1,), out, a, stored, c, m, n, k, a.shape[1], stored.shape[1])
    return out


@pytest.mark.parametrize("level", EVERY_LEVEL)
@pytest.mark.parametrize("turn", [False, True])
def test_products_of_masked_operands(level, turn):
    rng = np.random.default_rng(7)
    for kind in (np.float32, np.float16) if level == LEVEL else (np.float32,):
        for m, n, k in [(32, 64, 16), (5, 33, 37), (31, 64, 1), (1, 1, 100), (0, 5, 9), (9, 0, 3), (32, 7, 0)]:
            a, b = rng.integers(-4, 5, (m, k)).astype(kind), rng.integers(-4, 5, (k, n)).astype(kind)
            c = rng.integers(-9, 9, (32, 64)).astype(np.float32)
            expected = c.copy()
            expected[:m, :n] += a.astype(np.float32) @ b.astype(np.float32)
            assert np.array_equal(ragged_dot(a, b, c, m, n, k, level, turn), expected), (m, n, k)


@pytest.mark.parametrize("level", EVERY_LEVEL)
def test_products_of_few_columns_of_a_panel(level):
    """Which are taken a vector at a time, and all of them where a row of zeros would be multiplied by infinity."""
    rng = np.random.default_rng(23)
    c = rng.integers(-9, 9, (32, 128)).astype(np.float32)
    for n in (0, 1, 15, 16, 17, 33, 48, 49, 63, 64, 65, 80, 111, 113, 127, 128):
        m, k = 29, 9
        a, b = rng.integers(-4, 5, (m, k)).astype(np.float32), rng.integers(-4, 5, (k, n)).astype(np.float32)
        expected = c.copy()
        expected[:m, :n] += a @ b
        assert np.array_equal(ragged_dot(a, b, c, m, n, k, level, blocks=(32, 128, 8)), expected), n
        a[3, 2] = np.inf
        out = ragged_dot(a, b, c, m, n, k, level, blocks=(32, 128, 8))
        assert np.isnan(out[3, n:]).all(), n
        expected[3], out[3] = 0, 0
        assert np.array_equal(out, expected), n


@triton.jit
def fixed_masks_kernel(
    out, a, b, START: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, ROWS: tl.constexpr,
    COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    rows, columns, depth = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, K)
    left = tl.load(a + rows * K + depth[None, :], (rows < ROWS) & (depth[None, :] < DEPTH), 0)
    inside = depth[:, None] < DEPTH
    if COLUMNS < N:
        inside &= columns < COLUMNS
    right = tl.load(b + depth[:, None] * N + columns, inside, 0)
    total = tl.full([M, N], START, out.dtype.element_ty)
    tl.store(out + rows * N + columns, tl.dot(left, right, total, out_dtype=out.dtype.element_ty))


@pytest.mark.parametrize("level", EVERY_LEVEL)
@pytest.mark.parametrize("element", ["i8", "fp32"])
def test_products_whose_masks_are_known(level, element):
    """What no product is added to is there too, and zeros that are left out make 0 of -0."""
    rng = np.random.default_rng(31)
    kind, total, start = (np.int8, np.int32, 5) if element == "i8" else (np.float32, np.float32, -0.0)
    types = {"out": "*i32" if element == "i8" else "*fp32", "a": f"*{element}", "b": f"*{element}"}
    a, b = rng.integers(-4, 5, (16, 32)).astype(kind), rng.integers(-4, 5, (32, 128)).astype(kind)
    for m, n, k in [(3, 128, 32), (16, 17, 32), (5, 80, 3)]:
        constants = {"START": start, "M": 16, "N": 128, "K": 32, "ROWS": m, "COLUMNS": n, "DEPTH": k}
        kernel = build(fixed_masks_kernel, types, constants, level=level)
        out, expected = np.full((16, 128), 7, total), np.full((16, 128), start, total)
        kernel((1,), out, a, b)
        expected[:m, :n] += a[:m, :k].astype(total) @ b[:k, :n].astype(total)
        assert np.array_equal(out, expected), (m, n, k)
        inside = out[:m, :n]
        assert k == 32 or not np.signbit(inside[inside == 0]).any(), (m, n, k)


def test_a_large_block_is_asked_for_while_the_one_before_is_multiplied():
    rng = np.random.default_rng(11)
    m, n, k = 130, 70, 200
    a, b = rng.integers(-4, 5, (m, k)).astype(np.float32), rng.integers(-4, 5, (k, n)).astype(np.float32)
    c = rng.integers(-9, 9, (256, 128)).astype(np.float32)
    expected = c.copy()
    expected[:m, :n] += a @ b
    assert np.array_equal(ragged_dot(a, b, c, m, n, k, blocks=(256, 128, 64)), expected)
    wide = np.hstack([c[:64], c[64:128]])
    expected = wide.copy()
    expected[:60, :n] += a[:60] @ b
    assert np.array_equal(ragged_dot(a[:60], b, wide, 60, n, k, blocks=(64, 256, 64)), expected)
    types = {
        "out": "*fp32",
        "a": "*fp32",
        "b": "*fp32",
        "c": "*fp32",
        **dict.fromkeys(["m", "n", "k", "sa", "sb"], "i32"),
    }
    for bm, asked in [(256, True), (16, False)]:
        kernel = build(ragged_dot_kernel, types, {"BM": bm, "BN": 16, "BK": 64, "TURN": False})
        assert ("llvm.intr.prefetch" in kernel.loops) is asked


@triton.jit
def advancing_kernel(out, a, b, index, k, sa, FORM: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows, columns, depth = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    left, right = a + rows[:, None] * sa + depth[None, :], b + depth[:, None] * BN + columns[None, :]
    total = tl.zeros([BM, BN], tl.float32)
    for start in range(0, k, BK):
        if FORM == "indirect":
            left = a + rows[:, None] * sa + tl.load(index + start + depth, start + depth < k, 0)[None, :]
        total = tl.dot(tl.load(left), tl.load(right), total, input_precision="ieee")
        amount = tl.load(index) + (BK if start >= 0 else 1)  # known after the product alone
        left += amount
        right += amount * BN
    tl.store(out + rows[:, None] * BN + columns[None, :], total)


@pytest.mark.parametrize("form", ["late", "indirect"])
def test_what_cannot_be_told_yet_is_not_asked_for(form):
    m, n, k = 128, 128, 192
    rng = np.random.default_rng(3)
    a, b = rng.integers(-4, 5, (m, k)).astype(np.float32), rng.integers(-4, 5, (k, n)).astype(np.float32)
    index, out = np.arange(k, dtype=np.int32), np.zeros((m, n), np.float32)
    types = {"out": "*fp32", "a": "*fp32", "b": "*fp32", "index": "*i32", "k": "i32", "sa": "i32"}
    kernel = build(advancing_kernel, types, {"FORM": form, "BM": m, "BN": n, "BK": 64})
    kernel((1,), out, a, b, index, k, k)
    assert np.array_equal(out, a @ b)
    assert "llvm.intr.prefetch" in kernel.loops, kernel.loops.count("llvm.intr.prefetch")


@pytest.mark.parametrize(("m", "n", "k", "sa", "sb"), [
    (32, 64, 16, 16, 64), (32, 64, 48, 2048, 64), (32, 64, 30, 41, 127), (32, 64, 31, 31, 129), (31, 64, 16, 16, 300),
    (32, 63, 16, 40, 63), (2, 2, 2, 4096, 2),
])  # fmt: skip
def test_factors_where_they_lie(m, n, k, sa, sb):
    """What is beyond the masks is not a number."""
    rng = np.random.default_rng(m + n + k)
    a, b = np.full((m, sa), np.nan, np.float32), np.full((k, sb), np.nan, np.float32)
    a[:, :k], b[:, :n] = rng.integers(-4, 5, (m, k)), rng.integers(-4, 5, (k, n))
    c = rng.integers(-9, 9, (32, 64)).astype(np.float32)
    expected = c.copy()
    expected[:m, :n] += a[:, :k] @ b[:, :n]
    types = {each: "*fp32" for each in ("out", "a", "b", "c")} | dict.fromkeys(["m", "n", "k", "sa", "sb"], "i32")
    kernel = build(ragged_dot_kernel, types, {"BM": 32, "BN": 64, "BK": 16, "TURN": False})
    out = np.zeros((32, 64), np.float32)
    kernel((1,), out, a, b, c, m, n, k, sa, sb)
    assert np.array_equal(out, expected)


@pytest.mark.parametrize("level", EVERY_LEVEL)
@pytest.mark.parametrize(("m", "n"), [(1, 64), (2, 2), (4, 1), (8, 32), (16, 128), (64, 16), (128, 64)])
def test_tiles_of_every_height_and_width(level, m, n):
    rng = np.random.default_rng(m * n)
    a, b = rng.integers(-4, 5, (m, 20)).astype(np.float32), rng.integers(-4, 5, (20, n)).astype(np.float32)
    c = rng.integers(-9, 9, (m, n)).astype(np.float32)
    assert np.array_equal(ragged_dot(a, b, c, m, n, 20, level, blocks=(m, n, 16)), c + a @ b)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_zeros_of_a_mask_times_what_is_not_finite(value):
    """A row that the mask turns off is NaN in the columns whose factor is not finite, as it is on a GPU."""
    m, n, k = 3, 40, 20
    a, b, c = np.ones((m, k), np.float32), np.ones((k, n), np.float32), np.zeros((32, 64), np.float32)
    b[4, 5] = value
    out = ragged_dot(a, b, c, m, n, k)
    assert np.isnan(out[m:, 5]).all()
    assert not np.isnan(np.delete(out, 5, 1)).any()
    b[4, 5], a[2, 6] = 1, value
    out = ragged_dot(a, b, c, m, n, k)
    assert np.isnan(out[2, n:]).all()
    assert not np.isnan(np.delete(out, 2, 0)).any()


def test_products_that_are_left_out_make_positive_zeros():
    c = np.full((32, 64), -0.0, np.float32)
    a, b = np.ones((32, 3), np.float32), np.zeros((3, 64), np.float32)
    assert not np.signbit(ragged_dot(a, -b, c, 32, 64, 3)).any()


@triton.jit
def kept_kernel(out, a, b, count, FORM: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    x, y = tl.load(a + i), tl.load(b + i)
    total = tl.zeros([N, N], tl.float32)
    for k in range(count):
        if FORM == "nested":
            for _ in range(2):
                total = tl.dot(x, tl.trans(y), total, input_precision="ieee")
        elif FORM == "both":
            total = tl.dot(y, tl.trans(y), total, input_precision="ieee")
        elif FORM == "alike":
            total = tl.dot(x, y, total, input_precision="ieee")
        else:
            total = tl.dot(x + k, tl.trans(y), total, input_precision="ieee")
        if FORM == "changes":
            y = y + 1
    tl.store(out + i, total + y)


def kept(form, a, b, count):
    total, y = np.zeros_like(a), b
    for k in range(count):
        left = y if form == "both" else a + k if form in ("turned", "changes") else a
        total = total + (2 if form == "nested" else 1) * (left @ (y if form == "alike" else y.T))
        y = y + 1 if form == "changes" else y
    return total + y


@pytest.mark.parametrize("form", ["turned", "nested", "both", "alike", "changes"])
def test_a_right_factor_that_stays_is_packed_before_the_loop(form):
    size = 16
    types = {"out": "*fp32", "a": "*fp32", "b": "*fp32", "count": "i32"}
    kernel = build(kept_kernel, types, {"FORM": form, "N": size})
    for count in (0, 1, 5):
        a, b = (np.random.default_rng(seed).integers(-4, 5, (size, size)).astype(np.float32) for seed in (1, 2))
        out = np.zeros_like(a)
        kernel((1,), out, a, b, count)
        assert np.array_equal(out, kept(form, a, b, count)), count
    before, inside = kernel.loops.split(" : i32 {", 1)
    assert ("vector.shuffle" in before) is (form not in ("alike", "changes"))
    assert ("vector.shuffle" in inside) is (form == "changes")


@triton.jit
def running_kernel(out, x, n, count, FORM: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    total, other, p = tl.zeros([N], tl.float32), tl.full([N], 1, tl.int32), x + i
    for start in range(0, count * N, N):
        if FORM == "masked":
            total += tl.load(x + start + i, mask=start + i < n, other=0.5)
        elif FORM == "falling":  # what is masked off first is read later
            total += tl.load(x + start + i, mask=count * N - start + i < n, other=0.5)
        elif FORM == "above":
            total += tl.load(x + start + i, mask=start + i >= n, other=0.5)
        elif FORM == "wraps":  # 2¹⁵ - 1 is followed by what is below zero, which is large
            short = ((start + i).to(tl.int16) + (0x7FFF - 2 * N + 7)).to(tl.int32)
            total += tl.load(
                x + start + i, mask=short.to(tl.uint32, bitcast=True) < (n + 40000).to(tl.uint32), other=0.5
            )
        elif FORM == "pair":
            v = tl.load(x + start + i, mask=start + i < n, other=-1.0)
            other = tl.where(v > total, start + i, other)
            total = tl.where(v > total, v, total)
        elif FORM == "swap":
            total, other = other.to(tl.float32) + tl.load(x + start + i), (total * 0.5).to(tl.int32)
        elif FORM == "pointer":
            total += tl.load(p) * (start + 1)
            p += N
    if FORM == "pointer":
        total += tl.load(p)
    tl.store(x + i, total * 0)  # what the loop read is overwritten before its results are used
    tl.store(out + i, total)
    tl.store(out + N + i, other.to(tl.float32))
    tl.store(out + 2 * N, tl.sum(total, 0))


def running(form, x, n, count, size):
    total, other = np.zeros(size, np.float32), np.ones(size, np.int32)
    for k in range(count):
        i = k * size + np.arange(size)
        v = x[i]
        if form == "masked":
            total = total + np.where(i < n, v, np.float32(0.5))
        elif form == "falling":
            total = total + np.where(i + (count - 2 * k) * size < n, v, np.float32(0.5))
        elif form == "above":
            total = total + np.where(i >= n, v, np.float32(0.5))
        elif form == "wraps":
            short = (i + 0x7FFF - 2 * size + 7).astype(np.int16)
            total = total + np.where(short >= 0, v, np.float32(0.5))
        elif form == "pair":
            v = np.where(i < n, v, np.float32(-1))
            total, other = np.where(v > total, v, total), np.where(v > total, i, other)
        elif form == "swap":
            total, other = other.astype(np.float32) + v, (total * np.float32(0.5)).astype(np.int32)
        else:
            total = total + v * np.float32(k * size + 1)
    if form == "pointer":
        total = total + x[count * size : (count + 1) * size]
    return total, other


@pytest.mark.parametrize(
    ("form", "level"),
    [("masked", level) for level in LEVELS]
    + [(form, LEVEL) for form in ("falling", "above", "wraps", "pair", "swap", "pointer")],
)
def test_loops_that_each_element_runs_through(form, level):
    size = 128
    types = {"out": "*fp32", "x": "*fp32", "n": "i32", "count": "i32"}
    kernel = build(running_kernel, types, {"FORM": form, "N": size}, level=level)
    for count, n in [(4, 4 * size), (4, 300), (3, 257), (1, 5), (0, 0)]:
        x = np.random.default_rng(n).integers(-8, 9, 5 * size).astype(np.float32)
        total, other = running(form, x, n, count, size)
        out = np.zeros(2 * size + 1, np.float32)
        kernel((1,), out, x, n, count)
        assert np.array_equal(out[:size], total), (count, n)
        assert np.array_equal(out[size:-1], other), (count, n)
        assert out[-1] == total.sum()


@triton.jit
def norm_kernel(out, x, n, N: tl.constexpr):
    total = tl.zeros([N], tl.float32)
    for start in range(0, n, N):
        i = start + tl.arange(0, N)
        v = tl.load(x + i, mask=i < n, other=0.0)
        total += v * v
    tl.store(out, tl.sum(total * 1.5, 0))


def test_carried_sums_that_are_added_up_stay_in_registers():
    kernel = build(norm_kernel, {"out": "*fp32", "x": "*fp32", "n": "i32"}, {"N": 1024})
    for n in (0, 1, 1000, 1024, 5000):
        x, out = np.random.default_rng(n).integers(-4, 5, max(n, 1)).astype(np.float32), np.zeros(1, np.float32)
        kernel((1,), out, x, n)
        assert out[0] == 1.5 * (x[:n] * x[:n]).sum()
    assert kernel.facts.thread_scratch_bytes < 4 * 1024
    whole, rest = kernel.loops.split("scf.while", 1)[1].split("scf.for", 1)
    assert "masked" not in whole, "rounds that are not masked in any lane come first"
    none, some = rest.split("scf.if", 1)[1].split("} else {", 1)
    assert "load" not in none, "where no lane is inside, nothing is read"
    assert "masked" in some.split("scf.yield", 1)[0]


@triton.jit
def programs_kernel(out, N: tl.constexpr):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    place = (z * tl.num_programs(1) + y) * tl.num_programs(0) + x
    tl.store(out + place, (z * 100 + y) * 100 + x)


def test_programs_are_counted_from_any_one_on():
    kernel = build(programs_kernel, {"out": "*i32"}, {"N": 1})
    for grid in [(1, 1, 1), (3, 4, 5), (1, 7, 2), (5, 1, 3)]:
        places = np.arange(np.prod(grid))
        x, y, z = places % grid[0], places // grid[0] % grid[1], places // grid[0] // grid[1]
        for begin in {0, 1, len(places) // 2, len(places)}:
            out = np.full(len(places), -1, np.int32)
            kernel.run(grid, begin, len(places), out)
            assert np.array_equal(out[begin:], ((z * 100 + y) * 100 + x)[begin:])
            assert np.all(out[:begin] == -1)
