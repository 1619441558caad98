"""libdevice's functions one by one: directed arithmetic and conversions exactly, integers exactly, the rest in ulp."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from cpu_harness import LEVELS, Compiled, ulp_error

RANDOM = np.random.default_rng(31)
KINDS = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64}
TYPES = {"f32": "*fp32", "f64": "*fp64", "i32": "*i32", "i64": "*i64"}
COUNT = 64


def apply(symbol, result, *operands, level=LEVELS[-1]):
    """The function on each element."""
    elements = [next(name for name, kind in KINDS.items() if kind == each.dtype) for each in operands]
    arguments = ", ".join(f"%a{i}: !tt.ptr<{each}>" for i, each in enumerate([*elements, result]))
    lines = ['%i = "tt.make_range"() <{start = 0 : i32, end = 64 : i32}> : () -> tensor<64xi32>']
    for index, each in enumerate([*elements, result]):
        pointers = f"tensor<64x!tt.ptr<{each}>>"
        lines.append(f'%s{index} = "tt.splat"(%a{index}) : (!tt.ptr<{each}>) -> {pointers}')
        lines.append(f'%p{index} = "tt.addptr"(%s{index}, %i) : ({pointers}, tensor<64xi32>) -> {pointers}')
        if index < len(elements):
            lines.append(
                f'%v{index} = "tt.load"(%p{index}) <{{isVolatile = false}}> : ({pointers}) -> tensor<64x{each}>'
            )
    names = ", ".join(f"%v{index}" for index in range(len(elements)))
    types = ", ".join(f"tensor<64x{each}>" for each in elements)
    lines.append(
        f'%r = "tt.extern_elementwise"({names}) <{{symbol = "__nv_{symbol}"}}> : ({types}) -> tensor<64x{result}>'
    )
    lines.append(f'"tt.store"(%p{len(elements)}, %r) : (tensor<64x!tt.ptr<{result}>>, tensor<64x{result}>) -> ()')
    body = "\n".join(lines)
    text = f""""builtin.module"() ({{ "tt.func"() <{{sym_name = "k"}}> ({{
    ^bb0({arguments}):
    {body}
    "tt.return"() : () -> () }}) : () -> () }}) : () -> ()"""
    out = np.zeros(COUNT, KINDS[result])
    Compiled(text, [TYPES[each] for each in [*elements, result]], level)((1,), *operands, out)
    return out


def numbers(kind):
    values = (RANDOM.standard_normal(COUNT) * 2.0 ** RANDOM.integers(-20, 20, COUNT)).astype(kind)
    values[:6] = [0.0, 1.0, -1.0, np.finfo(kind).max, np.finfo(kind).tiny, 3.0]
    return values


def toward(exact, way, kind):
    """The number of the format next to `exact` in a direction."""
    top = np.finfo(kind).max
    if abs(exact) > Fraction(float(top)):
        low, high = (top, np.inf) if exact > 0 else (-np.inf, -top)
    else:
        low = kind(float(exact))
        while Fraction(float(low)) > exact:
            low = np.nextafter(low, kind(-np.inf))
        high = low if Fraction(float(low)) == exact else np.nextafter(low, kind(np.inf))
        while Fraction(float(high)) < exact:
            low, high = high, np.nextafter(high, kind(np.inf))
            high = low if Fraction(float(low)) == exact else high
    return {"rd": low, "ru": high, "rz": low if exact > 0 else high}[way]


EXACT = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": lambda a, b: a / b,
    "rcp": lambda a: 1 / a, "fma": lambda a, b, c: a * b + c,
}  # fmt: skip


@pytest.mark.parametrize("kind", ["f32", "f64"])
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "rcp", "sqrt", "fma"])
def test_directed_arithmetic(name, kind):
    dtype = KINDS[kind]
    a, b, c = (numbers(dtype) for _ in range(3))
    b[b == 0] = 7
    if kind == "f64":  # where the rest of a product cannot be seen
        a[3:5] = b[3:5] = c[3:5] = 5.5
    if name == "sqrt":
        a = np.abs(a)
    letter = "" if name == "fma" else kind[0] if kind == "f32" else "d"
    symbol = ("fmaf" if kind == "f32" else "fma") if name == "fma" else letter + name
    operands = {"rcp": (b,), "sqrt": (a,), "fma": (a, b, c)}.get(name, (a, b))
    for index, way in enumerate(("rd", "ru", "rz")):
        got = apply(f"{symbol}_{way}", kind, *operands, level=LEVELS[index % len(LEVELS)])
        for place, values in enumerate(zip(*operands, strict=True)):
            x = [Fraction(float(each)) for each in values]
            if name == "sqrt":
                root = got[place]
                lower, upper = Fraction(float(root)) ** 2, Fraction(float(np.nextafter(root, dtype(np.inf)))) ** 2
                below = Fraction(float(np.nextafter(root, dtype(0)))) ** 2
                assert (below < x[0] <= lower or x[0] == lower) if way == "ru" else lower <= x[0] < upper, values
                continue
            assert got[place] == toward(EXACT[name](*x), way, dtype), (way, values)


@pytest.mark.parametrize("source", ["float", "double"])
@pytest.mark.parametrize("way", ["rn", "rz", "rd", "ru"])
def test_conversions_to_integers(way, source):
    x = (RANDOM.standard_normal(COUNT) * 1e6).astype(KINDS["f32" if source == "float" else "f64"])
    x[:8] = [0.5, -0.5, 1.5, 2.5, -2.5, 0, -7, 1e20]
    whole = {"rn": np.rint, "rz": np.trunc, "rd": np.floor, "ru": np.ceil}[way](x.astype(np.float64))
    for name, kind, low, high in [("int", "i32", -(2**31), 2**31 - 1), ("uint", "i32", 0, 2**32 - 1),
                                  ("ll", "i64", -(2**63), 2**63 - 1), ("ull", "i64", 0, 2**64 - 1)]:  # fmt: skip
        expected = np.array([min(max(int(each), low), high) % 2**64 for each in whole], np.uint64)
        got = apply(f"{source}2{name}_{way}", kind, x)
        assert np.array_equal(got, expected.astype(f"u{got.itemsize}").view(got.dtype)), name


@pytest.mark.parametrize(("name", "kind"), [("int", "i32"), ("uint", "i32"), ("ll", "i64"), ("ull", "i64")])
@pytest.mark.parametrize(("target", "result"), [("float", "f32"), ("double", "f64")])
def test_conversions_from_integers(target, result, name, kind):
    bounds = np.iinfo(KINDS[kind])
    x = RANDOM.integers(bounds.min, bounds.max, COUNT, KINDS[kind], endpoint=True)
    x[:5] = [0, 1, -1, bounds.max, bounds.min]
    exact = x.view(f"u{x.itemsize}") if name[0] == "u" else x
    ways = ["rn"] if (kind, result) == ("i32", "f64") else ["rd", "ru", "rz"]
    for way in ways:
        got = apply(f"{name}2{target}_{way}", result, x)
        rounded = [
            KINDS[result](each) if way == "rn" else toward(Fraction(int(each)), way, KINDS[result]) for each in exact
        ]
        assert np.array_equal(got, np.array(rounded, KINDS[result])), way


def test_double_to_float():
    x = numbers(np.float64)
    x[3:5] = [1e300, -1e-300]
    for way in ("rd", "ru", "rz"):
        expected = [toward(Fraction(float(each)), way, np.float32) for each in x]
        assert np.array_equal(apply(f"double2float_{way}", "f32", x), np.array(expected, np.float32)), way


def signed(values, bits):
    return np.array([(each + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1)) for each in values], f"i{bits // 8}")


def permute(a, b, s):
    both = b << 32 | a
    return sum(((both >> (8 * (s >> (4 * k) & 7))) & 255) << (8 * k) for k in range(4))


def low24(x):
    return (x & 0xFFFFFF) - ((x & 0x800000) << 1)


INTEGERS = {
    "brev": (1, 32, lambda a: int(f"{a % 2**32:032b}"[::-1], 2)),
    "brevll": (1, 64, lambda a: int(f"{a % 2**64:064b}"[::-1], 2)),
    "ffs": (1, 32, lambda a: (a & -a).bit_length()), "hadd": (2, 32, lambda a, b: (a + b) >> 1),
    "uhadd": (2, 32, lambda a, b: (a % 2**32 + b % 2**32) >> 1), "rhadd": (2, 32, lambda a, b: (a + b + 1) >> 1),
    "urhadd": (2, 32, lambda a, b: (a % 2**32 + b % 2**32 + 1) >> 1), "mulhi": (2, 32, lambda a, b: a * b >> 32),
    "umulhi": (2, 32, lambda a, b: (a % 2**32) * (b % 2**32) >> 32), "mul64hi": (2, 64, lambda a, b: a * b >> 64),
    "umul64hi": (2, 64, lambda a, b: (a % 2**64) * (b % 2**64) >> 64),
    "mul24": (2, 32, lambda a, b: low24(a) * low24(b)),
    "umul24": (2, 32, lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF)), "sad": (3, 32, lambda a, b, c: abs(a - b) + c),
    "usad": (3, 32, lambda a, b, c: abs(a % 2**32 - b % 2**32) + c),
    "byte_perm": (3, 32, lambda a, b, c: permute(a % 2**32, b % 2**32, c % 2**32)),
}  # fmt: skip


@pytest.mark.parametrize("name", INTEGERS)
def test_integers(name):
    count, bits, function = INTEGERS[name]
    kind, bounds = f"i{bits}", np.iinfo(KINDS[f"i{bits}"])
    operands = [RANDOM.integers(bounds.min, bounds.max, COUNT, KINDS[kind], endpoint=True) for _ in range(count)]
    operands[0][:4] = [0, -1, bounds.min, 1]
    expected = signed([function(*map(int, values)) for values in zip(*operands, strict=True)], bits)
    assert np.array_equal(apply(name, kind, *operands), expected)


def test_bits_of_floats():
    x, i = numbers(np.float64), RANDOM.integers(-(2**31), 2**31, (2, COUNT)).astype(np.int32)
    bits = x.view(np.int64)
    assert np.array_equal(apply("double_as_longlong", "i64", x), bits)
    assert np.array_equal(apply("double2hiint", "i32", x), (bits >> 32).astype(np.int32))
    assert np.array_equal(apply("double2loint", "i32", x), bits.astype(np.int32))
    joined = (i[0].astype(np.int64) << 32 | i[1].view(np.uint32)).view(np.float64)
    assert np.array_equal(apply("hiloint2double", "f64", i[0], i[1]), joined, equal_nan=True)
    assert np.array_equal(apply("float_as_int", "i32", x.astype(np.float32)), x.astype(np.float32).view(np.int32))


FUNCTIONS = {
    "sinpif": lambda x: math.sin(math.pi * math.remainder(x, 2)), "rcbrtf": lambda x: 1 / math.cbrt(x),
    "cospif": lambda x: math.sin(math.pi * (0.5 - abs(math.remainder(x, 2)))),
    "normcdff": lambda x: math.erfc(-x / math.sqrt(2)) / 2, "tgammaf": lambda x: math.gamma(abs(x) + 0.3),
    "erfcxf": lambda x: math.exp(x * x) * math.erfc(x), "saturatef": lambda x: min(max(x, 0.0), 1.0),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_in_ulp(name):
    x = (RANDOM.standard_normal(COUNT) * 3).astype(np.float32)
    argument = np.abs(x) + np.float32(0.3) if name == "tgammaf" else x
    function = math.gamma if name == "tgammaf" else FUNCTIONS[name]
    exact = np.array([function(float(each)) for each in argument])
    assert ulp_error(apply(name, "f32", argument), exact) <= 0.51


def exact_erfc(x):
    """By Taylor's series of erf, or the continued fraction, in 90 digits."""
    with localcontext() as context:
        context.prec = 90
        pi = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534")
        z = +x
        if z < 3:
            term, total, n = z, z, 0
            while abs(term) > Decimal(10) ** -80:
                n += 1
                term *= -z * z / n
                total += term / (2 * n + 1)
            return 1 - 2 * total / pi.sqrt()
        below = z
        for k in range(400, 0, -1):
            below = z + Decimal(k) / 2 / below
        return (-z * z).exp() / pi.sqrt() / below


WIDE = {  # in f64: name, argument from, to, function, units in the last place
    "erfcx": (-5, 60, lambda x: (x * x).exp() * exact_erfc(x), 6),
    "normcdf": (-30, 5, lambda x: exact_erfc(-x / Decimal(2).sqrt()) / 2, 6),
}


@pytest.mark.parametrize("name", WIDE)
def test_tails_in_f64(name):
    low, high, function, most = WIDE[name]
    x = np.linspace(low, high, COUNT)
    got = apply(name, "f64", x)
    with localcontext() as context:
        context.prec = 90
        for value, argument in zip(got, x, strict=True):
            exact = function(Decimal(float(argument)))
            assert abs(Decimal(float(value)) - exact) <= most * Decimal(float(np.spacing(float(exact)))), argument
    ends = np.full(COUNT, np.nan)
    ends[:3] = [-np.inf, np.inf, 1e300]
    limits = {"erfcx": [np.inf, 0.0, 1 / (1e300 * math.sqrt(math.pi))], "normcdf": [0.0, 1.0, 1.0]}[name]
    assert np.allclose(apply(name, "f64", ends)[:3], limits, rtol=1e-15, atol=0)


@pytest.mark.parametrize("name", ["sinpi", "cospi"])
def test_turns_in_f64(name):
    x = RANDOM.uniform(-3, 3, COUNT)
    x[:8] = [0.0, -0.0, 1.5, -2.5, 1e300, 2.0**53 - 1, -7.0, 1 - 2.0**-50]
    got = apply(name, "f64", x)
    for value, argument in zip(got, x, strict=True):
        turn = Fraction(float(argument)) % 2 - (Fraction(1, 2) if name == "sinpi" else 0)  # cos(π·turn)
        turn = min(turn % 2, 2 - turn % 2)
        sign = 1 if turn <= Fraction(1, 2) else -1
        rest = float(Fraction(1, 2) - (turn if sign > 0 else 1 - turn))
        assert abs(value - sign * math.sin(math.pi * rest)) <= 2 * np.spacing(abs(value)), argument
    if name == "sinpi":
        assert np.array_equal(np.signbit(got[[0, 1, 4, 6]]), [False, True, False, True])


def test_inverses_of_the_error_function():
    y = (RANDOM.random(COUNT) * 2 - 1).astype(np.float32)
    y[:5] = [0.0, 1.0, -1.0, 0.9999999, -1e-20]
    x = apply("erfinvf", "f32", y).astype(np.float64)
    assert (x[0], x[1], x[2]) == (0.0, np.inf, -np.inf)
    for value, wanted in zip(x[3:], y[3:].astype(np.float64), strict=True):
        near, far = (math.erf(value * (1 + sign * 1.2e-7)) for sign in (-1, 1))
        assert min(near, far) <= wanted <= max(near, far)
    p = np.linspace(1e-6, 1 - 1e-6, COUNT)
    quantiles = apply("normcdfinv", "f64", p)
    assert np.allclose([math.erfc(-each / math.sqrt(2)) / 2 for each in quantiles], p, rtol=1e-13)
    assert np.allclose(apply("erfcinv", "f64", 2 * p) * -math.sqrt(2), quantiles, rtol=1e-14)


def test_functions_of_integers_and_floats():
    x, n = (
        (np.abs(RANDOM.standard_normal(COUNT)) + 1).astype(np.float32),
        RANDOM.integers(-5, 6, COUNT).astype(np.int32),
    )
    assert np.array_equal(apply("ldexpf", "f32", x, n), np.ldexp(x, n))
    assert np.array_equal(apply("ilogbf", "i32", x), np.frexp(x)[1] - 1)
    assert ulp_error(apply("powif", "f32", x, n), x.astype(np.float64) ** n) <= 0.51
    assert np.array_equal(apply("llrintf", "i64", x * 10), np.rint(x * 10).astype(np.int64))
    wide = x.astype(np.float64)
    assert ulp_error(apply("norm3df", "f32", x, x, x), np.sqrt(3 * wide * wide)) <= 0.51
    assert ulp_error(apply("rhypotf", "f32", x, x), 1 / np.sqrt(2 * wide * wide)) <= 0.51


def bessel(x, order):
    """The modified Bessel function's series, whose terms have one sign, in 50 digits until what is left is not seen."""
    with localcontext() as context:
        context.prec = 50
        half = Decimal(float(x)) / 2
        term = total = half**order if order else Decimal(1)
        k = 0
        while k < abs(x) or abs(term) > abs(total) / 10**20:
            k += 1
            term = term * half * half / (k * (k + order))
            total += term
        return total


@pytest.mark.parametrize("order", [0, 1])
def test_modified_bessel_functions(order):
    x = np.concatenate([RANDOM.standard_normal(40) * 8, RANDOM.uniform(-90, 700, 24)])
    x[:6] = [0.0, 20.0, np.nextafter(20, 0), -20.5, 1e-300, 713.0]
    exact = [bessel(each, order) for each in x]
    got = apply(f"cyl_bessel_i{order}", "f64", x)
    for value, wanted in zip(got, exact, strict=True):
        assert abs(Decimal(float(value)) - wanted) <= abs(wanted) * 5 / 2**52
    single = x.astype(np.float32)
    single[np.abs(single) > 90] = 80
    expected = np.array([float(bessel(float(each), order)) for each in single])
    assert ulp_error(apply(f"cyl_bessel_i{order}f", "f32", single), expected) <= 0.51
    single[:4] = [np.inf, -np.inf, np.nan, 100]
    ends = apply(f"cyl_bessel_i{order}f", "f32", single)
    assert ends[0] == ends[3] == np.inf and ends[1] == (-np.inf if order else np.inf) and np.isnan(ends[2])
