"""Loop nests over a tensor's shape, split where masks change. In: a shape and the values evaluated. Out: the loops.

Conditions cut a loop into parts: until all that begins false is true, while all is true, mixed, and when all that
ends is false. Where a condition's value is known, loads are unmasked or fold to `other`, and stores vanish.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from precast.engines.cpu.builder import Builder
from precast.engines.cpu.conditions import Condition, Split, find_conditions, find_split
from precast.engines.cpu.context import Context, Key
from precast.engines.cpu.ir import ELEMENT_BITS, Value
from precast.engines.cpu.values import Cursor, Form, Plain, Scalar

_DEEPEST = 3  # loops of a nest that stay loops
Body = Callable[[Cursor, list[Plain]], Sequence[Plain]]


@dataclass(frozen=True)
class Nest:
    """A nest's plan: dimension sizes, steps, loop order from the outside in, and the cursor of one place."""

    shape: tuple[int, ...]
    order: tuple[int, ...]
    steps: tuple[int, ...]
    cursor: Cursor


def plan_nest(context: Context, shape: tuple[int, ...], lane: int | None, bits: int = 32, width: int = 0) -> Nest:
    """A nest with lanes along `lane`: as wide as streams well for elements of `bits`, unless `width` is given."""
    if lane is not None:
        width = min(width or context.machine.streaming_width(bits), shape[lane])
        if width == 1:
            lane = None
    width = width if lane is not None else 1
    order = [axis for axis, size in enumerate(shape) if axis != lane and size > 1]
    if lane is not None:
        order.append(lane)
    index = tuple(Scalar(context.b.fresh(), "i64") if size > 1 else context.b.index(0) for size in shape)
    steps = tuple(width if axis == lane else 1 for axis in range(len(shape)))
    return Nest(shape, tuple(order), steps, Cursor(index, lane, width))


def plan_tiles(
    context: Context,
    shape: tuple[int, ...],
    along: int,
    across: int,
    size: int,
    group: int = 1,
    inner: int | None = None,
) -> Nest:
    """A nest over square tiles of groups along `along` in two dimensions; its cursor has lanes along `along`.

    The innermost loop runs along `inner`, if that is not `along` too.
    """
    others = [axis for axis in range(len(shape)) if axis not in (along, across)]
    index = tuple(Scalar(context.b.fresh(), "i64") for _ in shape)
    sizes = {along: size * group, across: size}
    steps = tuple(sizes.get(axis, 1) for axis in range(len(shape)))
    order = (along, across) if inner == across else (across, along)
    return Nest(shape, (*others, *order), steps, Cursor(index, along, size * group))


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
    return _Emission(context, nest, conditions, body, lower).run(list(carried))


class _Emission:
    def __init__(self, context: Context, nest: Nest, conditions: list[Condition], body: Body, lower: int) -> None:
        self.lower = lower
        self.context = context
        self.nest = nest
        self.conditions = conditions
        self.body = body

    def run(self, carried: list[Plain]) -> list[Plain]:
        order, steps = self.nest.order, self.nest.steps
        if not order:
            with self.context.scope():
                return self.level(0, carried, False)
        plain = not self.conditions and not self.lower and all(steps[axis] == 1 for axis in order[:-1])
        if plain and len(order) > _DEEPEST:
            return self._flattened(carried)
        return self.level(0, carried, True)

    def _flattened(self, carried: list[Plain]) -> list[Plain]:
        """One loop in place of all but the innermost: LLVM's time grows with the depth of nests."""
        b, shape, outer = self.context.b, self.nest.shape, self.nest.order[:-1]
        index = Scalar(b.fresh(), "i64")

        def body(inside: list[Plain]) -> list[Plain]:
            rest = index
            for axis in reversed(outer):
                size = b.index(shape[axis])
                b.line(f"{self.nest.cursor.index[axis].name} = arith.remui {rest.name}, {size.name} : i64")
                rest = b.integer("divui", rest, size)
            return self.level(len(outer), inside, False)

        total = b.index(math.prod(shape[axis] for axis in outer))
        return self.context.loop(index, b.index(0), total, 1, carried, body)

    def level(self, depth: int, carried: list[Plain], split: bool) -> list[Plain]:
        """The loops from `depth` inwards; with `split`, conditions may still cut them."""
        if depth == len(self.nest.order):
            return list(self.body(self.nest.cursor, carried))
        axis = self.nest.order[depth]
        splits = self._splits(axis, depth) if split else []
        step = self.nest.steps[axis]
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
        rising = [split.last for split in splits if not split.before]
        falling = [split.first for split in splits if split.before]
        fallen = [split.last for split in splits if split.before]
        begin = b.index(lower)
        start = self._rounded(_extreme(b, "maxsi", [begin, *rising]), step, up=True)
        first = b.integer("maxsi", start, self._rounded(_extreme(b, "minsi", [size, *falling]), step, up=False))
        last = b.integer("maxsi", first, self._rounded(_extreme(b, "maxsi", fallen or [size]), step, up=True))
        if rising:
            yield begin, start, {}, False
        yield start, first, {split.condition.key: self._truth(True) for split in splits}, True
        if falling:
            if step > 1 or {*falling} != {*fallen} or len(falling) > 1:
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
