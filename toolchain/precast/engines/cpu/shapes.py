"""Where an op's operand is read when its result is read at a place. In: an op and a cursor. Out: the operand's cursor.

Pure: no text is written. Evaluation and the analyses walk the lazy expression trees with the same function.
"""

from __future__ import annotations

from dataclasses import replace

from precast.engines.cpu.builder import Builder
from precast.engines.cpu.ir import Op, Value
from precast.engines.cpu.values import Cursor, Scalar

# Ops that only rearrange: one operand, read elsewhere.
MOVES = ("tt.expand_dims", "tt.broadcast", "tt.trans", "tt.reshape", "tt.split")


def squeezed(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(size for size in shape if size != 1)


def is_view(operation: Op) -> bool:
    """Whether a reshape only adds or drops dimensions of size 1, so that it is lazy."""
    return squeezed(operation.operands[0].type.shape) == squeezed(operation.result.type.shape)


def operand_cursor(builder: Builder, result: Value, operand: Value, cursor: Cursor) -> Cursor:
    """The place in `operand` that `result` at `cursor` reads."""
    operation = result.definition
    assert operation is not None
    if operation.name == "tt.expand_dims":
        return cursor.without(operation.attributes["axis"])
    if operation.name == "tt.broadcast":
        return _broadcast_cursor(builder, operand, cursor)
    if operation.name == "tt.trans":
        return _transposed(operation.attributes["order"], cursor)
    if operation.name == "tt.reshape":
        return _reshaped(builder, operation, cursor)
    if operation.name == "tt.addptr" and operand is operation.operands[1]:
        return cursor.addressing(True)
    if operation.name == "tt.split":  # the halves of the last dimension, which has size 2
        return replace(cursor, index=(*cursor.index, builder.index(result.index)))
    return cursor


def _broadcast_cursor(builder: Builder, operand: Value, cursor: Cursor) -> Cursor:
    for axis, size in enumerate(operand.type.shape):
        if size == 1:
            cursor = cursor.at(axis, builder.index(0))
    return cursor


def _transposed(order: tuple[int, ...], cursor: Cursor) -> Cursor:
    """Result dimension i is operand dimension order[i]."""
    index: list[Scalar] = [cursor.index[0]] * len(order)
    lane = None
    for position, source in enumerate(order):
        index[source] = cursor.index[position]
        if position == cursor.lane:
            lane = source
    return replace(cursor, index=tuple(index), lane=lane)


def _reshaped(builder: Builder, operation: Op, cursor: Cursor) -> Cursor:
    """Between shapes that are equal without their dimensions of size 1."""
    kept = [axis for axis, size in enumerate(operation.result.type.shape) if size != 1]
    index = []
    lane = None
    for axis, size in enumerate(operation.operands[0].type.shape):
        if size == 1:
            index.append(builder.index(0))
            continue
        source = kept.pop(0)
        index.append(cursor.index[source])
        if source == cursor.lane:
            lane = axis
    return Cursor(tuple(index), lane, cursor.width if lane is not None else 1, cursor.address)


def is_turned(value: Value) -> bool:
    """Whether a matrix is the transpose of another one."""
    made = value.definition
    return made is not None and made.name == "tt.trans" and tuple(made.attributes["order"]) == (1, 0)


def operand_axis(operation: Op, axis: int) -> int | None:
    """The operand's dimension that a moving op's result dimension `axis` reads; None where it reads none."""
    if operation.name == "tt.expand_dims":
        added = int(operation.attributes["axis"])
        return None if axis == added else axis - (axis > added)
    if operation.name == "tt.trans":
        return int(operation.attributes["order"][axis])
    if operation.name == "tt.reshape":
        if operation.result.type.shape[axis] == 1:
            return None
        before = sum(size != 1 for size in operation.result.type.shape[:axis])
        return [i for i, size in enumerate(operation.operands[0].type.shape) if size != 1][before]
    return axis
