"""How addresses step along a dimension. In: lazy values. Out: strides known at compile time.

This decides along which dimension lanes run, and where a tile is turned in registers.
"""

from __future__ import annotations

from precast.engines.cpu import kinds, shapes
from precast.engines.cpu.context import Context
from precast.engines.cpu.ir import ELEMENT_BITS, Op, Value
from precast.engines.cpu.values import Buffer


def stride_along(context: Context, value: Value, axis: int) -> int | None:
    """How a pointer or integer value steps along a dimension, when that is known at compile time."""
    operation = value.definition
    if not value.type.is_tensor or value.type.shape[axis] == 1:
        return 0
    place = context.places.get(value)
    if isinstance(place, Buffer) or (operation is None and place is None):
        return None
    if place is not None:
        start = getattr(place, "start", None)
        return stride_along(context, start, axis) if start else 0
    assert operation is not None
    return _stride_of(context, operation, axis)


def _stride_of(context: Context, operation: Op, axis: int) -> int | None:
    operands = operation.operands
    if operation.name == "tt.make_range":
        return 1
    if operation.name in ("tt.splat", "arith.constant"):
        return 0
    if operation.name in shapes.MOVES:
        source = shapes.operand_axis(operation, axis)
        return 0 if source is None else stride_along(context, operands[0], source)
    wide = ELEMENT_BITS[operation.result.type.element] >= 32
    if operation.name in ("arith.extsi", "tt.bitcast") or (operation.name == "arith.trunci" and wide):
        return stride_along(context, operands[0], axis)
    if operation.name == "arith.muli":
        return _product_stride(context, operation, axis)
    if operation.name in ("tt.addptr", "arith.addi", "arith.subi"):
        first, second = (stride_along(context, each, axis) for each in operands)
        if first is None or second is None:
            return None
        return first - second if operation.name == "arith.subi" else first + second
    strides = [stride_along(context, each, axis) for each in operands]
    return 0 if operation.name.startswith("arith.") and all(each == 0 for each in strides) else None


def _product_stride(context: Context, operation: Op, axis: int) -> int | None:
    first, second = (stride_along(context, each, axis) for each in operation.operands)
    if first == 0 and second == 0:
        return 0
    for stride, other in ((first, operation.operands[1]), (second, operation.operands[0])):
        factor = kinds.known_constant(other)
        if stride is not None and factor is not None:
            return stride * factor
    return None


def is_smooth(context: Context, value: Value, axis: int) -> bool:
    """Whether everything that is read to evaluate `value` along `axis` is contiguous or uniform."""
    if not value.type.is_tensor or value.type.shape[axis] == 1:
        return True
    operation, place = value.definition, context.places.get(value)
    if isinstance(place, Buffer):
        return place.strides[axis] == 1
    if operation is None or place is not None or operation.name in ("tt.make_range", "tt.splat", "arith.constant"):
        return True
    if operation.name == "tt.load":
        return stride_along(context, operation.operands[0], axis) in (0, 1)
    if operation.name in shapes.MOVES:
        source = shapes.operand_axis(operation, axis)
        return source is None or is_smooth(context, operation.operands[0], source)
    return all(is_smooth(context, each, axis) for each in operation.operands)
