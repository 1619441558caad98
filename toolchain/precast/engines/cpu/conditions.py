"""Comparisons that cut loops: where they are met, and from which count on they change. In: lazy values. Out: splits.

A comparison of an index that steps by 1 with a uniform number is true up to a count and false beyond, or the reverse.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from precast.engines.cpu import shapes
from precast.engines.cpu.arithmetic import MIRRORED
from precast.engines.cpu.builder import Builder
from precast.engines.cpu.ir import Op, Value
from precast.engines.cpu.ordering import needed_first
from precast.engines.cpu.strides import Strides
from precast.engines.cpu.values import Affine, Buffer, Cursor, Plain, Scalar, integer_bounds

if TYPE_CHECKING:
    from precast.engines.cpu.context import Context, Key

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
    return _Search(context).run(cursor, roots)


class _Search:
    """One walk through the lazy trees of a nest's roots; what is found of a value is kept."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.is_index: dict[Value, bool] = {}
        self.depends: dict[Key, frozenset[str]] = {}

    def run(self, cursor: Cursor, roots: Sequence[Value]) -> list[Condition]:
        context = self.context
        found: list[Condition] = []
        seen: set[Key] = set()
        pending = [(root, cursor) for root in roots]
        while pending:
            value, place = pending.pop()
            operation = value.definition
            if not value.type.is_tensor or (value, place) in seen or value in context.places or operation is None:
                continue
            seen.add((value, place))
            if _is_ordering(operation) and self._compares_indices(operation):
                found.append(Condition(value, place, self._depends_of(operation, value, place)))
                continue
            for operand in operation.operands:
                inner = shapes.operand_cursor(context.b, value, operand, place)
                pending.append((operand, inner.addressing(False)))
        return found

    def _compares_indices(self, operation: Op) -> bool:
        """Whether all operands are cheap integer arithmetic on ranges and scalars."""
        for value in needed_first(operation.operands, self._index_needs, self.is_index):
            made = value.definition
            if not value.type.is_tensor:
                self.is_index[value] = True
            elif value in self.context.places:
                self.is_index[value] = not isinstance(self.context.places[value], Buffer)
            else:
                known = made is not None and made.name in _INDEX_OPS
                self.is_index[value] = known and all(self.is_index[each] for each in self._index_needs(value))
        return all(self.is_index[each] for each in operation.operands)

    def _index_needs(self, value: Value) -> list[Value]:
        operation = value.definition
        if value in self.context.places or operation is None or operation.name not in _INDEX_OPS:
            return []
        return operation.operands if value.type.is_tensor else []

    def _depends_of(self, operation: Op, value: Value, cursor: Cursor) -> frozenset[str]:
        """Names of the indices that a comparison varies with."""
        keys = [(each, shapes.operand_cursor(self.context.b, value, each, cursor)) for each in operation.operands]
        for key in needed_first(keys, self._depends_needs, self.depends):
            each, place = key
            names = [self.depends[inner] for inner in self._depends_needs(key)]
            made = each.definition
            if made is not None and made.name == "tt.make_range" and each not in self.context.places:
                names.append(frozenset((place.index[0].name,)))
            self.depends[key] = frozenset().union(*names)
        return frozenset().union(*(self.depends[key] for key in keys))

    def _depends_needs(self, key: Key) -> list[Key]:
        value, cursor = key
        place, operation = self.context.places.get(value), value.definition
        if not value.type.is_tensor:
            return []
        if place is not None:
            start = getattr(place, "start", None)
            return [(start, cursor)] if start else []
        assert operation is not None
        return [(each, shapes.operand_cursor(self.context.b, value, each, cursor)) for each in operation.operands]


def _is_ordering(operation: Op) -> bool:
    return operation.name == "arith.cmpi" and operation.attributes["predicate"] not in ("eq", "ne")


def find_split(context: Context, condition: Condition, name: str, size: int) -> Split | None:
    """Where along the index `name` the condition changes: both operands are looked at with the index at 0."""
    b = context.b
    places = [axis for axis, index in enumerate(condition.cursor.index) if index.name == name]
    if len(places) != 1 or size == 1:
        return None
    axis = places[0]
    if condition.cursor.lane not in (None, axis) and _varies_by_lane(context, condition):
        return None  # each lane changes elsewhere
    index = (*condition.cursor.index[:axis], b.index(0), *condition.cursor.index[axis + 1 :])
    return _split_along(context, condition, Cursor(index, axis, size, address=True))


def _varies_by_lane(context: Context, condition: Condition) -> bool:
    operation, lane = condition.value.definition, condition.cursor.lane
    assert operation is not None
    assert lane is not None
    strides = Strides(context)
    return any(strides.along(each, lane) != 0 for each in operation.operands)


def find_test_of_lanes(context: Context, condition: Condition, value: bool) -> Plain | None:
    """Whether a condition that is true up to a count has `value` in all lanes of its cursor; None: it is another."""
    if condition.cursor.lane is None:
        return None
    found = _compared(context, condition, condition.cursor.addressing(True))
    if found is None or found[0] in _NEGATED:
        return None
    predicate, x, y = found
    b, size = context.b, condition.cursor.width
    count = context.arithmetic.prefix_count(predicate, x, y)
    # An index that wraps in these lanes is not so far below the number; one of which it was widened may be.
    known = [_stays_in_range(b, each, size) for each in (x.assumes if value else (*x.assumes, x))]
    if predicate[0] == "u":
        known.append(b.compare("sge", x.base, b.constant(0, x.element)))
    bound = b.compare("sge", count, b.index(size)) if value else b.compare("sle", count, b.index(0))
    return _and(b, [bound, *known])


def _split_along(context: Context, condition: Condition, cursor: Cursor) -> Split | None:
    found = _compared(context, condition, cursor)
    return _split_at(context, condition, *found, cursor.width) if found else None


def _compared(context: Context, condition: Condition, cursor: Cursor) -> tuple[str, Affine, Scalar] | None:
    """A condition as a predicate of an index that steps by 1 along the cursor's lanes, and a uniform number."""
    operation, axis = condition.value.definition, cursor.lane
    assert operation is not None
    assert axis is not None
    predicate = operation.attributes["predicate"]
    first, second = operation.operands
    strides = Strides(context)
    if strides.along(first, axis) == 0:
        first, second, predicate = second, first, MIRRORED.get(predicate, predicate)
    steps = [strides.along(each, axis) for each in (first, second)]
    if steps != [1, 0]:
        return None
    x, y = context.evaluate(first, cursor), context.evaluate(second, cursor)
    positive = _NEGATED.get(predicate, predicate)
    if not isinstance(x, Affine) or not isinstance(y, Scalar) or (positive[0] == "u" and x.element == "i64"):
        return None
    return predicate, x, y


def _split_at(context: Context, condition: Condition, predicate: str, x: Affine, y: Scalar, size: int) -> Split:
    b = context.b
    before = predicate not in _NEGATED
    predicate = _NEGATED.get(predicate, predicate)
    count = b.clamp(context.arithmetic.prefix_count(predicate, x, y), size)
    # Where an index wraps, or one that is taken as unsigned begins below zero, nothing is known of the whole loop.
    known = _and(b, [_stays_in_range(b, each, size) for each in (*x.assumes, x)])
    if predicate[0] == "u":
        known = _and(b, [known, b.compare("sge", x.base, b.constant(0, x.element))])
    first, last = b.select(known, count, b.index(0), 1), b.select(known, count, b.index(size), 1)
    assert isinstance(first, Scalar)
    assert isinstance(last, Scalar)
    return Split(condition, first, last, before)


def _stays_in_range(b: Builder, index: Affine, size: int) -> Plain:
    """Whether an index does not wrap in its first `size` lanes."""
    low, high = integer_bounds(index.element, signed=True)
    if index.element == "i64":
        step = index.stride.constant
        if step is None or abs(step) * size >= 1 << 62:
            return b.constant(0, "i1")
        reach = int(step) * (size - 1)
        limit = b.constant(high - reach if reach >= 0 else low - reach, "i64")
        return b.compare("sle" if reach >= 0 else "sge", index.base, limit)
    last = b.integer("addi", b.wide(index.base), b.integer("muli", b.wide(index.stride), size - 1))
    step = index.stride.constant
    above = [b.compare("sge", last, b.index(low))] if step is None or step < 0 else []
    below = [b.compare("sle", last, b.index(high))] if step is None or step >= 0 else []
    return _and(b, [*above, *below])


def _and(b: Builder, conditions: Sequence[Plain]) -> Plain:
    result = conditions[0]
    for each in conditions[1:]:
        result = b.binary("andi", result, each)
    return result


def separable(conditions: Sequence[Condition], indices: Sequence[Scalar]) -> list[Condition]:
    """Those that vary with one of the indices at most: what holds of them at a tile's first place does in all of it."""
    names = {each.name for each in indices}
    return [each for each in conditions if len(each.depends & names) < 2]


def transfer(context: Context, conditions: Sequence[Condition], name: str, index: Scalar) -> None:
    """What is known of conditions at the index `name` of a tile holds for its other index `index` too."""
    for condition in conditions:
        form = context.known(condition.key)
        if isinstance(form, Scalar) and form.constant is not None:
            places = tuple(index if each.name == name else each for each in condition.cursor.index)
            context.remember(condition.value, replace(condition.cursor, index=places), form)
