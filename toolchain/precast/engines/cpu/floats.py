"""Small floats by hand: bf16 and the 8-bit formats as bits, in integer arithmetic on scalars or vectors.

In: plain forms. Out: plain forms. LLVM's own bf16 truncation needs a library function and its 8-bit `extf` aborts.
"""

from __future__ import annotations

from precast.engines.cpu.builder import Builder
from precast.engines.cpu.ir import ELEMENT_BITS
from precast.engines.cpu.syntax import FLOAT8
from precast.engines.cpu.values import Plain, Scalar, Vector

HAND = ("bf16", *FLOAT8)
# Exponent bits, mantissa bits, bias, and whether there is an infinity: IEEE binary16 beside the 8-bit formats.
_FORMATS = {"f16": (5, 10, 15, True), **FLOAT8}


def filled(b: Builder, like: Plain, value: int | float, element: str) -> Plain:
    """A constant in the form of `like`."""
    scalar = b.constant(value, element)
    return b.filled(value, element, like.width) if isinstance(like, Vector) else scalar


def _op(b: Builder, mnemonic: str, x: Plain, value: int | float) -> Plain:
    return b.binary(mnemonic, x, filled(b, x, value, x.element))


def _choose(b: Builder, condition: Plain, first: Plain, second: Plain) -> Plain:
    width = condition.width if isinstance(condition, Vector) else 1
    result = b.select(condition, first, second, width)
    assert isinstance(result, (Scalar, Vector))
    return result


def bits_of(b: Builder, x: Plain) -> Plain:
    """The bits of an f16, f32 or f64."""
    return b.cast("arith.bitcast", x, f"i{ELEMENT_BITS[x.element]}")


def by_hand(b: Builder, element: str) -> bool:
    """Whether arithmetic on the element is done in f32 and rounded by the engine."""
    return element in HAND or (element == "f16" and not b.half)


def widen(b: Builder, x: Plain) -> Plain:
    """bf16, f16 or an 8-bit float as f32, exactly; f32 and f64 stay."""
    if x.element == "bf16":
        raw = b.cast("arith.extui", _as(x, "i16"), "i32")
        return b.cast("arith.bitcast", _op(b, "shli", raw, 16), "f32")
    if x.element == "f16":
        return b.cast("arith.extf", x, "f32") if b.half else _widen_small(b, bits_of(b, x), "f16")
    return _widen_small(b, _as(x, "i8"), x.element) if x.element in FLOAT8 else x


def _as(x: Plain, element: str) -> Plain:
    """The same register under another element name of the same register type."""
    return Vector(x.name, element, x.width) if isinstance(x, Vector) else Scalar(x.name, element)


def _widen_small(b: Builder, x: Plain, element: str) -> Plain:
    """Normal values by moving the exponent field, subnormal ones by scaling the mantissa as an integer."""
    bits = ELEMENT_BITS[element]
    _, mantissa_bits, bias, _ = _FORMATS[element]
    raw = b.cast("arith.extui", x, "i32")
    magnitude = _op(b, "andi", raw, (1 << (bits - 1)) - 1)
    moved = _op(b, "addi", _op(b, "shli", magnitude, 23 - mantissa_bits), (127 - bias) << 23)
    small = _op(b, "mulf", b.cast("arith.sitofp", magnitude, "f32"), 2.0 ** (1 - bias - mantissa_bits))
    normal = b.compare("uge", magnitude, filled(b, x, 1 << mantissa_bits, "i32"))
    value = _choose(b, normal, b.cast("arith.bitcast", moved, "f32"), small)
    value = _widen_special(b, element, raw, magnitude, value)
    sign = _op(b, "shli", _op(b, "andi", raw, 1 << (bits - 1)), 32 - bits)
    return b.cast("arith.bitcast", b.binary("ori", bits_of(b, value), sign), "f32")


def _widen_special(b: Builder, element: str, raw: Plain, magnitude: Plain, value: Plain) -> Plain:
    nan = filled(b, raw, float("nan"), "f32")
    if element.endswith("FNUZ"):
        return _choose(b, b.compare("eq", raw, filled(b, raw, 0x80, "i32")), nan, value)
    if not _FORMATS[element][3]:
        return _choose(b, b.compare("eq", magnitude, filled(b, raw, 0x7F, "i32")), nan, value)
    top = filled(b, raw, _infinity(element), "i32")
    value = _choose(b, b.compare("eq", magnitude, top), filled(b, raw, float("inf"), "f32"), value)
    return _choose(b, b.compare("ugt", magnitude, top), nan, value)


def _infinity(element: str) -> int:
    """The bits of infinity in a format that has one."""
    exponent_bits, mantissa_bits, _, _ = _FORMATS[element]
    return ((1 << exponent_bits) - 1) << mantissa_bits


def narrow(b: Builder, x: Plain, element: str) -> Plain:
    """An f32 rounded to nearest even to bf16, f16 or an 8-bit float."""
    if element == "bf16":
        return _narrow_bf16(b, x)
    if element == "f16" and b.half:
        return b.cast("arith.truncf", x, "f16")
    if element == "f16":
        return b.cast("arith.bitcast", _narrow_small(b, x, "f16"), "f16")
    return _as(_narrow_small(b, x, element), element) if element in FLOAT8 else x


def _narrow_bf16(b: Builder, x: Plain) -> Plain:
    bits = bits_of(b, x)
    odd = _op(b, "andi", _op(b, "shrui", bits, 16), 1)
    rounded = b.binary("addi", _op(b, "addi", bits, 0x7FFF), odd)
    quiet = _op(b, "ori", bits, 1 << 22)
    rounded = _choose(b, b.compare("uno", x, x), quiet, rounded)
    return _as(b.cast("arith.trunci", _op(b, "shrui", rounded, 16), "i16"), "bf16")


def _largest(element: str) -> int:
    """What is too large becomes this: f16's infinity, an 8-bit float's largest finite value."""
    if element == "f16":
        return _infinity(element)
    if element.endswith("FNUZ"):
        return 0x7F
    return _infinity(element) - 1 if _FORMATS[element][3] else 0x7E


def _narrow_small(b: Builder, x: Plain, element: str) -> Plain:
    """The bits, rounded to nearest even; 8-bit floats saturate, as Triton's conversions on GPUs do."""
    _, mantissa_bits, bias, _ = _FORMATS[element]
    bits = bits_of(b, x)
    magnitude = _op(b, "andi", bits, 0x7FFFFFFF)
    shift = 23 - mantissa_bits
    odd = _op(b, "andi", _op(b, "shrui", magnitude, shift), 1)
    rounded = b.binary("addi", _op(b, "addi", magnitude, (1 << (shift - 1)) - 1), odd)
    normal = _op(b, "shrui", _op(b, "subi", rounded, (127 - bias) << 23), shift)
    # Below the smallest normal: adding 2**(23 + lowest exponent) leaves the rounded mantissa in the low bits.
    anchor = 2.0 ** (23 + 1 - bias - mantissa_bits)
    absolute = b.cast("arith.bitcast", magnitude, "f32")
    small_sum = bits_of(b, _op(b, "addf", absolute, anchor))
    small = b.binary("subi", small_sum, bits_of(b, filled(b, x, anchor, "f32")))
    is_small = b.compare("ult", magnitude, filled(b, x, (128 - bias) << 23, "i32"))
    result = _choose(b, is_small, small, normal)
    top = filled(b, x, _largest(element), "i32")
    result = _choose(b, b.compare("ugt", result, top), top, result)
    return _finish_small(b, x, element, bits, result)


def _finish_small(b: Builder, x: Plain, element: str, bits: Plain, result: Plain) -> Plain:
    """NaN and the sign."""
    width = ELEMENT_BITS[element]
    sign = _op(b, "andi", _op(b, "shrui", bits, 32 - width), 1 << (width - 1))
    nan = 0x7E00 if element == "f16" else 0x7F
    if element.endswith("FNUZ"):  # no negative zero: its bits are NaN
        sign = _choose(b, b.compare("eq", result, filled(b, x, 0, "i32")), filled(b, x, 0, "i32"), sign)
        nan = 0x80
    result = b.binary("ori", result, sign)
    result = _choose(b, b.compare("uno", x, x), filled(b, x, nan, "i32"), result)
    return b.cast("arith.trunci", result, f"i{width}")


def convert(b: Builder, x: Plain, element: str) -> Plain:
    """Any float to any float, rounded once to nearest even; f64 to a hand-made format goes through f32."""
    if x.element == element:
        return x
    if x.element == "f64":
        if element == "f32":
            return b.cast("arith.truncf", x, element)
        return narrow(b, _round_to_odd(b, x), element)
    wide = widen(b, x)
    return b.cast("arith.extf", wide, "f64") if element == "f64" else narrow(b, wide, element)


def _round_to_odd(b: Builder, x: Plain) -> Plain:
    """f64 to f32 so that a second rounding is right: towards zero, with the last bit set when inexact."""
    nearest = b.cast("arith.truncf", x, "f32")
    back = b.cast("arith.extf", nearest, "f64")
    bits = bits_of(b, nearest)
    # Magnitude grew by rounding: step back by one unit. Then mark what is inexact.
    grew = b.compare(
        "ogt", b.like(back, f"math.absf {back.name} : {back.type}"), b.like(x, f"math.absf {x.name} : {x.type}")
    )
    bits = _choose(b, grew, _op(b, "subi", bits, 1), bits)
    inexact = b.compare("one", back, x)
    bits = _choose(b, inexact, _op(b, "ori", bits, 1), bits)
    return b.cast("arith.bitcast", bits, "f32")


def truncate(b: Builder, x: Plain, element: str) -> Plain:
    """Any float to one of fewer bits, rounded towards zero: the nearest, moved by one where that is farther away."""
    nearest = convert(b, x, element)
    exact = widen(b, x)
    back = widen(b, nearest)
    if exact.element == "f64" and back.element == "f32":
        back = b.cast("arith.extf", back, "f64")
    magnitudes = [b.like(each, f"math.absf {each.name} : {each.type}") for each in (back, exact)]
    bits = _as(nearest, f"i{ELEMENT_BITS[element]}") if element in HAND else bits_of(b, nearest)
    nearer = _op(b, "subi", bits, 1)
    if element.endswith("FNUZ"):  # the least negative number's neighbour is the only zero
        nearer = _choose(b, b.compare("eq", nearer, filled(b, x, -128, "i8")), filled(b, x, 0, "i8"), nearer)
    bits = _choose(b, b.compare("ogt", *magnitudes), nearer, bits)
    return _as(bits, element) if element in HAND else b.cast("arith.bitcast", bits, element)
