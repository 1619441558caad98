"""A product's factors as its tiles read them. In: two lazy matrices. Out: buffers of packed rows and panels.

A is packed row-major and B in panels of a tile's columns, widened to the type of the sum, or in words of neighbours
along K where the machine multiplies such.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from precast.engines.cpu import floats, grouped, memory, nests, shapes, tiles
from precast.engines.cpu.conditions import find_conditions, separable, transfer
from precast.engines.cpu.context import Context
from precast.engines.cpu.grouped import Group
from precast.engines.cpu.ir import Type, Value, element_bytes
from precast.engines.cpu.register_tiles import FIRST_LEVEL_BYTES, Matrix, Packed, Tile, multiply_add
from precast.engines.cpu.sources import Source, find_source
from precast.engines.cpu.values import Buffer, Cursor, Form, Plain, Scalar

Write = Callable[[Cursor, Form], None]
# Rows this far apart, or a multiple of it, push one another out of caches; narrow tiles read them more often.
_FAR_BYTES, _FAR_BYTES_NARROW = 1 << 13, 1 << 12


@dataclass(frozen=True)
class Reach:
    """From where on the rows of A, the columns of B and the steps of both are zero; None where none is known to be."""

    rows: Scalar | None
    columns: Scalar | None
    depth: Scalar | None


@dataclass(frozen=True)
class Factors:
    """The factors of one product, of which the matrices at the indices `batch` are packed at a time."""

    context: Context
    a: Value
    b: Value
    element: str  # of the sums
    tile: Tile
    group: Group | None
    batch: tuple[Scalar, ...]

    # Where they lie.

    def find_rows(self, reach: Reach) -> Packed:
        """A where it lies, if all that is read of it is there and columns beyond a reach need not be left out."""
        b, tile = self.context.b, self.tile
        size = self.group.size if self.group else 1
        depth = b.index(tile.k * size) if self.group else self._find_depth(reach)
        source = self._find_source(self.a, (b.index(tile.m), depth))
        if source is None:
            return self.pack_rows()
        element = self.a.type.element
        bytes_ = b.integer("muli", source.stride, element_bytes(element))
        far = _FAR_BYTES if self.group or tile.strip else _FAR_BYTES_NARROW
        near = b.compare("ne", b.integer("andi", bytes_, far - 1), b.index(0))
        lying = Matrix(source.base.name, element, (source.stride, size))
        return self._choose(lying, [source.allowed, near, *self._reaches(reach.columns, tile.n)], self.pack_rows)

    def find_panels(self, reach: Reach) -> Packed:
        """B where it lies, if it is small and its rows are close to one another."""
        b, tile = self.context.b, self.tile
        small = tile.k * tile.n * element_bytes(self.element) <= FIRST_LEVEL_BYTES
        source = self._find_source(self.b, (self._find_depth(reach), b.index(tile.n))) if small else None
        if source is None:
            return self.pack_panels()
        close = b.compare("ult", source.stride, b.index(2 * tile.n + 1))
        lying = Matrix(source.base.name, self.element, (tile.columns, source.stride, 1))
        return self._choose(lying, [source.allowed, close, *self._reaches(reach.rows, tile.m)], self.pack_panels)

    def _find_source(self, value: Value, extents: tuple[Scalar, Scalar]) -> Source | None:
        """Where a factor lies as it is multiplied, if it does: of matrices of words, A."""
        if self.batch or (self.group and not (self.group.matrices and value is self.a)):
            return None
        return find_source(self.context, value, value.type.element if self.group else self.element, extents)

    def _find_depth(self, reach: Reach) -> Scalar:
        """How far along K is read."""
        b, steps = self.context.b, self.tile.steps
        if reach.depth is None:
            return b.index(self.tile.k)
        return b.integer("andi", b.integer("addi", reach.depth, steps - 1), -steps) if steps > 1 else reach.depth

    def _choose(self, lying: Matrix, conditions: Sequence[Plain], pack: Callable[[], Packed]) -> Packed:
        """The factor as it lies where all conditions hold, else packed."""
        context, b = self.context, self.context.b
        allowed = b.plain(functools.reduce(lambda x, y: b.binary("andi", x, y), conditions), 1)
        assert isinstance(allowed, Scalar)

        def fields(factor: Packed) -> list[Plain]:
            strides = [b.integer("addi", b.index(0), each) for each in factor.matrix.strides[:-1]]
            return [Scalar(factor.matrix.pointer, "ptr"), *strides, factor.finite]

        here = fields(Packed(lying, self._known_finite()))
        pointer, *strides, finite = context.branch(allowed, here, lambda: here, lambda: fields(pack()))
        known = [each for each in (*strides, finite) if isinstance(each, Scalar)]
        return Packed(Matrix(pointer.name, lying.element, (*known[:-1], lying.strides[-1])), known[-1])

    def _reaches(self, count: Scalar | None, size: int) -> list[Plain]:
        return [] if count is None else [self.context.b.compare("sge", count, self.context.b.index(size))]

    def pack_rows(self) -> Packed:
        """A as [m][k]."""
        if self.group:
            return self._pack_row_words(self.group)
        tile, place = self.tile, self.context.places.get(self.a)
        if isinstance(place, Buffer) and place.element == self.element and not self.batch:
            return Packed(Matrix.of(place), self._known_finite())
        if self._has_columns():
            return self._find_columns()
        buffer = self.context.allocate(Type(self.element, (tile.m, tile.k)))

        def write(cursor: Cursor, form: Form) -> None:
            memory.write_buffer(self.context, buffer, cursor, form)

        return Packed(Matrix.of(buffer), self._pack(self.a, 0, write))

    def _has_columns(self) -> bool:
        """Whether A is another matrix turned, which is small."""
        tile = self.tile
        turned = shapes.is_turned(self.a) and self.a not in self.context.places
        small = tile.m * tile.k * element_bytes(self.element) <= FIRST_LEVEL_BYTES
        return turned and small and tiles.find_source_axis(self.context, self.a, 1) == 0

    def _find_columns(self) -> Packed:
        """A as [k][m]: where it lies if it is in a buffer."""
        assert self.a.definition
        source, tile = self.a.definition.operands[0], self.tile
        place = self.context.places.get(source)
        finite = self._known_finite()
        if not isinstance(place, Buffer) or place.element != self.element:
            place = self.context.allocate(Type(self.element, (tile.k, tile.m)))
            plan = nests.plan_nest(self.context, place.shape, 1, nests.widest_bits([source]))
            buffer = place

            def body(cursor: Cursor, _: list[Plain]) -> Sequence[Plain]:
                form = self._widen(source, self.context.evaluate(source, cursor), cursor.width)
                memory.write_buffer(self.context, buffer, cursor, form)
                return []

            nests.emit_nest(self.context, plan, [source], body)
        step, one = place.strides
        return Packed(Matrix(place.pointer, self.element, (one, step), place.first), finite)

    def pack_panels(self) -> Packed:
        """B as [n / columns][k][columns]."""
        tile = self.tile
        if self.group:
            return self._pack_panel_words(self.group)
        buffer = self.context.allocate(Type(self.element, (tile.panels, tile.k, tile.columns)))
        return Packed(
            Matrix.of(buffer),
            self._pack(self.b, tile.columns, lambda cursor, form: self._write_panel(buffer, cursor, form)),
        )

    def _write_panel(self, buffer: Buffer, cursor: Cursor, form: Form) -> None:
        b, tile = self.context.b, self.tile
        panel, column = (b.integer(name, cursor.index[1], tile.columns) for name in ("divui", "remui"))
        inner = Cursor((panel, cursor.index[0], column), 2 if cursor.lane is not None else None, cursor.width)
        memory.write_buffer(self.context, buffer, inner, form)

    def _known_finite(self) -> Scalar:
        return self.context.b.constant(int(self.element[0] == "i"), "i1")

    def _pack(self, value: Value, width: int, write: Write) -> Scalar:
        """Writes a factor, widened, where it is wanted; whether all of it is known to be finite."""
        along = None if self.batch else tiles.find_source_axis(self.context, value, 1)
        if along is not None:
            # Widened when turned: shuffles move twice as many narrow elements at a time.
            tiles.emit_turned(
                self.context, value, along, 1, [], lambda cursor: self.context.plain(value, cursor),
                lambda cursor, turned: write(cursor, self._widen(value, turned, cursor.width)),
            )  # fmt: skip
            return self._known_finite()
        plan = nests.plan_nest(self.context, value.type.shape[-2:], 1, nests.widest_bits([value]), width)

        def body(cursor: Cursor, zeros: list[Plain]) -> Sequence[Plain]:
            place = self._full(cursor)
            form = self._widen(value, self.context.evaluate(value, place), place.width)
            write(cursor, form)
            return [self._times_zero(form, each) for each in zeros]

        conditions = find_conditions(self.context, self._full(plan.cursor), [value])
        watched = self.element[0] != "i" and not self.batch and bool(conditions)
        zero = [self.context.b.zero(self.element, plan.cursor.width)] if watched else []
        sums = nests.emit_conditions(self.context, plan, conditions, body, zero)
        return self._is_zero(sums[0]) if sums else self._known_finite()

    def _full(self, cursor: Cursor) -> Cursor:
        lane = None if cursor.lane is None else cursor.lane + len(self.batch)
        return Cursor((*self.batch, *cursor.index), lane, cursor.width)

    def _widen(self, value: Value, form: Form, width: int) -> Form:
        """An element of the value, or `width` of them, as the sums have it."""
        if value.type.element == self.element:
            return form
        plain = self.context.b.plain(form, width)
        if value.type.is_float:
            return floats.convert(self.context.b, plain, self.element)
        return self.context.b.resize(plain, self.element)

    # Numbers that are not finite.

    def _times_zero(self, form: Form, total: Plain) -> Plain:
        """total + 0 · form: NaN as soon as something was not finite."""
        if isinstance(form, Scalar) and form.constant is not None and math.isfinite(form.constant):
            return total
        b = self.context.b
        zero = floats.filled(b, total, 0.0, self.element)
        return multiply_add(self.context, b.match(form, total)[0], zero, total)

    def _is_zero(self, total: Plain) -> Scalar:
        b = self.context.b
        mask = b.compare("oeq", total, floats.filled(b, total, 0.0, self.element))
        if isinstance(mask, Scalar):
            return mask
        return b.scalar(f"vector.reduction <and>, {mask.name} : {mask.type} into i1", "i1")

    # Words.

    def _pack_row_words(self, group: Group) -> Packed:
        """A's rows as they are, or its bytes as unsigned ones; a word's neighbours lie beside one another."""
        context, tile, type_ = self.context, self.tile, self.a.type
        place = context.places.get(self.a)
        if not isinstance(place, Buffer) or group.unsigned or self.batch or place.turned:
            place = context.allocate(Type(type_.element, type_.shape[-2:]))
            self._copy_rows(group, place)
        rows = Buffer(place.pointer, "i32", (tile.m, tile.k))
        if group.matrices:
            rows = Buffer(place.pointer, type_.element, (tile.m, tile.k), (tile.k * group.size, group.size))
        return Packed(Matrix.of(rows), self._known_finite())

    def _copy_rows(self, group: Group, buffer: Buffer) -> None:
        context = self.context

        def read(cursor: Cursor) -> Plain:
            form = context.plain(self.a, cursor)
            return grouped.as_unsigned(context.b, form) if group.unsigned else form

        def write(cursor: Cursor, form: Form) -> None:
            memory.write_buffer(context, buffer, cursor, form)

        along = None if self.batch else tiles.find_source_axis(context, self.a, 1)
        if along is not None:
            tiles.emit_turned(context, self.a, along, 1, [], read, write)
            return
        nest = nests.plan_nest(context, buffer.shape, 1)

        def body(cursor: Cursor, _: list[Plain]) -> Sequence[Plain]:
            write(cursor, read(self._full(cursor)))
            return []

        nests.emit_conditions(context, nest, find_conditions(context, self._full(nest.cursor), [self.a]), body)

    def _pack_panel_words(self, group: Group) -> Packed:
        """B as [n / columns][k / group][columns] words."""
        context, b, tile = self.context, self.context.b, self.tile
        buffer = context.allocate(Type("i32", (tile.panels, tile.k, tile.columns)))

        def write(cursor: Cursor, form: Form) -> None:
            word = b.integer("divui", cursor.index[0], group.size)
            self._write_panel(buffer, cursor.at(0, word), form)

        if not self.batch and tiles.find_source_axis(context, self.b, 1) == 0:
            tiles.emit_turned(
                context, self.b, 0, 1, [], lambda cursor: context.plain(self.b, cursor), write, group.size
            )
        else:
            self._join_rows(group, write)
        return Packed(Matrix.of(buffer), self._known_finite())

    def _join_rows(self, group: Group, write: Write) -> None:
        context, tile = self.context, self.tile
        shape = (tile.k * group.size, tile.n)
        nest = replace(nests.plan_nest(context, shape, 1, width=tile.columns), steps=(group.size, tile.columns))
        conditions = separable(find_conditions(context, self._full(nest.cursor), [self.b]), nest.cursor.index)

        def body(cursor: Cursor, _: list[Plain]) -> Sequence[Plain]:
            rows = []
            for number in range(group.size):
                index = context.b.integer("addi", cursor.index[0], number)
                if number:
                    transfer(context, conditions, cursor.index[0].name, index)
                rows.append(context.plain(self.b, self._full(cursor.at(0, index))))
            write(cursor, grouped.join_rows(context.b, rows, tile.columns))
            return []

        nests.emit_conditions(context, nest, conditions, body)
