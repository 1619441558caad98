"""Comparisons that cut loops: where they are met, and from which count on they change. In: lazy values. Out: splits.

A comparison of an index that steps by 1 with a uniform number is true up to a count and false beyond, or the reverse.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from precast.engines.cpu import shapes, strides
from precast.engines.cpu.arithmetic import MIRRORED
from precast.engines.cpu.context import Context, Key
from precast.engines.cpu.ir import Value
from precast.engines.cpu.values import Affine, Buffer, Cursor, Scalar

_NEGATED = {"sgt": "sle", "sge": "slt", "ugt": "ule", "uge": "ult"}
_INDEX_OPS = ("tt.make_range", "tt.splat", "arith.constant", "arith.addi", "arith.subi", "arith.muli", "arith.extsi",
              "arith.trunci", *shapes.MOVES)  # fmt: skip


@dataclass(frozen=True)
class Condition:
    """A comparison met in the nest at a cursor; `depends` are the names of the indices that it varies with."""

    value: Value
    cursor: Cursor
    depends: frozenset[str]

    @property
    def key(self) -> Key:
        return self.value, self.cursor


@dataclass(frozen=True)
class Split:
    """Where a condition changes along one dimension, and its value before that."""

    condition: Condition
    first: Scalar  # up to here it has not changed
    last: Scalar  # from here on it has
    before: bool


def find_conditions(context: Context, cursor: Cursor, roots: Sequence[Value]) -> list[Condition]:
    """Comparisons of integers in the lazy trees of `roots`, with the cursors at which they are met."""
    found: dict[Key, Condition] = {}
    seen: set[Key] = set()
    pending = [(root, cursor) for root in roots]
    while pending:
        value, place = pending.pop()
        operation = value.definition
        if not value.type.is_tensor or (value, place) in seen or value in context.places or operation is None:
            continue
        seen.add((value, place))
        if operation.name == "arith.cmpi" and all(is_index(context, each) for each in operation.operands):
            depends = frozenset().union(*(_depends(context, each, place) for each in operation.operands))
            found[(value, place)] = Condition(value, place, depends)
            continue
        for operand in operation.operands:
            pending.append((operand, shapes.operand_cursor(context.b, value, operand, place)))
    return list(found.values())


def is_index(context: Context, value: Value) -> bool:
    """Whether a value is cheap integer arithmetic on ranges and scalars."""
    if not value.type.is_tensor:
        return True
    operation = value.definition
    if value in context.places:
        return not isinstance(context.places[value], Buffer)
    return (
        operation is not None
        and operation.name in _INDEX_OPS
        and all(is_index(context, each) for each in operation.operands)
    )


def _depends(context: Context, value: Value, cursor: Cursor) -> frozenset[str]:
    """Names of the indices that an index value varies with."""
    operation = value.definition
    if not value.type.is_tensor:
        return frozenset()
    place = context.places.get(value)
    if place is not None:
        start = getattr(place, "start", None)
        return _depends(context, start, cursor) if start else frozenset()
    assert operation is not None
    if operation.name == "tt.make_range":
        return frozenset((cursor.index[0].name,))
    parts = [
        _depends(context, each, shapes.operand_cursor(context.b, value, each, cursor)) for each in operation.operands
    ]
    return frozenset().union(*parts)


def find_split(context: Context, condition: Condition, name: str, size: int) -> Split | None:
    """Where along the index `name` the condition changes: both operands are looked at with the index at 0."""
    b = context.b
    places = [axis for axis, index in enumerate(condition.cursor.index) if index.name == name]
    operation = condition.value.definition
    if len(places) != 1 or operation is None or size == 1:
        return None
    axis = places[0]
    index = (*condition.cursor.index[:axis], b.index(0), *condition.cursor.index[axis + 1 :])
    cursor = Cursor(index, axis, size)
    predicate = operation.attributes["predicate"]
    first, second = operation.operands
    if strides.stride_along(context, first, axis) == 0:
        first, second, predicate = second, first, MIRRORED.get(predicate, predicate)
    steps = [strides.stride_along(context, each, axis) for each in (first, second)]
    if steps != [1, 0] or predicate in ("eq", "ne"):
        return None
    x, y = context.evaluate(first, cursor), context.evaluate(second, cursor)
    if not isinstance(x, Affine) or not isinstance(y, Scalar):
        return None
    return _split_at(context, condition, predicate, x, y, size)


def _split_at(context: Context, condition: Condition, predicate: str, x: Affine, y: Scalar, size: int) -> Split | None:
    b = context.b
    before = predicate not in _NEGATED
    predicate = _NEGATED.get(predicate, predicate)
    count = b.clamp(context.arithmetic.prefix_count(predicate, x, y), size)
    if predicate[0] == "s":
        return Split(condition, count, count, before)
    if x.element == "i64":
        return None
    # Unsigned, and the index begins below zero: nothing is known of the whole loop.
    known = b.compare("sge", x.base, b.constant(0, x.element))
    first, last = b.select(known, count, b.index(0), 1), b.select(known, count, b.index(size), 1)
    assert isinstance(first, Scalar)
    assert isinstance(last, Scalar)
    return Split(condition, first, last, before)


def transfer(context: Context, conditions: Sequence[Condition], name: str, index: Scalar) -> None:
    """What is known of conditions at the index `name` of a tile holds for its other index `index` too."""
    for condition in conditions:
        form = context.known(condition.key)
        if isinstance(form, Scalar) and form.constant is not None:
            places = tuple(index if each.name == name else each for each in condition.cursor.index)
            context.remember(condition.value, Cursor(places, condition.cursor.lane, condition.cursor.width), form)
