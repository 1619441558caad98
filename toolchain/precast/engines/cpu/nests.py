"""Loop nests over a tensor's shape, split where masks change. In: a shape and the values evaluated. Out: the loops.

A condition that is true up to a count and false beyond (or the reverse) splits the loop of its dimension in three:
before the smallest count, between the counts, and after the largest. Outside the middle part the condition's value is
known, so loads are unmasked or fold to `other`, and stores vanish.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from precast.engines.cpu import kinds, shapes
from precast.engines.cpu.builder import Builder
from precast.engines.cpu.context import Context, Key
from precast.engines.cpu.ir import ELEMENT_BITS, Op, Value
from precast.engines.cpu.values import Affine, Buffer, Cursor, Form, Plain, Scalar

Body = Callable[[Cursor, list[Plain]], Sequence[Plain]]
_NEGATED = {"sgt": "sle", "sge": "slt", "ugt": "ule", "uge": "ult"}
_MIRRORED = {
    "slt": "sgt",
    "sle": "sge",
    "ult": "ugt",
    "ule": "uge",
    "sgt": "slt",
    "sge": "sle",
    "ugt": "ult",
    "uge": "ule",
}
_INDEX_OPS = ("tt.make_range", "tt.splat", "arith.constant", "arith.addi", "arith.subi", "arith.muli", "arith.extsi",
              "arith.extui", "arith.trunci", *shapes.MOVES)  # fmt: skip


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
    count: Scalar
    before: bool


@dataclass(frozen=True)
class Nest:
    """A nest's plan: dimension sizes, loop order from the outside in, and the lane dimension, which is innermost."""

    shape: tuple[int, ...]
    order: tuple[int, ...]
    lane: int | None
    width: int
    cursor: Cursor

    @property
    def names(self) -> frozenset[str]:
        return frozenset(each.name for each in self.cursor.index)


def plan_nest(context: Context, shape: tuple[int, ...], lane: int | None, bits: int = 32, width: int = 0) -> Nest:
    """A nest with lanes along `lane`: as wide as streams well for elements of `bits`, unless `width` is given."""
    if lane is not None:
        width = min(width or context.machine.streaming_width(bits), shape[lane])
        if width == 1:
            lane = None
    order = [axis for axis in range(len(shape)) if axis != lane]
    if lane is not None:
        order.append(lane)
    index = tuple(Scalar(context.b.fresh(), "i64") for _ in shape)
    return Nest(
        shape,
        tuple(order),
        lane,
        width if lane is not None else 1,
        Cursor(index, lane, width if lane is not None else 1),
    )


def last_wide_dimension(shape: tuple[int, ...]) -> int | None:
    """The dimension along which a row-major buffer is contiguous."""
    wide = [axis for axis, size in enumerate(shape) if size > 1]
    return wide[-1] if wide else None


def widest_bits(values: Sequence[Value]) -> int:
    """The widest element that evaluating the values handles in vectors."""
    return max([32, *(ELEMENT_BITS[value.type.element] for value in values if not value.type.is_pointer)])


def emit_nest(
    context: Context, nest: Nest, roots: Sequence[Value], body: Body, carried: Sequence[Plain] = (), lower: int = 0
) -> list[Plain]:
    """Runs `body` at every place; `roots` are the values it evaluates at the nest's cursor.

    The outermost loop begins at `lower`.
    """
    conditions = find_conditions(context, nest.cursor, roots)
    return emit_conditions(context, nest, conditions, body, carried, lower)


def emit_conditions(
    context: Context, nest: Nest, conditions: list[Condition], body: Body, carried: Sequence[Plain] = (), lower: int = 0
) -> list[Plain]:
    """`emit_nest` with the conditions given that may cut its loops."""
    return _Emission(context, nest, conditions, body, lower).level(0, list(carried), True)


class _Emission:
    def __init__(self, context: Context, nest: Nest, conditions: list[Condition], body: Body, lower: int) -> None:
        self.lower = lower
        self.context = context
        self.nest = nest
        self.conditions = conditions
        self.body = body

    def level(self, depth: int, carried: list[Plain], split: bool) -> list[Plain]:
        """The loops from `depth` inwards; with `split`, conditions may still cut them."""
        if depth == len(self.nest.order):
            return list(self.body(self.nest.cursor, carried))
        axis = self.nest.order[depth]
        splits = self._splits(axis, depth) if split else []
        step = self.nest.width if axis == self.nest.lane else 1
        bounds = self._bounds(splits, axis, step, self.lower if depth == 0 else 0)
        for lower, upper, known, inner_split in bounds:
            carried = self._loop(depth, axis, lower, upper, step, carried, known, inner_split)
        return carried

    def _loop(
        self, depth: int, axis: int, lower: Scalar, upper: Scalar, step: int, carried: list[Plain],
        known: dict[Key, Form], split: bool,
    ) -> list[Plain]:  # fmt: skip
        if lower.constant is not None and lower.constant == upper.constant:
            return carried
        index = self.nest.cursor.index[axis]
        return self.context.loop(
            index, lower, upper, step, carried, lambda inside: self.level(depth + 1, inside, split), known
        )

    def _splits(self, axis: int, depth: int) -> list[Split]:
        """Conditions that vary with this index, and otherwise only with indices of loops already open."""
        name = self.nest.cursor.index[axis].name
        later = {self.nest.cursor.index[other].name for other in self.nest.order[depth + 1 :]}
        found = []
        for condition in self.conditions:
            if name in condition.depends and not condition.depends & later:
                split = find_split(self.context, condition, name, self.nest.shape[axis])
                if split:
                    found.append(split)
        return found

    def _bounds(
        self, splits: list[Split], axis: int, step: int, lower: int
    ) -> Iterator[tuple[Scalar, Scalar, dict[Key, Form], bool]]:
        b = self.context.b
        size = b.index(self.nest.shape[axis])
        if not splits:
            yield b.index(lower), size, {}, True
            return
        yield from self._cut(splits, size, step, lower)

    def _cut(
        self, splits: list[Split], size: Scalar, step: int, lower: int
    ) -> Iterator[tuple[Scalar, Scalar, dict[Key, Form], bool]]:
        """The parts of a loop: until all that begins false is true, while all is true, mixed, when all is false."""
        b = self.context.b
        rising = [split.count for split in splits if not split.before]
        falling = [split.count for split in splits if split.before]
        begin = b.index(lower)
        start = self._rounded(_extreme(b, "maxsi", [begin, *rising]), step, up=True)
        first = b.integer("maxsi", start, self._rounded(_extreme(b, "minsi", [size, *falling]), step, up=False))
        last = b.integer("maxsi", first, self._rounded(_extreme(b, "maxsi", falling or [size]), step, up=True))
        if rising:
            yield begin, start, {}, False
        yield start, first, {split.condition.key: self._truth(True) for split in splits}, True
        if falling:
            if len(falling) > 1 or step > 1:
                yield (
                    first,
                    last,
                    {split.condition.key: self._truth(True) for split in splits if not split.before},
                    False,
                )
            yield last, size, {split.condition.key: self._truth(not split.before) for split in splits}, False

    def _rounded(self, count: Scalar, step: int, up: bool) -> Scalar:
        b = self.context.b
        if step == 1:
            return count
        return b.integer("andi", b.integer("addi", count, step - 1) if up else count, -step)

    def _truth(self, value: bool) -> Form:
        return self.context.b.constant(int(value), "i1")


def _extreme(b: Builder, mnemonic: str, counts: list[Scalar]) -> Scalar:
    result = counts[0]
    for count in counts[1:]:
        result = b.integer(mnemonic, result, count)
    return result


# Conditions.


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
    x, y = (context.evaluate(each, cursor) for each in operation.operands)
    predicate = operation.attributes["predicate"]
    if isinstance(x, Scalar) and isinstance(y, Affine):
        x, y, predicate = y, x, _MIRRORED.get(predicate, predicate)
    if not (isinstance(x, Affine) and isinstance(y, Scalar)) or predicate in ("eq", "ne"):
        return None
    before = predicate not in _NEGATED
    count = context.arithmetic.prefix_count(_NEGATED.get(predicate, predicate), x, y)
    return Split(condition, b.clamp(count, size), before) if count else None


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
    if operation.name in ("arith.extsi", "arith.extui", "arith.trunci", "tt.bitcast"):
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
