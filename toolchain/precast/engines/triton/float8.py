"""Conversions of `fp8e4b15`, of which MLIR knows no type. In: a block of Triton's front end. Out: the converted one.

Triton writes them in assembly of a GPU; here they are ops on bits that any target has. A number's upper byte as fp16,
with one bit of its exponent less, is the 8-bit number: 4 bits of exponent with bias 15, no infinity, no NaN.
"""

from __future__ import annotations

from typing import Any

import triton.language as tl
from triton.language.core import PropagateNan

_LARGEST = 0x3F00  # 1.75 as fp16, which stands for all that is larger, and for NaN


def convert_e4b15(value: Any, type_: Any, rounding: Any = None, _semantic: Any = None) -> Any:
    """`value` with elements of `type_`, one of which is fp8e4b15; as on GPUs, `rounding` decides nothing."""
    if value.type.scalar.is_fp8e4b15():
        return _semantic.cast(_widen(value, _semantic), type_)
    return _narrow(_to_half(value, _semantic), _semantic)


def _widen(value: Any, semantic: Any) -> Any:
    bits = semantic.cast(semantic.bitcast(value, tl.uint8), tl.uint16)
    sign = bits.__and__(0x80, _semantic=semantic).__lshift__(8, _semantic=semantic)
    magnitude = bits.__and__(0x7F, _semantic=semantic).__lshift__(7, _semantic=semantic)
    return semantic.bitcast(sign.__or__(magnitude, _semantic=semantic), tl.float16)


def _to_half(value: Any, semantic: Any) -> Any:
    """As fp16, towards zero."""
    kind = value.type.scalar
    if kind.is_fp16() or kind.is_fp8():
        return semantic.cast(value, tl.float16)
    return semantic.cast(semantic.cast(value, tl.float32) if kind.is_bf16() else value, tl.float16, "rtz")


def _narrow(half: Any, semantic: Any) -> Any:
    """fp16 as fp8e4b15, to the nearest one."""
    bits = semantic.bitcast(half, tl.uint16)
    magnitude = bits.__and__(0x7FFF, _semantic=semantic)
    magnitude = semantic.minimum(magnitude, _LARGEST, PropagateNan.NONE)
    moved = magnitude.__lshift__(1, _semantic=semantic).__add__(0x80, _semantic=semantic)
    sign = bits.__and__(0x8000, _semantic=semantic)
    upper = sign.__or__(moved, _semantic=semantic).__rshift__(8, _semantic=semantic)
    return semantic.bitcast(semantic.cast(upper, tl.uint8), tl.float8e4b15)
