"""Factors of products that are read where a kernel loads them from, unpacked. In: lazy values. Out: base and stride.

Such are rows of neighbours, as far apart as the kernel says, of which no mask turns off what a product reads.
"""

from __future__ import annotations

from dataclasses import dataclass

from precast.engines.cpu import kinds, shapes
from precast.engines.cpu.conditions import find_conditions, find_split
from precast.engines.cpu.context import Context, Key
from precast.engines.cpu.ir import Value
from precast.engines.cpu.strides import Strides
from precast.engines.cpu.values import Affine, Cursor, Scalar


@dataclass(frozen=True)
class Source:
    """Where a matrix lies: its first element, the elements from a row to the next, and whether it may be read there."""

    base: Scalar
    stride: Scalar
    allowed: Scalar  # an i1


def find_source(context: Context, value: Value, element: str, extents: tuple[Scalar, Scalar]) -> Source | None:
    """The source of a matrix of the element, of which the first `extents` rows and columns are read."""
    load = value.definition
    fits = len(value.type.shape) == 2 and value.type.shape[0] > 1 and value.type.element == element
    if not fits or load is None or load.name != "tt.load" or value in context.places or kinds.is_volatile(load):
        return None
    pointer = load.operands[0]
    if Strides(context).along(pointer, 1) != 1:
        return None
    b = context.b
    allowed = _is_whole(context, load.operands[1], extents) if len(load.operands) > 1 else b.constant(1, "i1")
    if allowed is None:
        return None
    first = context.evaluate(pointer, Cursor((b.index(0), b.index(0)), 0, value.type.shape[0], address=True))
    if not isinstance(first, Affine) or first.pointee != element:
        return None
    return Source(first.base, first.stride, allowed)


def _is_whole(context: Context, mask: Value, extents: tuple[Scalar, Scalar]) -> Scalar | None:
    """Whether a mask is set all over the extents; None where that cannot be told from where its comparisons change."""
    b = context.b
    cursor = Cursor(tuple(Scalar(b.fresh(), "i64") for _ in mask.type.shape), None, 1)
    names = [each.name for each in cursor.index]
    found = {each.key: each for each in find_conditions(context, cursor, [mask])}
    whole = b.constant(1, "i1")
    for key in _find_parts(context, mask, cursor):
        condition = found.get(key)
        if condition is None or len(condition.depends) != 1:
            return None
        axis = names.index(next(iter(condition.depends)))
        split = find_split(context, condition, names[axis], mask.type.shape[axis])
        if split is None or not split.before:
            return None
        reached = b.compare("sge", split.first, extents[axis])
        whole = b.integer("andi", whole, reached) if isinstance(reached, Scalar) else whole
    return whole


def _find_parts(context: Context, mask: Value, cursor: Cursor) -> list[Key]:
    """What has to hold, and where, for the mask to be set at the cursor."""
    parts: list[Key] = []
    pending = [(mask, cursor)]
    while pending:
        value, place = pending.pop()
        made = value.definition
        if value not in context.places and made is not None and made.name in ("arith.andi", *shapes.MOVES):
            pending += [(each, shapes.operand_cursor(context.b, value, each, place)) for each in made.operands]
        else:
            parts.append((value, place))
    return parts
