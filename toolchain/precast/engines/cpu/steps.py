"""Carried tensors that advance alike everywhere. In: a loop's argument and what it yields. Out: uniform amounts.

Such a tensor is its start and one scalar, whatever its shape.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from precast.engines.cpu.ir import Value
from precast.engines.cpu.values import Cursor, Scalar

if TYPE_CHECKING:
    from precast.engines.cpu.context import Context

_UNIFORM = ("tt.splat", "arith.constant", "arith.addi", "arith.subi", "arith.muli", "arith.extsi", "arith.extui",
            "arith.trunci", "tt.broadcast", "tt.expand_dims")  # fmt: skip


def find_steps(argument: Value, yielded: Value) -> tuple[Value, ...] | None:
    """The uniform amounts that are added to a carried tensor each time round, None when it is not so.

    A float never is; any tensor may be handed on as it is.
    """
    steps: list[Value] = []
    if yielded is not argument and (argument.type.is_float or argument.type.element == "i1"):
        return None
    while yielded is not argument:
        operation = yielded.definition
        if (
            operation is None
            or operation.name not in ("tt.addptr", "arith.addi")
            or not _is_uniform(operation.operands[1])
        ):
            return None
        steps.append(operation.operands[1])
        yielded = operation.operands[0]
    return tuple(steps)


def _is_uniform(value: Value) -> bool:
    """Whether all elements are computed alike from scalars."""
    seen: set[Value] = set()
    pending = [value]
    while pending:
        each = pending.pop()
        operation = each.definition
        if each in seen or not each.type.is_tensor:
            continue
        seen.add(each)
        if operation is None or operation.name not in _UNIFORM:
            return False
        if operation.name == "arith.constant" and not operation.attributes["value"].splat:
            return False
        pending += operation.operands
    return True


def uniform_scalar(context: Context, value: Value) -> Scalar:
    """The scalar that all elements of a uniform value are."""
    if not value.type.is_tensor:
        return context.scalar(value)
    zero = context.b.index(0)
    form = context.evaluate(value, Cursor(tuple(zero for _ in value.type.shape), None, 1))
    assert isinstance(form, Scalar)
    return form


def no_distance(context: Context, argument: Value) -> Scalar:
    """The distance with which a carried tensor begins."""
    return context.b.constant(0, "i64" if argument.type.is_pointer else argument.type.element)


def advanced(context: Context, distance: Scalar, steps: tuple[Value, ...]) -> Scalar:
    """The distance one time round later."""
    b = context.b
    for step in steps:
        amount = b.resize(uniform_scalar(context, step), distance.element)
        assert isinstance(amount, Scalar)
        distance = b.integer("addi", distance, amount)
    return distance
