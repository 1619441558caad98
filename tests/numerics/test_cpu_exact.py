"""What must be exact to the bit on every level: order, wrapping, narrowing stores, hazards, signs of zero."""

import numpy as np
import pytest
import triton
import triton.language as tl
from cpu_harness import LEVEL, NUMPY, build, from_bf16, to_bf16
from level_tiers import EVERY_LEVEL

from precast.engines import cpu

RANDOM = np.random.default_rng(23)
levels = pytest.mark.parametrize("level", EVERY_LEVEL)


@triton.jit
def narrow_kernel(out, x, FIRST: tl.constexpr, COUNT: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i).to(out.dtype.element_ty), mask=(i >= FIRST) & (i < FIRST + COUNT))


@levels
@pytest.mark.parametrize(("source", "target"), [("i64", "i32"), ("i32", "i16"), ("i64", "i8"), ("fp32", "bf16")])
def test_a_narrowing_store_writes_its_lanes_alone(source, target, level):
    types = {"out": f"*{target}", "x": f"*{source}"}
    for block, first, count in [(8, 0, 1), (8, 5, 1), (16, 3, 1), (32, 31, 1), (2, 1, 1), (64, 7, 3)]:
        constants = {"FIRST": first, "COUNT": count, "BLOCK": block}
        x = -1 - np.arange(block).astype(NUMPY[source])
        whole = to_bf16(x) if target == "bf16" else x.astype(NUMPY[target])
        out = np.full(block + 8, 77, whole.dtype)
        expected = out.copy()
        expected[first : first + count] = whole[first : first + count]
        build(narrow_kernel, types, constants, level=level)((1,), out, x)
        assert np.array_equal(out, expected), (block, first, count)


@triton.jit
def gather_kernel(out, x, index, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.gather(tl.load(x + i), tl.load(index + i), 0))


@levels
@pytest.mark.parametrize(("element", "size"), [("u8", 256), ("u16", 512), ("i32", 256), ("i64", 256)])
def test_gather_by_indices_of_every_width(element, size, level):
    x = np.arange(size, dtype=np.float32)
    index = RANDOM.permutation(size).astype(NUMPY[element])
    out = np.zeros(size, np.float32)
    types = {"out": "*fp32", "x": "*fp32", "index": f"*{element}"}
    build(gather_kernel, types, {"N": size}, level=level)((1,), out, x, index)
    assert np.array_equal(out, x[index])


@triton.jit
def other_kernel(out, x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n, other=0.1).to(tl.float64))


@levels
@pytest.mark.parametrize("element", ["fp32", "fp16", "bf16"])
def test_other_has_the_precision_of_what_is_loaded(element, level):
    x = np.ones(256, np.float32)
    stored = to_bf16(x) if element == "bf16" else x.astype(NUMPY[element])
    tenth = from_bf16(to_bf16(np.float32(0.1))) if element == "bf16" else NUMPY[element](0.1)
    kernel = build(other_kernel, {"out": "*fp64", "x": f"*{element}", "n": "i32"}, {"BLOCK": 256}, level=level)
    for n in (0, 5, 256):
        out = np.zeros(256)
        kernel((1,), out, stored, n)
        assert np.array_equal(out, np.where(np.arange(256) < n, 1.0, np.float64(tenth)))


@triton.jit
def divide_kernel(quotient, rest, x, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(quotient + i, tl.load(x + i) // tl.load(y + i))
    tl.store(rest + i, tl.load(x + i) % tl.load(y + i))


@levels
@pytest.mark.parametrize("element", ["i8", "i16", "i32", "i64"])
@pytest.mark.parametrize("block", [1, 64])
def test_the_smallest_integer_divided_by_minus_one_wraps(block, element, level):
    types = dict.fromkeys(("quotient", "rest", "x", "y"), f"*{element}")
    x = np.full(block, np.iinfo(NUMPY[element]).min, NUMPY[element])
    y, quotient, rest = np.full_like(x, -1), np.zeros_like(x), np.ones_like(x)
    build(divide_kernel, types, {"BLOCK": block}, level=level)((1,), quotient, rest, x, y)
    assert np.array_equal(quotient, x) and not rest.any()


@triton.jit
def reverse_kernel(a, b, N: tl.constexpr, BARRIER: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(b + (N - 1 - i))
    if BARRIER:
        tl.debug_barrier()
    tl.store(a + i, v)


@levels
@pytest.mark.parametrize(("barrier", "strict"), [(True, False), (False, True)])
def test_one_array_under_two_names(barrier, strict, level):
    x = np.arange(1024, dtype=np.int32)
    expected = x[::-1].copy()
    constants = {"N": 1024, "BARRIER": barrier}
    build(reverse_kernel, {"a": "*i32", "b": "*i32"}, constants, level=level, strict=strict)((1,), x, x)
    assert np.array_equal(x, expected)


@triton.jit
def two_stores_kernel(a, b, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(a + i, i)
    tl.store(b + i, -i)


@levels
def test_strict_keeps_stores_through_two_names_in_order(level):
    x = np.zeros(129, np.int32)
    kernel = build(two_stores_kernel, {"a": "*i32", "b": "*i32"}, {"N": 128}, level=level, strict=True)
    kernel((1,), x[1:], x)
    assert np.array_equal(x, [*-np.arange(128), 127])


@triton.jit
def swapped_kernel(a, b, n, N: tl.constexpr):
    i = tl.arange(0, N)
    p, q = a + i, b + i
    for _ in range(n):
        tl.store(p + 1, tl.load(a + i))
        p, q = q, p


def test_a_carried_pointer_that_changes_its_array():
    a, b = np.arange(65, dtype=np.int32), np.zeros(65, np.int32)
    expected = a.copy()
    expected[1:] = a[:64]
    build(swapped_kernel, {"a": "*i32", "b": "*i32", "n": "i32"}, {"N": 64})((1,), a, b, 1)
    assert np.array_equal(a, expected)


@triton.jit
def volatile_kernel(out, x, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.load(x + i, volatile=True)
    tl.store(out, tl.load(x, volatile=True) + tl.load(x, volatile=True))


def test_volatile_loads_stay():
    compiled = build(volatile_kernel, {"out": "*i32", "x": "*i32"}, {"N": 4})
    llir = cpu.lower_loops(compiled.loops, LEVEL)
    assert llir.count("load volatile i32") == 3
    out = np.zeros(1, np.int32)
    compiled((1,), out, np.full(4, 21, np.int32))
    assert out[0] == 42


@triton.jit
def zero_kernel(out, x, FUNCTION: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    if FUNCTION == "sin":
        v = tl.sin(v)
    elif FUNCTION == "erf":
        v = tl.erf(v)
    elif FUNCTION == "sqrt":
        v = tl.sqrt(v)
    elif FUNCTION == "floor":
        v = tl.floor(v)
    elif FUNCTION == "ceil":
        v = tl.ceil(v)
    tl.store(out + i, v)


@levels
@pytest.mark.parametrize("function", ["sin", "erf", "sqrt", "floor", "ceil"])
@pytest.mark.parametrize("element", ["fp32", "fp64"])
def test_functions_keep_the_sign_of_zero_and_nan(function, element, level):
    x = np.tile(np.array([-0.0, 0.0, np.nan, -0.0], NUMPY[element]), 16)
    out = np.ones_like(x)
    types = {"out": f"*{element}", "x": f"*{element}"}
    build(zero_kernel, types, {"FUNCTION": function, "N": 64}, level=level)((1,), out, x)
    assert np.array_equal(out, x, equal_nan=True)
    assert np.array_equal(np.signbit(out)[~np.isnan(x)], np.signbit(x)[~np.isnan(x)])


@triton.jit
def wrapped_kernel(out, n, m, FORM: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    h = i * (-1640531527)
    if FORM == "both":
        r = (h + 5) < (h + 2000000000)
    elif FORM == "limit":
        r = (i + n) < m
    elif FORM == "from":
        r = (i + n) >= m
    elif FORM == "unsigned":
        r = (i + n).to(tl.uint32, bitcast=True) <= m.to(tl.uint32, bitcast=True)
    elif FORM == "widened":
        r = (i + n).to(tl.int64) < m
    elif FORM == "moved":
        r = ((i + n).to(tl.int64) * 2 + 1) < m
    elif FORM == "long":
        r = (i.to(tl.int64) + (n.to(tl.int64) << 32)) < (m.to(tl.int64) << 32)
    elif FORM == "shifted":
        r = ((i + n) << 3) > m
    elif FORM == "equal":
        r = (i + n) == m
    tl.store(out + i, 1, mask=r)
    tl.store(out + N + i, r.to(tl.int32))
    tl.store(out + 2 * N, tl.sum(r.to(tl.int32), 0))


def compare_wrapped(form, n, m):
    i, h = np.arange(256, dtype=np.int32), np.arange(256, dtype=np.int32) * np.int32(-1640531527)
    n32, m32 = np.int32(n), np.int32(m)
    with np.errstate(over="ignore"):
        s = i + n32
        forms = {
            "both": lambda: h + np.int32(5) < h + np.int32(2000000000), "limit": lambda: s < m32,
            "from": lambda: s >= m32, "unsigned": lambda: s.view(np.uint32) <= m32.view(np.uint32),
            "widened": lambda: s.astype(np.int64) < m, "moved": lambda: s.astype(np.int64) * 2 + 1 < m,
            "long": lambda: i.astype(np.int64) + (np.int64(n) << 32) < (np.int64(m) << 32),
            "shifted": lambda: (s << np.int32(3)) > m32, "equal": lambda: s == m32,
        }  # fmt: skip
        return forms[form]()


@levels
@pytest.mark.parametrize("form", ["both", "limit", "from", "unsigned", "widened", "moved", "long", "shifted", "equal"])
def test_comparisons_of_integers_that_wrap(form, level):
    kernel = build(wrapped_kernel, {"out": "*i32", "n": "i32", "m": "i32"}, {"FORM": form, "N": 256}, level=level)
    top, low = 2**31 - 1, -(2**31)
    for n, m in [(0, 10), (top - 100, top - 50), (top - 100, 5), (low, low + 9), (top, -3), (-3, 4), (1 << 28, 9)]:
        expected = compare_wrapped(form, n, m)
        out = np.zeros(513, np.int32)
        kernel((1,), out, n, m)
        assert np.array_equal(out[:256], expected), (n, m)
        assert np.array_equal(out[256:512], expected), (n, m)
        assert out[512] == expected.sum()


@triton.jit
def _affine(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@triton.jit
def _first(a, b):
    return a


@triton.jit
def _digits(value, length, value2, length2):
    return (value << length2) + value2, length + length2


@triton.jit
def order_kernel(out, x, REGION: tl.constexpr, SCAN: tl.constexpr, REVERSE: tl.constexpr, M: tl.constexpr,
                 N: tl.constexpr, AXIS: tl.constexpr):  # fmt: skip
    places = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    a = tl.load(x + places)
    if SCAN:
        if REGION == "affine":
            r = tl.associative_scan((a, a), AXIS, _affine, reverse=REVERSE)[1]
        elif REGION == "first":
            r = tl.associative_scan(a, AXIS, _first, reverse=REVERSE)
        else:
            r = tl.associative_scan((a, a * 0 + 1), AXIS, _digits, reverse=REVERSE)[0]
        tl.store(out + places, r)
    else:
        if REGION == "affine":
            r = tl.reduce((a, a), AXIS, _affine)[1]
        elif REGION == "first":
            r = tl.reduce(a, AXIS, _first)
        else:
            r = tl.reduce((a, a * 0 + 1), AXIS, _digits)[0]
        tl.store(out + tl.arange(0, M if AXIS == 1 else N), r)


def combine_in_order(region, x):
    """All prefixes of the first axis, combined from the first element on."""
    with np.errstate(over="ignore"):
        value, second = x[0], x[0] if region == "affine" else np.ones_like(x[0])
        found = [value]
        for item in x[1:]:
            if region == "affine":
                value, second = value * item + item, second * item
            elif region == "digits":
                value = (value << 1) + item
            found.append(value)
    return np.array(found)


@levels
@pytest.mark.parametrize("region", ["affine", "first", "digits"])
@pytest.mark.parametrize("shape", [(4, 128), (64, 2)])
@pytest.mark.parametrize("axis", [0, 1])
def test_regions_that_do_not_commute_keep_the_order(axis, shape, region, level):
    x = RANDOM.integers(-9, 9, shape).astype(np.int32)
    types = {"out": "*i32", "x": "*i32"}
    along = x if axis == 0 else x.T
    for scan, reverse in [(False, False), (True, False), (True, True)]:
        constants = {"REGION": region, "SCAN": scan, "REVERSE": reverse, "M": shape[0], "N": shape[1], "AXIS": axis}
        prefixes = combine_in_order(region, along[::-1] if reverse else along)
        expected = (prefixes[::-1] if reverse else prefixes) if scan else prefixes[-1]
        out = np.zeros(expected.shape if axis == 0 or not scan else expected.T.shape, np.int32)
        build(order_kernel, types, constants, level=level)((1,), out, x)
        assert np.array_equal(out, expected if axis == 0 or not scan else expected.T), (scan, reverse)


@triton.jit
def _plus(a, b):
    return a + b


@triton.jit
def small_float_kernel(total, running, x, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(total, tl.reduce(v, 0, _plus))
    tl.store(running + i, tl.associative_scan(v, 0, _plus))


@levels
@pytest.mark.parametrize("element", ["bf16", "fp16"])
def test_sums_of_small_floats_are_rounded_once(element, level):
    x = np.float32(RANDOM.random(256) + 1)
    stored = to_bf16(x) if element == "bf16" else x.astype(np.float16)
    exact = np.cumsum((from_bf16(stored) if element == "bf16" else stored).astype(np.float64))
    total, running = np.zeros(1, stored.dtype), np.zeros_like(stored)
    types = {"total": f"*{element}", "running": f"*{element}", "x": f"*{element}"}
    build(small_float_kernel, types, {"N": 256}, level=level)((1,), total, running, stored)
    half_unit = 2.0**-9 if element == "bf16" else 2.0**-12
    for got, wanted in [(total, exact[-1:]), (running, exact)]:
        values = (from_bf16(got) if element == "bf16" else got).astype(np.float64)
        assert np.max(np.abs(values - wanted) / wanted) <= half_unit * 2.001


@triton.jit
def shift_kernel(out, N: tl.constexpr, AMOUNT: tl.constexpr):
    i = tl.arange(0, N) + 1
    tl.store(out + i - 1, i << AMOUNT)


@pytest.mark.parametrize("amount", [-1, 0, 31, 32, 40])
def test_shifts_by_constants_past_the_width_give_zero(amount):
    out = np.ones(64, np.int32)
    build(shift_kernel, {"out": "*i32"}, {"N": 64, "AMOUNT": amount})((1,), out)
    with np.errstate(over="ignore"):
        expected = np.arange(1, 65, dtype=np.int32) << np.int32(amount) if 0 <= amount < 32 else np.zeros(64, np.int32)
    assert np.array_equal(out, expected)
