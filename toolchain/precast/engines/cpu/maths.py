"""Mathematical functions. In: an op and plain forms (scalars or vectors). Out: a plain form.

f32 functions are polynomials of our own (coefficients: minimax fits made for this engine); their errors are tested.
f64 and rarely used functions call the C library once per lane. Smaller floats are widened, computed and rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from precast.engines.cpu import floats
from precast.engines.cpu.builder import Builder
from precast.engines.cpu.errors import refuse
from precast.engines.cpu.ir import Op
from precast.engines.cpu.libdevice import lower_symbol
from precast.engines.cpu.library import call_library
from precast.engines.cpu.machine import Machine
from precast.engines.cpu.polynomials import Polynomials
from precast.engines.cpu.values import Plain

NAMED = ("tt.precise_sqrt", "tt.extern_elementwise")
# MLIR's `math` op for a function, where x86 computes it exactly rounded in a few instructions.
_DIRECT = {
    "absf": "absf", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "roundeven": "roundeven", "round": "round",
    "sqrt": "sqrt", "copysign": "copysign", "fma": "fma", "ctpop": "ctpop", "ctlz": "ctlz", "cttz": "cttz",
    "absi": "absi",
}  # fmt: skip
_OWN: dict[str, Callable[[Polynomials, Plain], Plain]] = {
    "exp": Polynomials.exp, "exp2": Polynomials.exp2, "log": Polynomials.log, "log2": Polynomials.log2,
    "tanh": Polynomials.tanh, "erf": Polynomials.erf, "sin": Polynomials.sin, "cos": Polynomials.cos,
    "rsqrt": Polynomials.rsqrt,
}  # fmt: skip
# What the C library has, with the number of operands; the f32 form has an `f` at the end.
_LIBRARY = {
    **dict.fromkeys(
        ("exp", "exp2", "exp10", "expm1", "log", "log2", "log10", "log1p", "logb", "sin", "cos", "tan", "asin",
         "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "cbrt", "lgamma", "tgamma",
         "j0", "j1", "y0", "y1", "rint", "nearbyint"), 1),
    **dict.fromkeys(("pow", "atan2", "fmod", "hypot", "remainder", "nextafter", "fdim"), 2),
}  # fmt: skip
_MLIR_NAMES = {"powf": "pow", "log1p": "log1p", "absf": "absf"}
# libdevice's names that differ from the C library's.
_LIBDEVICE = {
    "fabs": "absf", "rint": "roundeven", "nearbyint": "roundeven", "fast_exp": "exp", "fast_log": "log",
    "fast_log2": "log2", "fast_sin": "sin", "fast_cos": "cos", "fast_tanh": "tanh", "fast_pow": "pow",
    "fsqrt_rn": "sqrt", "frsqrt_rn": "rsqrt", "sqrt_rn": "sqrt", "dsqrt_rn": "sqrt", "abs": "absi", "llabs": "absi",
    "popc": "ctpop", "popcll": "ctpop", "clz": "ctlz", "clzll": "ctlz",
    "fmaf_rn": "fma", "fma_rn": "fma", "isnand": "isnan",
    "isinfd": "isinf", "isfinited": "isfinite", "signbitd": "signbit",
}  # fmt: skip


def lower(b: Builder, machine: Machine, operation: Op, operands: Sequence[Plain], width: int) -> Plain:
    """The value of a `math` op, `tt.precise_sqrt` or `tt.extern_elementwise`."""
    name = function_name(operation)
    element = operation.result.type.element
    if name in ("isnan", "isinf", "isfinite", "finite", "signbit"):
        return _as_element(b, _classify(b, name, operands[0]), element)
    if name in ("fmax", "fmin"):
        return _direct_binary(b, "maxnumf" if name == "fmax" else "minnumf", operands)
    result = _lower_libdevice(b, machine, operation, operands)
    if result is None:
        result = _compute(b, machine, name, operands)
    if result is None:
        known = ", ".join(sorted({*_OWN, *_DIRECT, *_LIBRARY}))
        raise refuse(operation, f"there is no function `{name}`", f"known functions: {known}")
    return result if operation.result.type.is_float else b.resize(result, element, signed=False)


def _lower_libdevice(b: Builder, machine: Machine, operation: Op, operands: Sequence[Plain]) -> Plain | None:
    symbol = str(operation.attributes.get("symbol", ""))
    if operation.name != "tt.extern_elementwise" or not symbol.startswith("__nv_"):
        return None
    return lower_symbol(b, machine, symbol.removeprefix("__nv_"), operands, operation.result.type.element)


def function_name(operation: Op) -> str:
    """The plain name of the function an op computes: `tanh` for `math.tanh` and for `__nv_tanhf`."""
    if operation.name == "tt.precise_sqrt":
        return "sqrt"
    if operation.name != "tt.extern_elementwise":
        name = operation.name.removeprefix("math.")
        return _MLIR_NAMES.get(name, name)
    symbol = str(operation.attributes.get("symbol", "")).removeprefix("__nv_")
    bare = symbol[:-1] if symbol.endswith("f") and symbol != "erf" and _is_known(symbol[:-1]) else symbol
    return _LIBDEVICE.get(bare, bare)


def _is_known(name: str) -> bool:
    return (
        name in _LIBDEVICE
        or name in _OWN
        or name in _DIRECT
        or name in _LIBRARY
        or name.startswith(("is", "sign", "finite"))
    )


def _compute(b: Builder, machine: Machine, name: str, operands: Sequence[Plain]) -> Plain | None:
    element = operands[0].element
    if element in floats.HAND or element == "f16":
        wide = [floats.widen(b, each) for each in operands]
        result = _compute(b, machine, name, wide)
        return result and floats.narrow(b, result, element)
    if name == "fma" and not machine.fused:
        return call_library(b, "fma", operands)
    if name in _DIRECT:
        return _direct(b, name, operands)
    if element == "f32" and name in _OWN:
        return _OWN[name](Polynomials(b, machine), operands[0])
    if name == "rsqrt":
        one = floats.filled(b, operands[0], 1.0, element)
        return b.binary("divf", one, _direct(b, "sqrt", operands))
    return call_library(b, name, operands) if _LIBRARY.get(name) == len(operands) else None


def _direct(b: Builder, name: str, operands: Sequence[Plain]) -> Plain:
    x = operands[0]
    names = ", ".join(each.name for each in operands)
    return b.like(x, f"math.{_DIRECT[name]} {names} : {x.type}")


def _direct_binary(b: Builder, mnemonic: str, operands: Sequence[Plain]) -> Plain:
    return b.binary(mnemonic, operands[0], operands[1])


def _classify(b: Builder, name: str, x: Plain) -> Plain:
    wide = floats.widen(b, x)
    if name == "isnan":
        return b.compare("uno", wide, wide)
    if name == "signbit":
        bits = floats.bits_of(b, wide)
        return b.compare("slt", bits, floats.filled(b, bits, 0, bits.element))
    magnitude = _direct(b, "absf", [wide])
    infinity = floats.filled(b, wide, float("inf"), wide.element)
    return b.compare("oeq" if name == "isinf" else "olt", magnitude, infinity)


def _as_element(b: Builder, mask: Plain, element: str) -> Plain:
    return mask if element == "i1" else b.resize(mask, element, signed=False)


def remainder(b: Builder, operands: Sequence[Plain]) -> Plain:
    """`fmod`: the sign of the dividend."""
    element = operands[0].element
    if element in ("f32", "f64"):
        return call_library(b, "fmod", operands)
    wide = [floats.widen(b, each) for each in operands]
    return floats.narrow(b, call_library(b, "fmod", wide), element)
