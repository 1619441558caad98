"""`tt.reduce`. In: the op. Out: vector accumulators over the axis, combined lane by lane at the end.

Along the last dimension lanes run along the axis and are folded with shuffles; along another one lanes run along the
last kept dimension. An operand region with a known identity starts from it; any other starts from the first elements.
Where the region is not commutative, each vector along the axis is folded in order and joined with those before it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from precast.engines.cpu import memory, nests
from precast.engines.cpu.combines import find_extreme, identity, is_commutative, narrowed, sums_in_f32, widened
from precast.engines.cpu.conditions import find_conditions
from precast.engines.cpu.ir import Op
from precast.engines.cpu.kernel import Kernel
from precast.engines.cpu.values import Buffer, Cursor, Form, Plain, Scalar, Vector


def lower_reduce(kernel: Kernel, operation: Op) -> None:
    _Reduction(kernel, operation).lower()


class _Reduction:
    def __init__(self, kernel: Kernel, operation: Op) -> None:
        self.kernel = kernel
        self.context = kernel.context
        self.operation = operation
        self.axis = int(operation.attributes["axis"])
        self.shape = operation.operands[0].type.shape
        self.elements = [operand.type.element for operand in operation.operands]
        self.wide = sums_in_f32(operation)
        self.extreme = find_extreme(operation)
        self.in_order = not is_commutative(operation)

    def lower(self) -> None:
        kept = [axis for axis in range(len(self.shape)) if axis != self.axis]
        if not kept:
            results = self._narrow(self._fold_lanes(self._run(Cursor((), None, 1), self.axis)))
            for value, form in zip(self.operation.results, results, strict=True):
                assert isinstance(form, Scalar)
                self.context.places[value] = form
            return
        buffers = [self.context.allocate(result.type) for result in self.operation.results]
        wide = [axis for axis in kept if self.shape[axis] > 1]
        across = bool(wide) and (self.axis < wide[-1] or self.shape[self.axis] == 1)
        self._over_kept(buffers, kept, wide[-1] if across else None)
        for value, buffer in zip(self.operation.results, buffers, strict=True):
            self.context.places[value] = buffer

    def _over_kept(self, buffers: list[Buffer], kept: list[int], lane: int | None) -> None:
        """A nest over the result's shape; in each place the axis is run through."""
        shape = tuple(self.shape[axis] for axis in kept)
        bits = nests.widest_bits(self.operation.operands)
        nest = nests.plan_nest(self.context, shape, kept.index(lane) if lane is not None else None, bits)
        roots = find_conditions(
            self.context,
            self._inner_cursor(nest.cursor, Scalar("%axis", "i64"), nest.cursor.lane is not None),
            self.operation.operands,
        )
        outside = [each for each in roots if "%axis" not in each.depends]

        def body(cursor: Cursor, carried: list[Plain]) -> list[Plain]:
            forms = self._run(cursor, None if nest.cursor.lane is not None else self.axis)
            if nest.cursor.lane is None:
                forms = self._fold_lanes(forms)
            for buffer, form in zip(buffers, self._narrow(forms), strict=True):
                memory.write_buffer(self.context, buffer, cursor, form)
            return []

        nests.emit_conditions(self.context, nest, outside, body)

    def _inner_cursor(self, outer: Cursor, index: Scalar, lanes_outside: bool, width: int = 1) -> Cursor:
        """The operand's cursor from the kept dimensions' and the axis index."""
        indices = (*outer.index[: self.axis], index, *outer.index[self.axis :])
        if lanes_outside and outer.lane is not None:
            return Cursor(indices, outer.lane + (outer.lane >= self.axis), outer.width)
        return Cursor(indices, self.axis if width > 1 else None, width)

    def _run(self, outer: Cursor, lane: int | None) -> list[Plain]:
        """Accumulates along the axis at one place; lanes run along it when `lane` says so, else along `outer`'s."""
        size = self.shape[self.axis]
        width = self._width(size) if lane is not None else 1
        index = Scalar(self.context.b.fresh(), "i64")
        cursor = self._inner_cursor(outer, index, lane is None, width)
        if self.extreme and cursor.width > 1:
            return [self._find_extreme(cursor)]
        start = identity(self.operation)
        in_order = self.in_order and lane is not None
        if start is None:
            first = self._operands_at(self._at(cursor, self.context.b.index(0)))
            first = self._fold_lanes(first) if in_order else first
            lower = width
        else:
            elements = ["f32"] if self.wide else self.elements
            first = [self._filled(start, element, 1 if in_order else cursor.width) for element in elements]
            lower = 0

        def body(place: Cursor, carried: list[Plain]) -> Sequence[Plain]:
            if in_order:
                return self._combine(carried, self._fold_lanes(self._operands_at(place)), 1)
            return self._combine(carried, self._operands_at(place), place.width)

        return self._along_axis(cursor, body, first, lower)

    def _along_axis(self, cursor: Cursor, body: nests.Body, first: list[Plain], lower: int = 0) -> list[Plain]:
        steps = tuple(cursor.width if axis == cursor.lane else 1 for axis in range(len(self.shape)))
        nest = nests.Nest(self.shape, (self.axis,), steps, cursor)
        return nests.emit_nest(self.context, nest, self.operation.operands, body, first, lower)

    def _find_extreme(self, cursor: Cursor) -> Plain:
        """Each lane's largest or smallest number; NaN where there is none.

        A comparison never chooses NaN, and takes one instruction, where what looks for NaN takes three. Lanes that saw
        no number are those whose largest is still below their smallest.
        """
        b, element = self.context.b, "f32" if self.wide else self.elements[0]

        def chosen(predicate: str, x: Plain, y: Plain, otherwise: Plain) -> Plain:
            return self._full(b.select(b.compare(predicate, x, y), x, otherwise, cursor.width), cursor.width)

        def body(place: Cursor, carried: list[Plain]) -> Sequence[Plain]:
            (item,) = self._operands_at(place)
            return [chosen("ogt", item, carried[0], carried[0]), chosen("olt", item, carried[1], carried[1])]

        first = [self._filled(start, element, cursor.width) for start in (-math.inf, math.inf)]
        largest, smallest = self._along_axis(cursor, body, first)
        none = self._filled(math.nan, element, cursor.width)
        if self.extreme == "max":
            return chosen("oge", largest, smallest, none)
        return chosen("ole", smallest, largest, none)

    def _at(self, cursor: Cursor, index: Scalar) -> Cursor:
        indices = (*cursor.index[: self.axis], index, *cursor.index[self.axis + 1 :])
        return Cursor(indices, cursor.lane, cursor.width)

    def _width(self, size: int) -> int:
        return min(size, self.context.machine.streaming_width(nests.widest_bits(self.operation.operands)))

    def _filled(self, value: int | float, element: str, width: int) -> Plain:
        scalar = self.context.literal(value, element)
        return scalar if width == 1 else self.context.b.vector(scalar, width)

    def _operands_at(self, cursor: Cursor) -> list[Plain]:
        forms = [self._full(self.context.evaluate(each, cursor), cursor.width) for each in self.operation.operands]
        return widened(self.context.b, forms, self.wide)

    def _narrow(self, forms: Sequence[Plain]) -> list[Plain]:
        return narrowed(self.context.b, forms, self.elements)

    def _full(self, form: Form, width: int) -> Plain:
        return self.context.b.vector(form, width) if width > 1 else self.context.b.plain(form, 1)

    def _combine(self, left: Sequence[Plain], right: Sequence[Plain], width: int) -> list[Plain]:
        forms = self.context.inline(self.operation, [*left, *right], width)
        return [self._full(form, width) for form in forms]

    def _fold_lanes(self, accumulators: list[Plain]) -> list[Plain]:
        """Halves the vectors until one lane is left, neighbours first where their order counts."""
        while isinstance(accumulators[0], Vector):
            vectors = [each for each in accumulators if isinstance(each, Vector)]
            half = vectors[0].width // 2
            first, second = range(half), range(half, 2 * half)
            if self.in_order:
                first, second = range(0, 2 * half, 2), range(1, 2 * half, 2)
            if half == 1:
                low: list[Plain] = [self.context.b.extract(each, 0) for each in vectors]
                high: list[Plain] = [self.context.b.extract(each, 1) for each in vectors]
            else:
                low = [self.context.b.shuffle(each, each, first) for each in vectors]
                high = [self.context.b.shuffle(each, each, second) for each in vectors]
            accumulators = self._combine(low, high, half)
        return accumulators
