"""Loops that each element runs through for itself. In: a function's IR. Out: the same, with such loops marked.

A loop that carries tensors of one shape, computes element by element and only loads is evaluated where its results are
used: what it carries stays in registers, chunk after chunk, instead of going through a buffer in every round.
"""

from __future__ import annotations

from precast.engines.cpu import kinds
from precast.engines.cpu.ir import Function, Op, Value
from precast.engines.cpu.shapes import MOVES


def mark_loops(function: Function) -> None:
    """Gives each such loop the tensors that it takes from outside, and its loads, as attributes."""
    for operation in function.operation.walk():
        if operation.name == "scf.for" and _runs_by_element(operation):
            body = operation.body
            inside = {result for inner in body.operations for result in inner.results} | set(body.arguments)
            taken = dict.fromkeys(each for inner in body.operations for each in inner.operands if each not in inside)
            operation.attributes = {
                **operation.attributes,
                kinds.TAKEN: tuple(each for each in taken if each.type.is_tensor),
                kinds.LOADS: tuple(inner for inner in body.operations if inner.name == "tt.load"),
            }


def _runs_by_element(loop: Op) -> bool:
    carried = loop.body.arguments[1:]
    shapes = {each.type.shape for each in carried}
    if len(shapes) != 1 or shapes == {()} or loop.attributes.get("unsigned"):
        return False
    varying: set[Value] = set(carried)  # computed of what is carried or loaded
    for operation in loop.body.operations[:-1]:
        if not _is_simple(operation):
            return False
        varies = operation.name == "tt.load" or any(each in varying for each in operation.operands)
        if varies and operation.name in MOVES:  # each element would compute the others' anew, or read their places
            return False
        if varies:
            varying.update(operation.results)
    return True


def _is_simple(operation: Op) -> bool:
    """Whether an op computes a tensor element by element, or a scalar of scalars."""
    if operation.regions or len(operation.results) != 1:
        return False
    if operation.result.type.is_tensor:
        return kinds.is_lazy(operation)
    return operation.name.startswith(("arith.", "math."))
