"""`tt.scan`. In: the op. Out: a buffer with the running combination along its axis, forwards or backwards.

Along the last dimension each vector is scanned in registers in log₂ steps and joined with the carry of those before
it; along another dimension lanes run along the last one and the axis is walked.
"""

from __future__ import annotations

from collections.abc import Sequence

from precast.engines.cpu import memory, nests
from precast.engines.cpu.combines import identity, narrowed, sums_in_f32, widened
from precast.engines.cpu.ir import Op
from precast.engines.cpu.kernel import Kernel
from precast.engines.cpu.values import Cursor, Plain, Scalar, Vector

_SCAN_LANES = 8


def lower_scan(kernel: Kernel, operation: Op) -> None:
    _Scan(kernel, operation).lower()


class _Scan:
    def __init__(self, kernel: Kernel, operation: Op) -> None:
        self.context = kernel.context
        self.operation = operation
        self.axis = int(operation.attributes["axis"])
        self.reverse = bool(operation.attributes.get("reverse", False))
        self.shape = operation.operands[0].type.shape
        self.wide = sums_in_f32(operation)
        # Vectors also combine lanes that nothing is made of: where that would be noticed, elements follow one another.
        self.may_repeat = all(inner.name != "tt.assert" for inner in operation.walk())

    def lower(self) -> None:
        self.buffers = [self.context.allocate(result.type) for result in self.operation.results]
        last = nests.last_wide_dimension(self.shape)
        if last is None or last == self.axis:
            self._along_axis()
        else:
            self._across(last)
        for value, buffer in zip(self.operation.results, self.buffers, strict=True):
            self.context.places[value] = buffer

    def _kept_nest(self, lane: int | None) -> nests.Nest:
        shape = tuple(size for axis, size in enumerate(self.shape) if axis != self.axis)
        position = None if lane is None else lane - (lane > self.axis)
        return nests.plan_nest(self.context, shape, position, nests.widest_bits(self.operation.operands))

    def _inner(self, outer: Cursor, index: Scalar, lane: int | None, width: int) -> Cursor:
        return Cursor((*outer.index[: self.axis], index, *outer.index[self.axis :]), lane, width)

    def _combine(self, left: Sequence[Plain], right: Sequence[Plain], width: int) -> list[Plain]:
        """`left` comes first in scan order."""
        forms = self.context.inline(self.operation, [*left, *right], width)
        b = self.context.b
        return [b.vector(form, width) if width > 1 else b.plain(form, 1) for form in forms]

    def _operands(self, cursor: Cursor) -> list[Plain]:
        b = self.context.b
        forms = [self.context.evaluate(each, cursor) for each in self.operation.operands]
        plain = [b.vector(form, cursor.width) if cursor.width > 1 else b.plain(form, 1) for form in forms]
        return widened(b, plain, self.wide)

    def _write(self, cursor: Cursor, values: Sequence[Plain]) -> None:
        elements = [buffer.element for buffer in self.buffers]
        for buffer, value in zip(self.buffers, narrowed(self.context.b, values, elements), strict=True):
            memory.write_buffer(self.context, buffer, cursor, value)

    def _place(self, step: Scalar, last: int) -> Scalar:
        """The index of the `step`-th element in scan order."""
        b = self.context.b
        return b.integer("subi", b.index(last), step) if self.reverse else step

    def _across(self, lane: int) -> None:
        nest = self._kept_nest(lane)
        size = self.shape[self.axis]

        def body(outer: Cursor, _: list[Plain]) -> list[Plain]:
            inner_lane = None if outer.lane is None else outer.lane + (outer.lane >= self.axis)

            def at(step: Scalar) -> Cursor:
                return self._inner(outer, self._place(step, size - 1), inner_lane, outer.width)

            first = self._operands(at(self.context.b.index(0)))
            self._write(at(self.context.b.index(0)), first)
            self._walk(at, first, size, outer.width)
            return []

        nests.emit_nest(self.context, nest, [], body)

    def _walk(self, at: object, first: list[Plain], size: int, width: int) -> None:
        assert callable(at)
        index = Scalar(self.context.b.fresh(), "i64")

        def step(carried: list[Plain]) -> Sequence[Plain]:
            cursor = at(index)
            total = self._combine(carried, self._operands(cursor), width)
            self._write(cursor, total)
            return total

        b = self.context.b
        self.context.loop(index, b.index(1), b.index(size), 1, first, step)

    def _along_axis(self) -> None:
        nest = self._kept_nest(None)

        def body(outer: Cursor, _: list[Plain]) -> list[Plain]:
            self._row(outer)
            return []

        nests.emit_nest(self.context, nest, [], body)

    def _row(self, outer: Cursor) -> None:
        """One run along the axis, vector by vector."""
        size = self.shape[self.axis]
        lanes = self.context.machine.lanes(nests.widest_bits(self.operation.operands))
        width = min(max(lanes, _SCAN_LANES), size) if self.may_repeat else 1
        b = self.context.b

        def at(step: Scalar) -> Cursor:
            lane = self.axis if width > 1 else None
            return self._inner(outer, self._place(step, size - width), lane, width)

        with self.context.scope():
            total = self._scanned(self._operands(at(b.index(0))))
            self._write(at(b.index(0)), total)
        if size == width:
            return
        index = Scalar(b.fresh(), "i64")

        def step(carried: list[Plain]) -> Sequence[Plain]:
            cursor = at(index)
            inside = self._scanned(self._operands(cursor))
            joined = self._combine(carried, inside, width)
            self._write(cursor, joined)
            # Not the last of what was joined, which is the same: the next vector would wait for one more shuffle.
            return self._combine(carried, [self._last(each) for each in inside], width) if width > 1 else joined

        self.context.loop(index, b.index(width), b.index(size), width, [self._last(each) for each in total], step)

    def _last(self, value: Plain) -> Plain:
        """The last element in scan order, in each lane."""
        if isinstance(value, Scalar):
            return value
        return self.context.b.shuffle(value, value, [0 if self.reverse else value.width - 1] * value.width)

    def _scanned(self, values: list[Plain]) -> list[Plain]:
        """A vector's own running combination: each step reaches twice as far."""
        if not isinstance(values[0], Vector):
            return values
        width = values[0].width
        reach = 1
        while reach < width:
            values = self._step(values, reach, width)
            reach *= 2
        return values

    def _step(self, values: list[Plain], reach: int, width: int) -> list[Plain]:
        b = self.context.b
        lanes = range(width)
        neutral = identity(self.operation)
        if neutral is not None:
            vector = values[0]
            assert isinstance(vector, Vector)
            filler = b.vector(self.context.literal(neutral, vector.element), width)
            sources = [k + reach if self.reverse else width + k if k < reach else k - reach for k in lanes]
            return self._combine([b.shuffle(vector, filler, sources)], values, width)
        sources = [min(width - 1, k + reach) if self.reverse else max(0, k - reach) for k in lanes]
        alone = b.dense([int(k + reach >= width if self.reverse else k < reach) for k in lanes], "i1")
        moved: list[Plain] = [b.shuffle(each, each, sources) for each in values if isinstance(each, Vector)]
        joined = self._combine(moved, values, width)
        return [b.plain(b.select(alone, old, new, width), width) for old, new in zip(values, joined, strict=True)]
