"""Calls of the C library, one lane at a time. In: plain forms. Out: a plain form. Where no polynomial of our own is."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from precast.engines.cpu.builder import Builder
from precast.engines.cpu.values import Plain, Scalar, Vector, register_type


def call_library(b: Builder, name: str, operands: Sequence[Plain]) -> Plain:
    """Calls the C library's function on each lane."""
    element = operands[0].element
    symbol = name + ("f" if element == "f32" else "")
    parameters = ", ".join([register_type(element)] * len(operands))
    b.declare(symbol, f"({parameters}) -> {register_type(element)}")

    def call(arguments: Sequence[Scalar]) -> Scalar:
        names = ", ".join(each.name for each in arguments)
        return b.scalar(f"func.call @{symbol}({names}) : ({parameters}) -> {register_type(element)}", element)

    return each_lane(b, operands, element, call)


def each_lane(b: Builder, operands: Sequence[Plain], element: str, call: Callable[[Sequence[Scalar]], Scalar]) -> Plain:
    """Applies a scalar function to scalars, or in a small loop to each lane of vectors."""
    scalars = [each for each in operands if isinstance(each, Scalar)]
    if len(scalars) == len(operands):
        return call(scalars)
    vectors = [each for each in operands if isinstance(each, Vector)]
    width = vectors[0].width
    start = b.zero(element, width)

    def body(index: Scalar, carried: list[Plain]) -> list[Plain]:
        lane = b.emit(f"arith.index_cast {index.name} : i64 to index")
        taken = [
            b.scalar(f"vector.extract {v.name}[{lane}] : {register_type(v.element)} from {v.type}", v.element)
            for v in vectors
        ]
        item = call(taken)
        into = carried[0]
        return [b.like(into, f"vector.insert {item.name}, {into.name} [{lane}] : {item.type} into {into.type}")]

    return b.loop(b.index(0), b.index(width), 1, [start], body)[0]
