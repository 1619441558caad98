"""Neighbouring dimensions that a nest can run through as one. In: its shape and values. Out: the shape of fewer loops.

Where no value tells two neighbours apart, the index of the later one runs over both and the earlier one's stays 0: in
a row-major buffer that is the same element. Dimensions of size 1 are none. `tl.sort` has ten dimensions of size 2.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from precast.engines.cpu import shapes
from precast.engines.cpu.context import Context
from precast.engines.cpu.ir import Op, Value
from precast.engines.cpu.kinds import is_by_element
from precast.engines.cpu.ordering import needed_first
from precast.engines.cpu.values import Buffer

_UNIFORM = ("arith.constant", "tt.splat", "tt.make_range", "ub.poison")
Breaks = frozenset[int]  # before which of the dimensions that are wider than 1 nothing can be joined


def join_dimensions(context: Context, shape: tuple[int, ...], roots: Sequence[Value]) -> tuple[int, ...]:
    """The shape with each run of joined dimensions as its last one, the others 1; `roots` are evaluated in the nest."""
    wide = _wide(shape)
    if len(wide) < 2:
        return shape
    tensors = [each for each in roots if each.type.is_tensor]
    search = _Search(context)
    breaks = frozenset().union(*(search.run(each) for each in tensors))
    joined, size = [1] * len(shape), 1
    for number, axis in enumerate(wide, 1):
        size *= shape[axis]
        if number in breaks or number == len(wide):
            joined[axis], size = size, 1
    return tuple(joined)


def _wide(shape: tuple[int, ...]) -> list[int]:
    return [axis for axis, size in enumerate(shape) if size > 1]


class _Search:
    """The breaks of lazy values, each found once from those of its operands."""

    def __init__(self, context: Context) -> None:
        self._places = context.places
        self._found: dict[Value, Breaks] = {}

    def run(self, value: Value) -> Breaks:
        for each in needed_first([value], self._needs, self._found):
            self._found[each] = self._breaks(each)
        return self._found[value]

    def _needs(self, value: Value) -> list[Value]:
        place = self._places.get(value)
        if place is not None:
            start = getattr(place, "start", None)
            return [start] if isinstance(start, Value) and start.type.is_tensor else []
        operation = value.definition
        if operation is None or operation.name in _UNIFORM:
            return []
        return [each for each in operation.operands if each.type.is_tensor]

    def _breaks(self, value: Value) -> Breaks:
        place = self._places.get(value)
        if isinstance(place, Buffer):
            return _buffer_breaks(place)
        operation = value.definition
        known = frozenset().union(*(self._found[each] for each in self._needs(value)))
        if place is not None:
            return known
        if operation is None or is_by_element(operation):
            return frozenset(range(len(value.type.shape)))
        return _breaks_moved(operation, known) if operation.name in shapes.MOVES else known


def _buffer_breaks(buffer: Buffer) -> Breaks:
    wide, strides = _wide(buffer.shape), buffer.strides
    pairs = enumerate(itertools.pairwise(wide), 1)
    return frozenset(number for number, (a, b) in pairs if strides[a] != buffer.shape[b] * strides[b])


def _breaks_moved(operation: Op, known: Breaks) -> Breaks:
    """The breaks of a moving op's result from those of its operand."""
    wide = _wide(operation.results[0].type.shape)
    source = _wide(operation.operands[0].type.shape)
    if operation.name == "tt.trans":
        order = [operation.attributes["order"][axis] for axis in wide]
        return known if order == sorted(order) else frozenset(range(len(wide)))
    if operation.name == "tt.split":
        return known - {len(wide)}
    if operation.name != "tt.broadcast":
        return known
    kept = [axis in source for axis in wide]
    found = {number for number in range(1, len(wide)) if kept[number] != kept[number - 1]}
    return frozenset(found | {wide.index(source[number]) for number in known})
