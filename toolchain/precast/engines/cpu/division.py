"""Integer division that cannot trap, and saturating conversions. In: plain forms. Out: plain forms.

A masked-off lane may hold a zero divisor, and x86 raises SIGFPE for it: every divisor that is not a constant is
guarded. The quotient by zero is unspecified but the same on every run.
"""

from __future__ import annotations

from precast.engines.cpu import floats
from precast.engines.cpu.builder import Builder
from precast.engines.cpu.ir import ELEMENT_BITS
from precast.engines.cpu.values import Plain, Scalar, Vector


def divide(b: Builder, name: str, x: Plain, y: Plain) -> Plain:
    """`divsi`, `divui`, `remsi`, `remui`, `floordivsi` or `ceildivsi`."""
    signed = name.endswith("si")
    if name[:3] == "flo" or name[:4] == "ceil":
        return _rounded(b, name, x, y)
    if isinstance(y, Scalar) and y.constant is not None and y.constant not in (0, -1):
        return b.binary(name, x, y)
    if isinstance(x, Vector) and ELEMENT_BITS[x.element] <= 32:
        quotient = _through_f64(b, x, y, signed)
    else:
        return _guarded(b, name, x, y, signed)
    if name.startswith("div"):
        return quotient
    return b.binary("subi", x, b.binary("muli", quotient, y))


def _through_f64(b: Builder, x: Plain, y: Plain, signed: bool) -> Plain:
    """The quotient of integers of at most 32 bits: f64 has bits enough that truncating its quotient is exact."""
    kind = "arith.sitofp" if signed else "arith.uitofp"
    quotient = b.binary("divf", b.cast(kind, x, "f64"), b.cast(kind, y, "f64"))
    if signed:
        whole = saturate(b, quotient, "i32", "fptosi")
        if ELEMENT_BITS[x.element] == 32:  # the smallest number by -1 wraps to itself
            past = b.compare("oeq", quotient, floats.filled(b, quotient, 2.0**31, "f64"))
            width = x.width if isinstance(x, Vector) else 1
            whole = b.plain(b.select(past, floats.filled(b, whole, -(2**31), "i32"), whole, width), width)
        return b.resize(whole, x.element)
    wide = (
        saturate(b, quotient, "i64", "fptosi")
        if ELEMENT_BITS[x.element] == 32
        else saturate(b, quotient, "i32", "fptosi")
    )
    return b.resize(wide, x.element)


def _guarded(b: Builder, name: str, x: Plain, y: Plain, signed: bool) -> Plain:
    """Zero divisors become one; so does -1 in signed division, whose quotient is then negated: no overflow trap."""
    width = x.width if isinstance(x, Vector) else 1
    one = floats.filled(b, y, 1, y.element)
    bad = b.compare("eq", y, floats.filled(b, y, 0, y.element))
    if not signed:
        return b.binary(name, x, b.plain(b.select(bad, one, y, width), width))
    minus = b.compare("eq", y, floats.filled(b, y, -1, y.element))
    safe = b.plain(b.select(b.binary("ori", bad, minus), one, y, width), width)
    result = b.binary(name, x, safe)
    if name == "remsi":
        return result
    return b.plain(b.select(minus, b.binary("subi", floats.filled(b, x, 0, x.element), x), result, width), width)


def _rounded(b: Builder, name: str, x: Plain, y: Plain) -> Plain:
    """Floor and ceiling from the truncated quotient."""
    quotient = divide(b, "divsi", x, y)
    remainder = b.binary("subi", x, b.binary("muli", quotient, y))
    zero = floats.filled(b, x, 0, x.element)
    inexact = b.compare("ne", remainder, zero)
    negative = b.compare("slt", b.binary("xori", x, y), zero)
    if name == "ceildivsi":
        negative = b.binary("xori", negative, floats.filled(b, negative, 1, "i1"))
    step = b.cast("arith.extui", b.binary("andi", inexact, negative), x.element)
    return b.binary("addi" if name == "ceildivsi" else "subi", quotient, step)


def saturate(b: Builder, x: Plain, element: str, kind: str) -> Plain:
    """A float converted to an integer, clamped to its range; NaN gives 0. `kind` is `fptosi` or `fptoui`."""
    source = "f16" if x.element == "f16" else x.element
    if isinstance(x, Vector):
        names = f"v{x.width}{element}.v{x.width}{source}"
        target = f"vector<{x.width}x{element}>"
    else:
        names, target = f"{element}.{source}", element
    return b.like(x, f'llvm.call_intrinsic "llvm.{kind}.sat.{names}"({x.name}) : ({x.type}) -> {target}', element)
