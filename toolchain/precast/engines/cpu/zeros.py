"""How far along a dimension a masked operand of a product reaches. In: a lazy value. Out: a count of its indices.

What a mask turns off a load makes zero, if not told otherwise; from the count on a whole slice of the tensor is zero.
"""

from __future__ import annotations

from precast.engines.cpu import shapes
from precast.engines.cpu.builder import Builder
from precast.engines.cpu.conditions import find_conditions, find_split
from precast.engines.cpu.context import Context, Key
from precast.engines.cpu.ir import Dense, Value
from precast.engines.cpu.values import Cursor, Scalar

# Zero stays zero.
_KEPT = (*shapes.MOVES, "arith.extf", "arith.truncf", "tt.fp_to_fp", "arith.extsi", "arith.extui", "arith.trunci")


def find_reach(context: Context, value: Value, axis: int) -> Scalar | None:
    """The index along `axis` from which on `value` is zero, whatever its other indices; None where none is known."""
    b = context.b
    cursor = Cursor(tuple(Scalar(b.fresh(), "i64") for _ in value.type.shape), None, 1)
    name = cursor.index[axis].name
    needed = _find_needed(context, value, cursor)
    reach: Scalar | None = None
    for condition in find_conditions(context, cursor, [value]) if needed else ():
        if condition.depends == {name} and condition.key in needed:
            split = find_split(context, condition, name, value.type.shape[axis])
            if split and split.before:
                reach = split.last if reach is None else b.integer("minsi", reach, split.last)
    return reach


def furthest(b: Builder, first: Scalar | None, second: Scalar | None) -> Scalar | None:
    return b.integer("maxsi", first, second) if first and second else None


def _find_needed(context: Context, value: Value, cursor: Cursor) -> set[Key]:
    """What has to hold, and where, for the value at the cursor not to be zero."""
    while value not in context.places and value.definition is not None and value.definition.name in _KEPT:
        operand = value.definition.operands[0]
        value, cursor = operand, shapes.operand_cursor(context.b, value, operand, cursor)
    load = value.definition
    if load is None or value in context.places or load.name != "tt.load" or len(load.operands) < 2:
        return set()
    _, mask, *other = load.operands
    if other and not _is_zero(other[0]):
        return set()
    found: set[Key] = set()
    pending = [(mask, cursor)]
    while pending:
        key = pending.pop()
        operation = key[0].definition
        if key not in found and operation is not None and operation.name in ("arith.andi", *shapes.MOVES):
            pending += [(each, shapes.operand_cursor(context.b, key[0], each, key[1])) for each in operation.operands]
        found.add(key)
    return found


def _is_zero(value: Value) -> bool:
    operation = value.definition
    while operation is not None and operation.name in ("tt.splat", *shapes.MOVES):
        operation = operation.operands[0].definition
    if operation is None or operation.name != "arith.constant":
        return False
    constant = operation.attributes["value"]
    return all(each == 0 for each in constant.values) if isinstance(constant, Dense) else constant == 0
