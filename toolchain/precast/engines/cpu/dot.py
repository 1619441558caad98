"""`tt.dot`. In: the op. Out: packed operands and a register-tiled product, added up in a buffer.

A tile of `rows` × `columns` sums stays in registers while K is run through. tf32 products are made in full f32. What
masks make zero is not run through: K's end where both operands are zero, rows or columns whose counterpart is finite.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

from precast.engines.cpu import floats, grouped, kinds, memory, nests, shapes
from precast.engines.cpu.context import Context
from precast.engines.cpu.errors import refuse
from precast.engines.cpu.factors import Factors, Reach
from precast.engines.cpu.ir import ELEMENT_BITS, Op, Type, Value
from precast.engines.cpu.kernel import Kernel
from precast.engines.cpu.matrix_tiles import MatrixTiles, plan_matrix_tile
from precast.engines.cpu.prefetching import find_ahead, find_following
from precast.engines.cpu.register_tiles import Bounds, Matrix, Multiply, Packed, Tiles, multiply_add, plan_tile
from precast.engines.cpu.values import Buffer, Cursor, Plain, Scalar
from precast.engines.cpu.zeros import find_reach, furthest


def lower_dot(kernel: Kernel, operation: Op) -> None:
    _Product(kernel, operation).lower()


def pack_before(kernel: Kernel, loop: Op) -> None:
    """Packs the right factors of a loop's products that stay what they are while it runs: once, before it."""
    for operation in loop.walk():
        if operation.name == "tt.dot" and operation not in kernel.packed and _stays(kernel, operation.operands[1]):
            kernel.packed[operation] = _Product(kernel, operation).factors(()).pack_panels()


def _stays(kernel: Kernel, value: Value) -> bool:
    """Whether a matrix, before a loop that uses it, is in a buffer, or is another's view that is."""
    if len(value.type.shape) != 2:
        return False
    while value not in kernel.context.places and value not in kernel.analysis.materialized:
        made = value.definition
        if made is None or made.name not in shapes.MOVES or not kinds.is_lazy(made):
            return False
        value = made.operands[0]
    return isinstance(kernel.context.places.get(value), Buffer)


def keep_widened(kernel: Kernel, value: Value) -> bool:
    """Puts a small-float tensor that only products take as a factor into a buffer of what they multiply, if it is one.

    A factor that stays while a loop runs is then widened once.
    """
    users = kernel.analysis.users.get(value, [])
    factors = all(
        user.name == "tt.dot"
        and value in user.operands[:2]
        and value not in user.operands[2:]
        and not grouped.find_group(kernel.context.machine, user.operands[0].type, user.operands[1].type, "f32")
        for user in users
    )
    if not factors or not value.type.is_float or value.type.element in ("f32", "f64"):
        return False
    kernel.context.places[value] = convert_value(kernel.context, value, "f32")
    return True


def convert_value(context: Context, value: Value, element: str) -> Buffer:
    """A tensor in a buffer of another float type."""
    buffer = context.allocate(value.type.with_element(element))
    nest = nests.plan_nest(context, value.type.shape, nests.last_wide_dimension(value.type.shape))

    def body(cursor: Cursor, _: list[Plain]) -> Sequence[Plain]:
        form = floats.convert(context.b, context.plain(value, cursor), element)
        memory.write_buffer(context, buffer, cursor, form)
        return []

    nests.emit_nest(context, nest, [value], body)
    return buffer


class _Product:
    def __init__(self, kernel: Kernel, operation: Op) -> None:
        self.kernel = kernel
        self.context = kernel.context
        self.operation = operation
        self.a, self.b, self.c = operation.operands
        self.element = self._sum_element()
        *batch, m, k = self.a.type.shape
        self.batch = tuple(batch)
        machine = self.context.machine
        self.group = grouped.find_group(machine, self.a.type, self.b.type, self.element)
        steps, n = k // self.group.size if self.group else k, self.b.type.shape[-1]
        self.matrices = bool(self.group and self.group.matrices)
        self.tile = plan_matrix_tile(m, n, steps) if self.matrices else plan_tile(machine, m, n, steps, self.element)

    def factors(self, batch: tuple[Scalar, ...]) -> Factors:
        """Its factors at an index of the batch."""
        return Factors(self.context, self.a, self.b, self.element, self.tile, self.group, batch)

    def _sum_element(self) -> str:
        """The type of products and sums."""
        element = self.a.type.element
        if not self.a.type.is_float:
            if ELEMENT_BITS[self.c.type.element] < 32:
                raise refuse(self.operation, f"sums of type {self.c.type.element}")
            return self.c.type.element
        return "f64" if element == "f64" else "f32"

    def lower(self) -> None:
        sums, lazy = self._start_sums()
        self._over_batch(sums, lazy, ())
        self.context.places[self.operation.result] = self._finish_sums(sums)

    def _over_batch(self, sums: Buffer, lazy: bool, index: tuple[Scalar, ...]) -> None:
        if len(index) == len(self.batch):
            self._multiply(sums, lazy, index)
            return

        def body(each: Scalar, _: list[Plain]) -> Sequence[Plain]:
            self._over_batch(sums, lazy, (*index, each))
            return []

        self.context.count(self.batch[len(index)], body)

    # The sums' buffer.

    def _start_sums(self) -> tuple[Buffer, bool]:
        """A buffer for the sums, and whether they begin with c as it is evaluated: else the buffer holds it already.

        It is c's own where this product alone reads that.
        """
        value = self.c
        if value.type.element != self.element:
            return convert_value(self.context, value, self.element), False
        place = self.context.places.get(value)
        if isinstance(place, Buffer) and self._is_last_use(value, place):
            return place, False
        target = self._target_in_place(value)
        buffer = target or self.context.allocate(value.type)
        if (target and not self.matrices) or self._is_constant(zero=self.matrices):
            return buffer, True
        self.kernel.write_value(self.kernel, value, buffer)
        return buffer, False

    def _is_constant(self, zero: bool) -> bool:
        """Whether c is one number, or, where that is asked, +0."""
        made = self.c.definition
        if made is None or made.name != "arith.constant" or self.c in self.context.places:
            return False
        value = made.attributes["value"]
        return bool(value.splat) and (not zero or (value.values[0] == 0 and math.copysign(1, value.values[0]) == 1))

    def _is_last_use(self, value: Value, place: Buffer) -> bool:
        """Whether the buffer may be overwritten: this product's c alone reads it, and no other value lives there."""
        analysis = self.kernel.analysis
        factors = {each for operand in (self.a, self.b) for each, _ in analysis.buffers_read(operand)}
        if value in factors or place.pointer in self.context.shared or (self.matrices and place.turned):
            return False
        sinks = analysis.sinks(value)
        return sinks.any is self.operation and not sinks.several and analysis.same_loops(value, self.operation)

    def _target_in_place(self, value: Value) -> Buffer | None:
        """The buffer that a lazy c is computed from place by place, when nothing else reads it."""
        read = self.kernel.analysis.buffers_read(value)
        found = []
        for each, moved in read:
            place = self.context.places.get(each)
            if moved or each.type != value.type or (each, True) in read or not isinstance(place, Buffer):
                continue
            if self._is_last_use(each, place):
                found.append(place)
        return found[0] if len(found) == 1 else None

    def _finish_sums(self, sums: Buffer) -> Buffer:
        result = self.operation.result.type
        if result.element == self.element:
            return sums
        wide = Value(result.with_element(self.element))
        self.context.places[wide] = sums
        return convert_value(self.context, wide, result.element)

    # The product.

    def _multiply(self, sums: Buffer, lazy: bool, batch: tuple[Scalar, ...]) -> None:
        context = self.context
        with context.region():
            factors, reach = self.factors(batch), self._find_reach(batch)
            rows = factors.find_rows(reach)
            panels = self.kernel.packed.get(self.operation) or factors.find_panels(reach)
            bounds = self._find_bounds(rows, panels, reach)
            if lazy and not bounds.cover(self.tile):
                self.kernel.write_value(self.kernel, self.c, sums)
                lazy = False
            if self.group and self.matrices:
                total = self._find_sums(sums, batch)
                matrices = MatrixTiles(context, self.tile, self.group, rows.matrix, panels.matrix, total, bounds)
                matrices.emit(from_zero=lazy)
                return

            excess = self._sum_excess(panels.matrix) if self.group and self.group.unsigned else None

            def full(cursor: Cursor) -> Cursor:
                lane = None if cursor.lane is None else cursor.lane + len(batch)
                return Cursor((*batch, *cursor.index), lane, cursor.width)

            def begin(cursor: Cursor) -> Plain:
                place = full(cursor)
                form = context.evaluate(self.c, place) if lazy else memory.read_buffer(context, sums, place)
                plain = cursor.lane is None
                total = context.b.plain(form, 1) if plain else context.b.vector(form, cursor.width)
                return self._without(excess, cursor, total)

            def end(cursor: Cursor, total: Plain) -> None:
                memory.write_buffer(context, sums, full(cursor), self._with_zeros(total, bounds.depth))

            before, multiply = self._find_before(sums), self._find_multiply()
            Tiles(context, self.tile, rows.matrix, panels.matrix, bounds, before, multiply).emit(begin, end)

    def _find_sums(self, sums: Buffer, batch: tuple[Scalar, ...]) -> Matrix:
        """The sums at an index of the batch."""
        matrix, zero = Matrix.of(sums), self.context.b.index(0)
        start = matrix.find(self.context, (*batch, zero, zero))
        return Matrix(start, self.element, matrix.strides[-2:])

    def _find_multiply(self) -> Multiply:
        group = self.group
        if group:
            return functools.partial(grouped.multiply_groups, self.context.b, group)
        return functools.partial(multiply_add, self.context)

    def _sum_excess(self, panels: Matrix) -> Buffer:
        """What A's bytes, each 128 too large, add to each column: 128 times the sum of its numbers in B."""
        context, b, tile = self.context, self.context.b, self.tile
        assert self.group
        multiply, ones = self._find_multiply(), b.constant(-0x7F7F7F80, "i32")  # four times 128
        excess = context.allocate(Type("i32", (tile.panels, tile.columns)))

        def over_panels(panel: Scalar, _: list[Plain]) -> Sequence[Plain]:
            def over_steps(step: Scalar, totals: list[Plain]) -> Sequence[Plain]:
                return [multiply(ones, panels.read(context, (panel, step, b.index(0)), tile.columns), totals[0])]

            zero = [b.zero("i32", tile.columns)]
            total = b.loop(b.index(0), b.index(tile.k), 1, zero, over_steps)[0]
            memory.write_buffer(context, excess, Cursor((panel, b.index(0)), 1, tile.columns), total)
            return []

        b.loop(b.index(0), b.index(tile.panels), 1, [], over_panels)
        return Buffer(excess.pointer, "i32", (tile.n,))

    def _without(self, excess: Buffer | None, cursor: Cursor, total: Plain) -> Plain:
        if excess is None:
            return total
        place = Cursor((cursor.index[1],), 0, cursor.width)
        return self.context.b.binary("subi", total, memory.read_buffer(self.context, excess, place))

    def _find_before(self, sums: Buffer) -> Callable[[Scalar, int, Scalar], None]:
        ahead = None if self.batch else find_ahead(self.kernel, self.operation, self.tile)
        plain = not self.batch and not self.matrices
        following = find_following(self.context, self.tile, Matrix.of(sums)) if plain else None

        def before(row: Scalar, height: int, panel: Scalar) -> None:
            if ahead:
                ahead.ask(row, height, panel)
            if following:
                following.ask(row, height, panel)

        return before

    def _find_reach(self, batch: tuple[Scalar, ...]) -> Reach:
        if batch:
            return Reach(None, None, None)
        depth = furthest(self.context.b, find_reach(self.context, self.a, 1), find_reach(self.context, self.b, 0))
        return Reach(find_reach(self.context, self.a, 0), find_reach(self.context, self.b, 1), depth)

    def _find_bounds(self, rows: Packed, panels: Packed, reach: Reach) -> Bounds:
        """What of the tiles is not known to add zeros: a row of zeros does so where the columns are finite."""
        b, tile = self.context.b, self.tile
        depth = self._steps(reach.depth) if reach.depth else b.index(tile.k)
        height = self._bounded(b.index(tile.m), reach.rows, 1, panels.finite)
        width = tile.strip or tile.columns
        in_panel = tile.columns // width
        strips = self._bounded(b.index(tile.n // width), reach.columns, width, rows.finite)
        if strips.constant is not None or in_panel == 1:
            return Bounds(height, b.index(tile.panels) if in_panel > 1 else strips, b.index(0), depth)
        return Bounds(height, b.integer("divui", strips, in_panel), b.integer("remui", strips, in_panel), depth)

    def _steps(self, depth: Scalar) -> Scalar:
        """The steps that a depth takes."""
        b, size = self.context.b, self.group.size if self.group else 1
        return b.integer("divui", b.integer("addi", depth, size - 1), size) if size > 1 else depth

    def _bounded(self, whole: Scalar, reach: Scalar | None, size: int, finite: Scalar) -> Scalar:
        """How many of the `whole` parts of `size` the reach needs."""
        b = self.context.b
        if reach is None or finite.constant == 0:
            return whole
        parts = b.integer("divui", b.integer("addi", reach, size - 1), size) if size > 1 else reach
        chosen = b.select(finite, parts, whole, 1)
        assert isinstance(chosen, Scalar)
        return chosen

    def _with_zeros(self, total: Plain, depth: Scalar) -> Plain:
        """The total after the zeros that were left out, which only make +0 of -0."""
        if depth.constant == self.tile.k or self.element[0] == "i":
            return total
        return self.context.b.binary("addf", total, floats.filled(self.context.b, total, 0.0, self.element))
