"""`tt.reduce`. In: the op. Out: vector accumulators over the axis, combined lane by lane at the end.

Along the last dimension lanes run along the axis and are folded with shuffles; along another one lanes run along the
last kept dimension. An operand region with a known identity starts from it; any other starts from the first elements.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from precast.engines.cpu import memory, nests
from precast.engines.cpu.conditions import find_conditions
from precast.engines.cpu.errors import refuse
from precast.engines.cpu.ir import Op
from precast.engines.cpu.kernel import Kernel
from precast.engines.cpu.values import Buffer, Cursor, Form, Plain, Scalar, Vector, integer_bounds

_ALL_ONES = {"arith.andi"}
_ZERO = {"arith.addi", "arith.ori", "arith.xori"}


def lower_reduce(kernel: Kernel, operation: Op) -> None:
    _Reduction(kernel, operation).lower()


def identity(operation: Op) -> int | float | None:
    """The combine region's identity element, None when there is none that is known."""
    body = operation.body
    if (
        len(operation.operands) != 1
        or len(body.operations) != 2
        or body.operations[0].results != body.terminator.operands
    ):
        return None
    name, element = body.operations[0].name, body.arguments[0].type.element
    if set(body.operations[0].operands) != set(body.arguments):
        return None
    if name in _ZERO:
        return 0
    if name in _ALL_ONES:
        return -1
    if name == "arith.muli":
        return 1
    if name in ("arith.maxsi", "arith.maxui"):
        return integer_bounds(element, name.endswith("si"))[0]
    if name in ("arith.minsi", "arith.minui"):
        return integer_bounds(element, name.endswith("si"))[1]
    # -0.0 is what leaves every sum as it is; a quiet NaN is what maxnum and minnum ignore.
    known = {"arith.addf": -0.0, "arith.mulf": 1.0, "arith.maxnumf": math.nan, "arith.minnumf": math.nan,
             "arith.maximumf": -math.inf, "arith.minimumf": math.inf}  # fmt: skip
    return known.get(name)


class _Reduction:
    def __init__(self, kernel: Kernel, operation: Op) -> None:
        self.kernel = kernel
        self.context = kernel.context
        self.operation = operation
        self.axis = int(operation.attributes["axis"])
        self.shape = operation.operands[0].type.shape
        self.elements = [operand.type.element for operand in operation.operands]
        if len(operation.regions[0]) > 1:
            raise refuse(operation, "its combine region branches")

    def lower(self) -> None:
        kept = [axis for axis in range(len(self.shape)) if axis != self.axis]
        if not kept:
            results = self._fold_lanes(self._run(Cursor((), None, 1), self.axis))
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
            for buffer, form in zip(buffers, forms, strict=True):
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
        start = identity(self.operation)
        if start is None:
            first = self._operands_at(self._at(cursor, self.context.b.index(0)))
            lower = width
        else:
            first = [self._filled(start, element, cursor.width) for element in self.elements]
            lower = 0
        steps = tuple(width if axis == self.axis else 1 for axis in range(len(self.shape)))
        nest = nests.Nest(self.shape, (self.axis,), steps, cursor)

        def body(place: Cursor, carried: list[Plain]) -> Sequence[Plain]:
            return self._combine(carried, self._operands_at(place), place.width)

        return nests.emit_nest(self.context, nest, self.operation.operands, body, first, lower)

    def _at(self, cursor: Cursor, index: Scalar) -> Cursor:
        indices = (*cursor.index[: self.axis], index, *cursor.index[self.axis + 1 :])
        return Cursor(indices, cursor.lane, cursor.width)

    def _width(self, size: int) -> int:
        return min(size, self.context.machine.streaming_width(nests.widest_bits(self.operation.operands)))

    def _filled(self, value: int | float, element: str, width: int) -> Plain:
        scalar = self.context.literal(value, element)
        return scalar if width == 1 else self.context.b.vector(scalar, width)

    def _operands_at(self, cursor: Cursor) -> list[Plain]:
        return [self._full(self.context.evaluate(each, cursor), cursor.width) for each in self.operation.operands]

    def _full(self, form: Form, width: int) -> Plain:
        return self.context.b.vector(form, width) if width > 1 else self.context.b.plain(form, 1)

    def _combine(self, left: Sequence[Plain], right: Sequence[Plain], width: int) -> list[Plain]:
        forms = self.context.inline(self.operation, [*left, *right], width)
        return [self._full(form, width) for form in forms]

    def _fold_lanes(self, accumulators: list[Plain]) -> list[Plain]:
        """Halves the vectors until one lane is left."""
        while isinstance(accumulators[0], Vector):
            vectors = [each for each in accumulators if isinstance(each, Vector)]
            half = vectors[0].width // 2
            if half == 1:
                low: list[Plain] = [self.context.b.extract(each, 0) for each in vectors]
                high: list[Plain] = [self.context.b.extract(each, 1) for each in vectors]
            else:
                low = [self.context.b.shuffle(each, each, range(half)) for each in vectors]
                high = [self.context.b.shuffle(each, each, range(half, 2 * half)) for each in vectors]
            accumulators = self._combine(low, high, half)
        return accumulators
