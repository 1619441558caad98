"""What elementwise ops and atomics do, in NumPy. In: arrays of registers. Out: arrays of registers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cpu_fuzz.numbers import REGISTERS, Numbers, round_to


def unsigned(a: Numbers) -> Numbers:
    a = np.asarray(a)
    return a.astype(np.uint8) if a.dtype == np.bool_ else a.view(f"u{a.itemsize}")


def widened(a: Numbers) -> Numbers:
    return a.astype(np.float32) if a.dtype == np.float16 else a


def round_to_element(element: str, values: Numbers) -> Numbers:
    return np.asarray(values) if element in ("f32", "f64") else round_to(element, values)


def from_integer(element: str, values: Numbers) -> Numbers:
    """Rounded once: by way of the widest float, which holds every integer of 64 bits."""
    if element in ("f32", "f64"):
        return values.astype(REGISTERS[element])
    return round_to(element, np.where(np.abs(values.astype(np.float64)) < 2.0**53, values, values.astype(np.float64)))


def compare(word: str, a: Numbers, b: Numbers) -> Numbers:
    operations = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
                  "ge": np.greater_equal}  # fmt: skip
    return np.asarray(operations[word](a, b))


def shift(kind: str, a: Numbers, b: Numbers) -> Numbers:
    """Amounts past the width shift everything out."""
    bits = 8 * a.itemsize
    amount = unsigned(b).astype(np.uint64)
    inside = np.minimum(amount, bits - 1).astype(a.dtype)
    if kind == "shrsi":
        return a >> inside
    source = a if kind == "shli" else unsigned(a)
    moved = source << inside if kind == "shli" else (source >> inside.view(source.dtype)).view(a.dtype)
    return np.where(amount < bits, moved, a.dtype.type(0))


def divide(a: Numbers, b: Numbers, rest: bool) -> Numbers:
    """Towards zero; the smallest number by -1 wraps."""
    wide_a, wide_b = a.astype(object), b.astype(object)
    quotient = np.frompyfunc(lambda x, y: abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1), 2, 1)(wide_a, wide_b)
    result = wide_a - quotient * wide_b if rest else quotient
    bits = 8 * a.itemsize
    wrap = np.frompyfunc(lambda x: (int(x) + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1)), 1, 1)
    return np.asarray(wrap(result)).astype(a.dtype)


def _i1(operation: Any) -> Any:
    def run(a: Numbers, b: Numbers) -> Numbers:
        if a.dtype == np.bool_:
            return (operation(a.astype(np.int8), b.astype(np.int8)) & 1).astype(np.bool_)
        return np.asarray(operation(a, b))

    return run


INTEGER = {
    "addi": _i1(np.add), "subi": _i1(np.subtract), "muli": _i1(np.multiply), "andi": np.bitwise_and,
    "ori": np.bitwise_or, "xori": np.bitwise_xor, "maxsi": np.maximum, "minsi": np.minimum,
    "shli": lambda a, b: shift("shli", a, b), "shrsi": lambda a, b: shift("shrsi", a, b),
    "shrui": lambda a, b: shift("shrui", a, b), "divsi": lambda a, b: divide(a, b, False),
    "remsi": lambda a, b: divide(a, b, True), "absi": np.abs,
}  # fmt: skip
UNSIGNED = {"maxui": np.maximum, "minui": np.minimum, "divui": np.floor_divide, "remui": np.remainder}


def _number(choose: Any) -> Any:
    """The other operand where one is NaN."""
    return lambda a, b: np.where(np.isnan(a), b, np.where(np.isnan(b), a, choose(a, b)))


FLOAT = {
    "addf": np.add, "subf": np.subtract, "mulf": np.multiply, "divf": np.divide, "negf": np.negative, "absf": np.abs,
    "precise_divf": np.divide, "sqrt": np.sqrt, "precise_sqrt": np.sqrt, "floor": np.floor, "ceil": np.ceil,
    "trunc": np.trunc, "roundeven": np.rint, "remf": np.fmod,
    "maxnumf": _number(np.maximum), "minnumf": _number(np.minimum), "maximumf": np.maximum, "minimumf": np.minimum,
}  # fmt: skip


def _erf(x: Numbers) -> Numbers:
    return np.array([math.erf(each) for each in np.ravel(x)]).reshape(np.shape(x))


FUNCTIONS = {
    "exp": np.exp, "exp2": np.exp2, "log": np.log, "log2": np.log2, "sin": np.sin, "cos": np.cos, "tanh": np.tanh,
    "erf": _erf, "rsqrt": lambda x: 1 / np.sqrt(x),
}  # fmt: skip


def _atomic_integer(operation: Any) -> Any:
    return lambda a, b, element: operation(a, b)


ATOMIC = {
    "and": _atomic_integer(np.bitwise_and), "or": _atomic_integer(np.bitwise_or),
    "xor": _atomic_integer(np.bitwise_xor), "add": _atomic_integer(np.add), "max": _atomic_integer(np.maximum),
    "min": _atomic_integer(np.minimum), "exch": _atomic_integer(lambda a, b: b),
    "umax": _atomic_integer(lambda a, b: np.maximum(unsigned(a), unsigned(b)).view(a.dtype)),
    "umin": _atomic_integer(lambda a, b: np.minimum(unsigned(a), unsigned(b)).view(a.dtype)),
    "fadd": lambda a, b, element: round_to_element(element, widened(a) + widened(b)),
}  # fmt: skip
