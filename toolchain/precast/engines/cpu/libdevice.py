"""CUDA's libdevice beyond what the C library calls so. In: a symbol and plain forms. Out: a plain form, or nothing.

Integer tricks, conversions with a direction, directed arithmetic, and functions made of others. Directed results are
the nearest ones, moved by one unit where an exact comparison says that they lie on the wrong side.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

from precast.engines.cpu import division, floats
from precast.engines.cpu.builder import Builder
from precast.engines.cpu.ir import ELEMENT_BITS
from precast.engines.cpu.library import call_library, each_lane
from precast.engines.cpu.machine import Machine
from precast.engines.cpu.values import Plain, Scalar, Vector, register_type

_ROUNDINGS = {"rn": "roundeven", "rz": "trunc", "rd": "floor", "ru": "ceil"}
_NUMBERS = {"int": ("i32", True), "uint": ("i32", False), "ll": ("i64", True), "ull": ("i64", False)}
_FLOATS = {"float": "f32", "double": "f64"}
_TO_INTEGER = re.compile(r"(?:double|float)2(int|uint|ll|ull)_(r[nzdu])")
_FROM_INTEGER = re.compile(r"(int|uint|ll|ull)2(float|double)_(r[nzdu])")
_ARITHMETIC = re.compile(r"[df](add|sub|mul|div|rcp|sqrt)_(r[nzdu])|(fma)f?_(r[nzdu])")
_CASTS = {"double_as_longlong": "i64", "float_as_int": "i32", "float_as_uint": "i32", "int_as_float": "f32",
          "uint_as_float": "f32", "longlong_as_double": "f64"}  # fmt: skip


def lower_symbol(b: Builder, machine: Machine, symbol: str, operands: Sequence[Plain], element: str) -> Plain | None:
    """The value of `__nv_` and `symbol` with a result of `element`; None for a function that is not known here."""
    return _Libdevice(b, machine, element).lower(symbol, list(operands))


class _Libdevice:
    def __init__(self, b: Builder, machine: Machine, element: str) -> None:
        self.b = b
        self.machine = machine
        self.element = element

    def lower(self, symbol: str, x: list[Plain]) -> Plain | None:
        if found := _TO_INTEGER.fullmatch(symbol):
            return self.to_integer(x[0], *_NUMBERS[found[1]], found[2])
        if found := _FROM_INTEGER.fullmatch(symbol):
            return self.from_integer(x[0], _NUMBERS[found[1]][1], _FLOATS[found[2]], found[3])
        if found := _ARITHMETIC.fullmatch(symbol):
            return self.arithmetic(found[1] or found[3], found[2] or found[4], x)
        if symbol.startswith("double2float_"):
            nearest = self.b.cast("arith.truncf", x[0], "f32")
            return self.directed(nearest, self.wide(nearest), x[0], symbol[-2:])
        if symbol in _CASTS:
            return self.b.cast("arith.bitcast", x[0], _CASTS[symbol])
        known = _OTHERS.get(symbol) or _OTHERS.get(symbol.removesuffix("f"))
        return known(self, x) if known else None

    # Small steps.

    def op(self, name: str, x: Plain, y: Plain | float) -> Plain:
        return self.b.binary(name, x, floats.filled(self.b, x, y, x.element) if isinstance(y, (int, float)) else y)

    def math(self, name: str, *x: Plain) -> Plain:
        return self.b.like(x[0], f"math.{name} {', '.join(each.name for each in x)} : {x[0].type}")

    def fma(self, x: Plain, y: Plain, z: Plain) -> Plain:
        return self.math("fma", x, y, z) if self.machine.fused else call_library(self.b, "fma", [x, y, z])

    def wide(self, x: Plain) -> Plain:
        return self.b.cast("arith.extf", x, "f64") if x.element == "f32" else x

    def narrow(self, x: Plain) -> Plain:
        return self.b.cast("arith.truncf", x, self.element) if self.element == "f32" and x.element == "f64" else x

    def call(self, name: str, *x: Plain) -> Plain:
        return call_library(self.b, name, x)

    def test(self, predicate: str, x: Plain, y: Plain | float) -> Plain:
        return self.b.compare(
            predicate, x, floats.filled(self.b, x, y, x.element) if isinstance(y, (int, float)) else y
        )

    def choose(self, condition: Plain, x: Plain, y: Plain | float) -> Plain:
        width = x.width if isinstance(x, Vector) else 1
        other = floats.filled(self.b, x, y, x.element) if isinstance(y, (int, float)) else y
        return self.b.plain(self.b.select(condition, x, other, width), width)

    def filled(self, like: Plain, value: float) -> Plain:
        return floats.filled(self.b, like, value, like.element)

    # Directions.

    def directed(self, nearest: Plain, value: Plain, exact: Plain, way: str) -> Plain:
        """`nearest`, whose value is `value`, moved so that it is not past `exact` in the direction."""
        return self.moved(nearest, self.test("ogt", value, exact), self.test("olt", value, exact), way)

    def moved(self, nearest: Plain, above: Plain, below: Plain, way: str) -> Plain:
        """The next number down where `nearest` lies above what it should be, or up where it lies below."""
        if way == "rn":
            return nearest
        if way == "rz":
            positive = self.test("sge", floats.bits_of(self.b, nearest), 0)
            unset = self.b.binary("xori", positive, floats.filled(self.b, positive, 1, "i1"))
            above, below = self.b.binary("andi", above, positive), self.b.binary("andi", below, unset)
        result = nearest
        if way in ("rd", "rz"):
            result = self.choose(above, self.neighbour(nearest, -1), result)
        if way in ("ru", "rz"):
            result = self.choose(below, self.neighbour(nearest, 1), result)
        return result

    def neighbour(self, x: Plain, direction: int) -> Plain:
        """The next number in a direction."""
        bits = floats.bits_of(self.b, x)
        grows = self.test("sge" if direction > 0 else "slt", bits, 0)
        step = self.choose(grows, self.filled(bits, 1), -1)
        next_bits = self.b.binary("addi", bits, step)
        least = 1 if direction > 0 else (1 << (ELEMENT_BITS[x.element] - 1)) | 1
        next_bits = self.choose(self.test("oeq", x, 0.0), self.filled(bits, least), next_bits)
        return self.b.cast("arith.bitcast", next_bits, x.element)

    def arithmetic(self, name: str, way: str, x: list[Plain]) -> Plain:
        if name == "rcp":
            name, x = "div", [self.filled(x[0], 1.0), x[0]]
        nearest = (
            self.fma(*x) if name == "fma" else self.math("sqrt", *x) if name == "sqrt" else self.op(f"{name}f", *x)
        )
        if way == "rn":
            return nearest
        if name == "sub":
            name, x = "add", [x[0], self.b.like(x[1], f"arith.negf {x[1].name} : {x[1].type}")]
        rest = self.rest(name, nearest, x)
        # Where the nearest is infinite and no operand is, it lies beyond what it should be.
        infinite = self.test("oeq", self.math("absf", nearest), math.inf)
        for each in x:
            infinite = self.b.binary("andi", infinite, self.test("olt", self.math("absf", each), math.inf))
        if name == "div":
            infinite = self.b.binary("andi", infinite, self.test("one", x[1], 0.0))
        positive = self.test("ogt", nearest, 0.0)
        negative = self.test("olt", nearest, 0.0)
        above = self.b.binary("ori", self.test("olt", rest, 0.0), self.b.binary("andi", infinite, positive))
        below = self.b.binary("ori", self.test("ogt", rest, 0.0), self.b.binary("andi", infinite, negative))
        return self.moved(nearest, above, below, way)

    def rest(self, name: str, nearest: Plain, x: list[Plain]) -> Plain:
        """What has the sign of the exact result less `nearest`: in f64 for f32, where products are exact."""
        wide, r = [self.wide(each) for each in x], self.wide(nearest)
        back = self.b.like(r, f"arith.negf {r.name} : {r.type}")
        if name == "add":
            return self.sum_rest(wide[0], wide[1], r)
        if name == "mul":
            return self.fma(wide[0], wide[1], back)
        if name == "sqrt":
            return self.fma(back, r, wide[0])
        if name == "fma":
            return self.fma_rest(wide, r)
        remainder = self.fma(back, wide[1], wide[0])
        turned = self.b.like(remainder, f"arith.negf {remainder.name} : {remainder.type}")
        return self.choose(self.test("olt", wide[1], 0.0), turned, remainder)

    def two_sum(self, x: Plain, y: Plain) -> tuple[Plain, Plain]:
        """The rounded sum and what the rounding lost, exactly."""
        total = self.op("addf", x, y)
        part = self.op("subf", total, x)
        lost = self.op("addf", self.op("subf", x, self.op("subf", total, part)), self.op("subf", y, part))
        return total, lost

    def sum_rest(self, x: Plain, y: Plain, nearest: Plain) -> Plain:
        """The sign of x + y - nearest: of the rounded sum's distance, else of what rounding the sum lost."""
        total, lost = self.two_sum(x, y)
        distance = self.op("subf", total, nearest)
        return self.choose(self.test("oeq", distance, 0.0), lost, distance)

    def fma_rest(self, x: list[Plain], nearest: Plain) -> Plain:
        """The sign of x·y + z - nearest."""
        product = self.op("mulf", x[0], x[1])
        lost = self.fma(x[0], x[1], self.b.like(product, f"arith.negf {product.name} : {product.type}"))
        total, left = self.two_sum(product, x[2])
        distance, rest = self.two_sum(self.op("subf", total, nearest), left)
        return self.op("addf", distance, self.op("addf", rest, lost))

    # Conversions.

    def to_integer(self, x: Plain, element: str, signed: bool, way: str) -> Plain:
        whole = self.math(_ROUNDINGS[way], x)
        return division.saturate(self.b, whole, element, "fptosi" if signed else "fptoui")

    def from_integer(self, x: Plain, signed: bool, element: str, way: str) -> Plain:
        nearest = self.b.cast("arith.sitofp" if signed else "arith.uitofp", x, element)
        if way == "rn" or (x.element == "i32" and element == "f64"):
            return nearest
        back = division.saturate(self.b, nearest, x.element, "fptosi" if signed else "fptoui")
        limit = 2.0 ** (ELEMENT_BITS[x.element] - signed)
        word = "s" if signed else "u"
        above = self.b.binary("ori", self.test(f"{word}gt", back, x), self.test("oge", nearest, limit))
        below = self.b.binary("andi", self.test(f"{word}lt", back, x), self.test("olt", nearest, limit))
        return self.moved(nearest, above, below, way)

    # Functions made of others, in f64.

    def inside(self, function: Callable[[_Libdevice, list[Plain]], Plain], x: list[Plain]) -> Plain:
        return self.narrow(function(self, [self.wide(each) for each in x]))

    def norm(self, x: list[Plain]) -> Plain:
        """The root of the sum of squares; in f64 by `hypot`, which does not overflow."""
        if self.element == "f64":
            total = x[0]
            for each in x[1:]:
                total = self.call("hypot", total, each)
            return total
        squares = [self.op("mulf", each, each) for each in map(self.wide, x)]
        total = squares[0]
        for each in squares[1:]:
            total = self.op("addf", total, each)
        return self.math("sqrt", total)

    def inverse(self, x: Plain) -> Plain:
        return self.narrow(self.op("divf", self.filled(x, 1.0), x))

    def inverse_cube_root(self, x: Plain) -> Plain:
        return self.op("divf", self.filled(x, 1.0), self.call("cbrt", x))

    def circular(self, name: str, x: Plain) -> Plain:
        """sin or cos of π·x, exact at its zeros: of the distance to the next half, by which quarter of a turn it is."""
        magnitude = self.math("absf", x)
        even = self.b.binary("andi", self.test("oge", magnitude, 2.0**53), self.test("olt", magnitude, math.inf))
        near = self.choose(even, self.filled(x, 0.0), x)
        halves = self.math("roundeven", self.op("addf", near, near))
        turn = self.op("mulf", self.op("subf", near, self.op("mulf", halves, 0.5)), math.pi)
        sine, cosine = self.call("sin", turn), self.call("cos", turn)
        whole = self.op("mulf", self.math("floor", self.op("mulf", halves, 0.25)), 4.0)
        quarter = self.op("subf", halves, whole)
        odd = self.b.binary("ori", self.test("oeq", quarter, 1.0), self.test("oeq", quarter, 3.0))
        back = self.test("oge", quarter, 2.0) if name == "sin" else self.test("oeq", quarter, 1.0)
        if name == "cos":
            back = self.b.binary("ori", back, self.test("oeq", quarter, 2.0))
        value = self.choose(odd, cosine, sine) if name == "sin" else self.choose(odd, sine, cosine)
        value = self.choose(back, self.b.like(value, f"arith.negf {value.name} : {value.type}"), value)
        if name == "cos":
            return self.choose(self.test("oeq", value, 0.0), self.filled(value, 0.0), value)
        return self.choose(self.test("oeq", value, 0.0), self.math("copysign", value, x), value)

    def product_rest(self, x: Plain, y: Plain, product: Plain) -> Plain:
        """What rounding x·y lost."""
        return self.fma(x, y, self.b.like(product, f"arith.negf {product.name} : {product.type}"))

    def erfcx(self, x: Plain) -> Plain:
        """exp(x²)·erfc(x); beyond 25 its series at infinity."""
        square = self.op("mulf", x, x)
        near = self.op("mulf", self.call("exp", square), self.call("erfc", x))
        exact = self.fma(near, self.product_rest(x, x, square), near)
        near = self.choose(self.test("olt", near, math.inf), exact, near)
        far = self.horner(self.op("divf", self.filled(x, 0.5), square), _ERFCX_FAR)
        far = self.op("divf", self.op("mulf", far, 1 / math.sqrt(math.pi)), x)
        return self.choose(self.test("ogt", x, 25.0), far, near)

    def normcdf(self, x: Plain) -> Plain:
        """erfc(-x/√2) / 2, of an argument that is not rounded."""
        root = math.sqrt(0.5)
        turned = self.b.like(x, f"arith.negf {x.name} : {x.type}")
        z = self.op("mulf", turned, root)
        rest = self.fma(turned, self.filled(x, _ROOT_REST), self.product_rest(turned, self.filled(x, root), z))
        slope = self.op("mulf", self.call("exp", self.op("mulf", self.op("mulf", z, z), -1.0)), 2 / math.sqrt(math.pi))
        value = self.op("subf", self.call("erfc", z), self.op("mulf", rest, slope))
        value = self.choose(self.test("olt", self.math("absf", x), math.inf), value, self.call("erfc", z))
        return self.op("mulf", value, 0.5)

    def erfc_inverse(self, y: Plain) -> Plain:
        """The x with erfc(x) = y: a rough start, then steps of third order."""
        small = self.test("ogt", y, 1.0)
        tail = self.choose(small, self.op("subf", self.filled(y, 2.0), y), y)
        w = self.call("log", self.op("mulf", tail, self.op("subf", self.filled(y, 2.0), tail)))
        half = self.op("addf", self.op("mulf", w, 0.5), 2 / (math.pi * 0.147))
        root = self.math("sqrt", self.op("subf", self.op("mulf", half, half), self.op("mulf", w, 1 / 0.147)))
        x = self.math("sqrt", self.math("absf", self.op("subf", root, half)))
        for _ in range(3):
            slope = self.op(
                "mulf", self.call("exp", self.op("mulf", self.op("mulf", x, x), -1.0)), -2 / math.sqrt(math.pi)
            )
            step = self.op("divf", self.op("subf", self.call("erfc", x), tail), slope)
            x = self.op("subf", x, self.op("divf", step, self.op("addf", self.op("mulf", step, x), 1.0)))
        x = self.choose(self.test("oeq", tail, 0.0), self.filled(x, math.inf), x)
        return self.choose(small, self.b.like(x, f"arith.negf {x.name} : {x.type}"), x)

    def erf_inverse(self, y: Plain) -> Plain:
        """By way of erfc where 1 - |y| is exact, and by the same steps on erf near zero."""
        magnitude = self.math("absf", y)
        far = self.erfc_inverse(self.op("subf", self.filled(y, 1.0), magnitude))
        x = self.op("mulf", magnitude, math.sqrt(math.pi) / 2)
        for _ in range(4):
            slope = self.op(
                "mulf", self.call("exp", self.op("mulf", self.op("mulf", x, x), -1.0)), 2 / math.sqrt(math.pi)
            )
            step = self.op("divf", self.op("subf", self.call("erf", x), magnitude), slope)
            x = self.op("subf", x, self.op("divf", step, self.op("addf", self.op("mulf", step, x), 1.0)))
        return self.math("copysign", self.choose(self.test("olt", magnitude, 0.5), x, far), y)

    def bessel(self, x: Plain, order: int) -> Plain:
        """The modified Bessel function of order 0 or 1: its power series, from 20 on its series at infinity."""
        magnitude = self.math("absf", x)
        halved = self.op("mulf", magnitude, 0.5)
        near = self.horner(self.op("mulf", halved, halved), _BESSEL_NEAR[order])
        near = self.op("mulf", near, halved) if order else near
        far = self.horner(self.op("divf", self.filled(x, 1.0), self.op("maxnumf", magnitude, 20.0)), _BESSEL_FAR[order])
        far = self.op("divf", far, self.math("sqrt", self.op("mulf", magnitude, 2 * math.pi)))
        root = self.call("exp", halved)  # its square overflows before the function does
        far = self.op("mulf", self.op("mulf", far, root), root)
        value = self.choose(self.test("olt", magnitude, 20.0), near, far)
        value = self.choose(self.test("oeq", magnitude, math.inf), magnitude, value)
        return self.math("copysign", value, x) if order else value

    def horner(self, x: Plain, coefficients: Sequence[float]) -> Plain:
        result = self.filled(x, coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            result = self.op("addf", self.op("mulf", result, x), coefficient)
        return result

    # The C library's functions of an integer and a float.

    def call_mixed(self, name: str, x: list[Plain], element: str) -> Plain:
        """A C function whose types differ, lane by lane."""
        symbol = name + ("f" if any(each.element == "f32" for each in x) else "")
        types = ", ".join(register_type(each.element) for each in x)
        self.b.declare(symbol, f"({types}) -> {register_type(element)}")
        result = register_type(element)

        def call(items: Sequence[Scalar]) -> Scalar:
            names = ", ".join(each.name for each in items)
            return self.b.scalar(f"func.call @{symbol}({names}) : ({types}) -> {result}", element)

        return each_lane(self.b, x, element, call)

    # Integers.

    def extended(self, x: Plain, signed: bool) -> Plain:
        return self.b.cast("arith.extsi" if signed else "arith.extui", x, "i64")

    def high(self, x: list[Plain], signed: bool) -> Plain:
        a, b = x
        if a.element == "i32":
            product = self.op("muli", self.extended(a, signed), self.extended(b, signed))
            return self.b.cast("arith.trunci", self.op("shrui", product, 32), "i32")
        name = self.b.fresh()
        self.b.line(f"{name}:2 = arith.mul{'s' if signed else 'u'}i_extended {a.name}, {b.name} : {a.type}")
        return self.b.results(name, [a, a])[1]

    def average(self, x: list[Plain], signed: bool, up: bool) -> Plain:
        a, b = (self.extended(each, signed) for each in x)
        total = self.op("addi", self.op("addi", a, b), int(up))
        return self.b.cast("arith.trunci", self.op("shrsi", total, 1), "i32")

    def product24(self, x: list[Plain], signed: bool) -> Plain:
        a, b = (self.op("shrsi" if signed else "shrui", self.op("shli", each, 8), 8) for each in x)
        return self.b.binary("muli", a, b)

    def distance(self, x: list[Plain], signed: bool) -> Plain:
        a, b, c = x
        word = "si" if signed else "ui"
        return self.op("addi", self.op("subi", self.op(f"max{word}", a, b), self.op(f"min{word}", a, b)), c)

    def first_set(self, x: Plain) -> Plain:
        place = self.op("addi", self.math("cttz", x), 1)
        found = self.choose(self.test("eq", x, 0), self.filled(x, 0), place)
        return found if x.element == "i32" else self.b.cast("arith.trunci", found, "i32")

    def permuted(self, x: list[Plain]) -> Plain:
        """Four of the eight bytes of two words, each named by a nibble."""
        both = self.op("ori", self.extended(x[0], False), self.op("shli", self.extended(x[1], False), 32))
        selector, result = self.extended(x[2], False), self.filled(both, 0)
        for place in range(4):
            amount = self.op("shli", self.op("andi", self.op("shrui", selector, 4 * place), 7), 3)
            byte = self.op("andi", self.op("shrui", both, amount), 255)
            result = self.op("ori", result, self.op("shli", byte, 8 * place))
        return self.b.cast("arith.trunci", result, "i32")

    def halves(self, x: Plain, high: bool) -> Plain:
        bits = floats.bits_of(self.b, x)
        return self.b.cast("arith.trunci", self.op("shrui", bits, 32) if high else bits, "i32")

    def joined(self, x: list[Plain]) -> Plain:
        bits = self.op("ori", self.op("shli", self.extended(x[0], False), 32), self.extended(x[1], False))
        return self.b.cast("arith.bitcast", bits, "f64")

    def reversed(self, x: Plain) -> Plain:
        return self.b.like(x, f"llvm.intr.bitreverse({x.name}) : ({x.type}) -> {x.type}")

    def saturated(self, x: Plain) -> Plain:
        return self.op("minnumf", self.op("maxnumf", x, 0.0), 1.0)

    def high_inverse(self, x: Plain) -> Plain:
        bits = floats.bits_of(self.b, self.op("divf", self.filled(x, 1.0), x))
        return self.b.cast("arith.bitcast", self.op("andi", bits, -(1 << 32)), "f64")


def _expand_at_infinity(order: int) -> list[float]:
    """Coefficients of I(x)·exp(-x)·√(2πx) in 1/x, from low to high degree."""
    found = [1.0]
    for k in range(1, 29):
        found.append(found[-1] * ((2 * k - 1) ** 2 - 4 * order * order) / (8 * k))
    return found


_ROOT_REST = -4.833646656726457e-17  # √½ less its nearest double
_ERFCX_FAR = [float(math.prod(range(1, 2 * k, 2)) * (-1) ** k) for k in range(8)]  # in 1/(2x²)
_BESSEL_NEAR = [[1 / (math.factorial(k) * math.factorial(k + order)) for k in range(38)] for order in (0, 1)]
_BESSEL_FAR = [_expand_at_infinity(order) for order in (0, 1)]


def _in_f64(function: Callable[[_Libdevice, Plain], Plain]) -> Callable[[_Libdevice, list[Plain]], Plain]:
    return lambda m, x: m.inside(lambda _, wide: function(m, wide[0]), x)


_Function = Callable[[_Libdevice, list[Plain]], Plain]
_OTHERS: dict[str, _Function] = {
    "brev": lambda m, x: m.reversed(x[0]), "brevll": lambda m, x: m.reversed(x[0]),
    "byte_perm": lambda m, x: m.permuted(x), "ffs": lambda m, x: m.first_set(x[0]),
    "ffsll": lambda m, x: m.first_set(x[0]),
    "hadd": lambda m, x: m.average(x, True, False), "uhadd": lambda m, x: m.average(x, False, False),
    "rhadd": lambda m, x: m.average(x, True, True), "urhadd": lambda m, x: m.average(x, False, True),
    "mul24": lambda m, x: m.product24(x, True), "umul24": lambda m, x: m.product24(x, False),
    "mulhi": lambda m, x: m.high(x, True), "umulhi": lambda m, x: m.high(x, False),
    "mul64hi": lambda m, x: m.high(x, True), "umul64hi": lambda m, x: m.high(x, False),
    "sad": lambda m, x: m.distance(x, True), "usad": lambda m, x: m.distance(x, False),
    "double2hiint": lambda m, x: m.halves(x[0], True), "double2loint": lambda m, x: m.halves(x[0], False),
    "hiloint2double": lambda m, x: m.joined(x), "rcp64h": lambda m, x: m.high_inverse(x[0]),
    "saturate": lambda m, x: m.saturated(x[0]), "fast_fdivide": lambda m, x: m.op("divf", x[0], x[1]),
    "fast_exp10": lambda m, x: m.call("exp10", x[0]), "fast_log10": lambda m, x: m.call("log10", x[0]),
    "fast_tan": lambda m, x: m.call("tan", x[0]),
    "tgamma": _in_f64(lambda m, x: m.call("tgamma", x)),
    "lgamma": _in_f64(lambda m, x: m.call("lgamma", x)),
    "norm3d": lambda m, x: m.narrow(m.norm(x)), "norm4d": lambda m, x: m.narrow(m.norm(x)),
    "rnorm3d": lambda m, x: m.inverse(m.norm(x)), "rnorm4d": lambda m, x: m.inverse(m.norm(x)),
    "rhypot": lambda m, x: m.inverse(m.norm(x)), "rcbrt": _in_f64(_Libdevice.inverse_cube_root),
    "sinpi": _in_f64(lambda m, x: m.circular("sin", x)), "cospi": _in_f64(lambda m, x: m.circular("cos", x)),
    "erfcx": _in_f64(_Libdevice.erfcx), "erfinv": _in_f64(_Libdevice.erf_inverse),
    "erfcinv": _in_f64(_Libdevice.erfc_inverse),
    "normcdf": _in_f64(_Libdevice.normcdf),
    "normcdfinv": _in_f64(
        lambda m, x: m.op("mulf", m.erfc_inverse(m.op("addf", x, x)), -math.sqrt(2.0))
    ),
    "cyl_bessel_i0": _in_f64(lambda m, x: m.bessel(x, 0)), "cyl_bessel_i1": _in_f64(lambda m, x: m.bessel(x, 1)),
    "ilogb": lambda m, x: m.call_mixed("ilogb", x, "i32"),
    "jn": lambda m, x: m.call_mixed("jn", x, x[1].element), "yn": lambda m, x: m.call_mixed("yn", x, x[1].element),
    "ldexp": lambda m, x: m.call_mixed("ldexp", x, x[0].element),
    "scalbn": lambda m, x: m.call_mixed("scalbn", x, x[0].element),
    "powi": lambda m, x: m.inside(lambda _, w: m.call("pow", w[0], m.b.cast("arith.sitofp", w[1], "f64")), x),
    "llrint": lambda m, x: m.to_integer(x[0], "i64", True, "rn"),
    "llround": lambda m, x: division.saturate(m.b, m.math("round", x[0]), "i64", "fptosi"),
}  # fmt: skip
