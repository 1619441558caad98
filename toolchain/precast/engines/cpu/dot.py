"""`tt.dot`. In: the op. Out: packed operands and a register-tiled product, added up in a buffer.

A is packed row-major and B in panels of `columns` columns, both widened to the type of the sum; a tile of
`rows` × `columns` sums stays in registers while K is run through. tf32 products are made in full f32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from precast.engines.cpu import floats, memory, nests, tiles
from precast.engines.cpu.conditions import find_conditions
from precast.engines.cpu.errors import refuse
from precast.engines.cpu.ir import ELEMENT_BITS, Op, Type, Value
from precast.engines.cpu.kernel import Kernel
from precast.engines.cpu.machine import Machine
from precast.engines.cpu.values import Buffer, Cursor, Form, Plain, Scalar, Vector


@dataclass(frozen=True)
class Tile:
    """The register tile and the sizes of one product."""

    m: int
    n: int
    k: int
    rows: int
    columns: int


def plan_tile(machine: Machine, m: int, n: int, k: int, element: str) -> Tile:
    """Two native vectors of columns; as many rows as registers allow: 4 × 16 f32 on AVX2, 8 × 32 on AVX-512."""
    columns = min(n, 2 * machine.lanes(ELEMENT_BITS[element]))
    rows = min(m, 8 if machine.registers == 32 else 4)
    return Tile(m, n, k, rows, columns)


def lower_dot(kernel: Kernel, operation: Op) -> None:
    _Product(kernel, operation).lower()


class _Product:
    def __init__(self, kernel: Kernel, operation: Op) -> None:
        self.kernel = kernel
        self.context = kernel.context
        self.operation = operation
        self.a, self.b, self.c = operation.operands
        self.element = self._sum_element()
        *batch, m, k = self.a.type.shape
        self.batch = tuple(batch)
        self.tile = plan_tile(self.context.machine, m, self.b.type.shape[-1], k, self.element)

    def _sum_element(self) -> str:
        """The type of products and sums."""
        element = self.a.type.element
        if not self.a.type.is_float:
            if ELEMENT_BITS[self.c.type.element] < 32:
                raise refuse(self.operation, f"sums of type {self.c.type.element}")
            return self.c.type.element
        return "f64" if element == "f64" else "f32"

    def lower(self) -> None:
        sums = self._start_sums()
        if not self.batch:
            self._multiply(sums, ())
        else:
            self._over_batch(sums, ())
        self.context.places[self.operation.result] = self._finish_sums(sums)

    def _over_batch(self, sums: Buffer, index: tuple[Scalar, ...]) -> None:
        def body(each: Scalar, _: list[Plain]) -> Sequence[Plain]:
            indices = (*index, each)
            if len(indices) == len(self.batch):
                self._multiply(sums, indices)
            else:
                self._over_batch(sums, indices)
            return []

        self.context.count(self.batch[len(index)], body)

    # The sums' buffer.

    def _start_sums(self) -> Buffer:
        """A buffer that holds the operand c: its own where this product alone reads it, else a copy."""
        value = self.c
        if value.type.element != self.element:
            return self._converted(value, self.element)
        place = self.context.places.get(value)
        if isinstance(place, Buffer) and self._is_last_use(value, place):
            return place
        target = self._target_in_place(value)
        buffer = target or self.context.allocate(value.type)
        self.kernel.write_value(self.kernel, value, buffer)
        return buffer

    def _is_last_use(self, value: Value, place: Buffer) -> bool:
        """Whether the buffer may be overwritten: this product's c alone reads it, and no other value lives there."""
        analysis = self.kernel.analysis
        factors = {each for operand in (self.a, self.b) for each, _ in analysis.buffers_read(operand)}
        if value in factors or place.pointer in self.context.shared:
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

    def _converted(self, value: Value, element: str) -> Buffer:
        buffer = self.context.allocate(value.type.with_element(element))
        nest = nests.plan_nest(self.context, value.type.shape, nests.last_wide_dimension(value.type.shape))

        def body(cursor: Cursor, _: list[Plain]) -> Sequence[Plain]:
            form = floats.convert(self.context.b, self.context.plain(value, cursor), element)
            memory.write_buffer(self.context, buffer, cursor, form)
            return []

        nests.emit_nest(self.context, nest, [value], body)
        return buffer

    def _finish_sums(self, sums: Buffer) -> Buffer:
        result = self.operation.result.type
        if result.element == self.element:
            return sums
        wide = Value(result.with_element(self.element))
        self.context.places[wide] = sums
        return self._converted(wide, result.element)

    # Packing.

    def _widen(self, value: Value, cursor: Cursor) -> Form:
        form = self.context.evaluate(value, cursor)
        if value.type.element == self.element:
            return form
        plain = self.context.b.plain(form, cursor.width)
        if value.type.is_float:
            return floats.convert(self.context.b, plain, self.element)
        return self.context.b.resize(plain, self.element)

    def _pack_rows(self, batch: tuple[Scalar, ...]) -> Buffer:
        """A as [m][k]."""
        place = self.context.places.get(self.a)
        if isinstance(place, Buffer) and place.element == self.element and not batch:
            return place
        tile = self.tile
        buffer = self.context.allocate(Type(self.element, (tile.m, tile.k)))

        def write(cursor: Cursor, form: Form) -> None:
            memory.write_buffer(self.context, buffer, cursor, form)

        self._pack(self.a, (tile.m, tile.k), batch, 1, 0, write)
        return buffer

    def _pack_panels(self, batch: tuple[Scalar, ...]) -> Buffer:
        """B as [n / columns][k][columns]."""
        tile = self.tile
        buffer = self.context.allocate(Type(self.element, (tile.n // tile.columns, tile.k, tile.columns)))
        b = self.context.b

        def write(cursor: Cursor, form: Form) -> None:
            panel, column = (b.integer(name, cursor.index[1], tile.columns) for name in ("divui", "remui"))
            inner = Cursor((panel, cursor.index[0], column), 2 if cursor.lane is not None else None, cursor.width)
            memory.write_buffer(self.context, buffer, inner, form)

        self._pack(self.b, (tile.k, tile.n), batch, 1, tile.columns, write)
        return buffer

    def _pack(
        self, value: Value, shape: tuple[int, int], batch: tuple[Scalar, ...], lane: int, width: int,
        write: Callable[[Cursor, Form], None],
    ) -> None:  # fmt: skip
        along = None if batch else tiles.find_source_axis(self.context, value, lane)
        if along is not None:
            tiles.emit_turned(
                self.context, value, along, lane, [],
                lambda cursor: self.context.b.plain(self._widen(value, cursor), cursor.width), write,
            )  # fmt: skip
            return
        plan = nests.plan_nest(self.context, shape, lane, nests.widest_bits([value]), width)

        def full(cursor: Cursor) -> Cursor:
            shifted = None if cursor.lane is None else cursor.lane + len(batch)
            return Cursor((*batch, *cursor.index), shifted, cursor.width)

        def body(cursor: Cursor, _: list[Plain]) -> Sequence[Plain]:
            write(cursor, self._widen(value, full(cursor)))
            return []

        conditions = find_conditions(self.context, full(plan.cursor), [value])
        nests.emit_conditions(self.context, plan, conditions, body)

    # The product.

    def _multiply(self, sums: Buffer, batch: tuple[Scalar, ...]) -> None:
        with self.context.region():
            rows, panels = self._pack_rows(batch), self._pack_panels(batch)
            tile = self.tile

            def over_panels(panel: Scalar, _: list[Plain]) -> Sequence[Plain]:
                self.context.b.loop(
                    self.context.b.index(0), self.context.b.index(tile.m), tile.rows, [],
                    lambda row, _: self._tile_product(sums, batch, rows, panels, panel, row),
                )  # fmt: skip
                return []

            self.context.count(tile.n // tile.columns, over_panels)

    def _tile_product(
        self, sums: Buffer, batch: tuple[Scalar, ...], rows: Buffer, panels: Buffer, panel: Scalar, row: Scalar
    ) -> Sequence[Plain]:
        b, tile = self.context.b, self.tile
        column = b.integer("muli", panel, tile.columns)
        lane = None if tile.columns == 1 else len(batch) + 1

        def place(r: int) -> Cursor:
            return Cursor((*batch, b.integer("addi", row, r), column), lane, tile.columns)

        start = [b.plain(memory.read_buffer(self.context, sums, place(r)), tile.columns) for r in range(tile.rows)]

        def step(k: Scalar, carried: list[Plain]) -> Sequence[Plain]:
            inner = Cursor((panel, k, b.index(0)), None if lane is None else 2, tile.columns)
            right = b.plain(memory.read_buffer(self.context, panels, inner), tile.columns)
            return [self._add_product(rows, row, r, k, right, carried[r]) for r in range(tile.rows)]

        totals = b.loop(b.index(0), b.index(tile.k), 1, start, step)
        for r, total in enumerate(totals):
            memory.write_buffer(self.context, sums, place(r), total)
        return []

    def _add_product(self, rows: Buffer, row: Scalar, r: int, k: Scalar, right: Plain, total: Plain) -> Plain:
        b = self.context.b
        left: Plain = b.plain(
            memory.read_buffer(self.context, rows, Cursor((b.integer("addi", row, r), k), None, 1)), 1
        )
        if isinstance(right, Vector):
            left = b.vector(left, right.width)
        if self.element[0] == "i":
            return b.binary("addi", total, b.binary("muli", left, right))
        if self.context.machine.fused:
            return b.like(total, f"math.fma {left.name}, {right.name}, {total.name} : {total.type}")
        return b.binary("addf", total, b.binary("mulf", left, right))
