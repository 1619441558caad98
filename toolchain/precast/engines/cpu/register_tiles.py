"""A product's innermost loops: tiles of sums in registers. In: packed operands. Out: the loops' text.

A tile of `rows` × `columns` sums stays in registers while K is run through, a few steps of it in each round.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from precast.engines.cpu import memory
from precast.engines.cpu.context import Context
from precast.engines.cpu.ir import ELEMENT_BITS, element_bytes
from precast.engines.cpu.machine import Machine
from precast.engines.cpu.values import Affine, Buffer, Cursor, Plain, Scalar

_WIDE = 4  # vectors of a panel that is worth taking apart
_STRIP_ROWS = 8  # as many sums as hide the latency of a strip's products
FIRST_LEVEL_BYTES = 1 << 15
Begin = Callable[[Cursor], Plain]
End = Callable[[Cursor, Plain], None]
Multiply = Callable[[Scalar, Plain, Plain], Plain]


@dataclass(frozen=True)
class Tile:
    """The register tile and the sizes of one product."""

    m: int
    n: int
    k: int
    rows: int
    columns: int
    steps: int  # of K in each round
    strip: int  # columns of a strip of a panel, of which few are computed where that is all that is needed; 0: of none

    @property
    def panels(self) -> int:
        return self.n // self.columns

    @property
    def low(self) -> int:
        """The rows of the lower tiles, of which there are at most two, where high ones do not fit."""
        return min(self.m, self.rows * 2 // 3)

    @property
    def in_high(self) -> int:
        """The rows that are in high tiles."""
        return 0 if self.rows > self.m else self.m // (2 * self.rows) * (2 * self.rows)


@dataclass(frozen=True)
class Bounds:
    """How many rows, panels of columns, strips of the panel after them and steps of K are run through."""

    rows: Scalar
    panels: Scalar
    strips: Scalar
    depth: Scalar

    def cover(self, tile: Tile) -> bool:
        """Whether every tile is computed, for all that is known here."""
        known = self.rows.constant, self.panels.constant, self.strips.constant
        return known == (tile.m, tile.panels, 0)


@dataclass(frozen=True)
class Part:
    """Neighbouring columns of a panel, all of them or a strip."""

    panel: Scalar
    first: Scalar
    width: int


@dataclass(frozen=True)
class Matrix:
    """A factor in memory, `strides` elements apart along each dimension."""

    pointer: str
    element: str
    strides: tuple[Scalar | int, ...]
    first: int = 0

    @staticmethod
    def of(buffer: Buffer) -> Matrix:
        return Matrix(buffer.pointer, buffer.element, buffer.strides, buffer.first)

    def find(self, context: Context, index: Sequence[Scalar]) -> str:
        """The address of an element."""
        b = context.b
        linear = b.index(self.first)
        for each, stride in zip(index, self.strides, strict=True):
            linear = b.integer("addi", linear, b.integer("muli", each, stride))
        return b.offset(self.pointer, linear, self.element)

    def read(self, context: Context, index: Sequence[Scalar], width: int) -> Plain:
        """So many neighbours along the last dimension."""
        return self.read_on(context, self.find(context, index), context.b.index(0), width)

    def read_on(self, context: Context, start: str, steps: Scalar, width: int) -> Plain:
        """The same from an address on, `steps` further along K."""
        b = context.b
        distance = b.integer("muli", steps, self.strides[1])
        base = Scalar(b.offset(start, distance, self.element), "ptr")
        place = base if width == 1 else Affine(base, b.index(1), self.element)
        return b.plain(memory.load(context, place, None, None, self.element, width), width)


@dataclass(frozen=True)
class Packed:
    """An operand as the product reads it; `finite` is an i1 that is only set where every element is known to be."""

    matrix: Matrix
    finite: Scalar


def plan_tile(machine: Machine, m: int, n: int, k: int, element: str) -> Tile:
    """Sums in three quarters of the registers, in wide tiles: a load of the panel serves few rows, one of a row more.

    6 × 16 f32 on AVX2, 6 × 64 on AVX-512.
    """
    lanes = machine.lanes(ELEMENT_BITS[element])
    vectors = min(machine.registers // 8, max(1, n // lanes))
    rows, wide = machine.registers * 3 // 4 // vectors, vectors >= _WIDE
    return Tile(m, n, k, rows, min(n, vectors * lanes), min(2, k), lanes if wide else 0)


def multiply_add(context: Context, left: Plain, right: Plain, total: Plain) -> Plain:
    """left · right + total, in one rounding where the machine has that."""
    b = context.b
    left, right = b.match(left, right)
    if total.element[0] == "i":
        return b.binary("addi", total, b.binary("muli", left, right))
    if context.machine.fused:
        return b.like(total, f"math.fma {left.name}, {right.name}, {total.name} : {total.type}")
    return b.binary("addf", total, b.binary("mulf", left, right))


@dataclass(frozen=True)
class Tiles:
    """The tiles of one product of `rows`, [m][k], and `panels`, [n / columns][k][columns]."""

    context: Context
    tile: Tile
    rows: Matrix
    panels: Matrix
    bounds: Bounds
    before: Callable[[Scalar, int, Scalar], None]  # is told each tile's first row, height and panel
    multiply: Multiply  # a number of the rows, what a panel holds of a step, and the sums to which their products go

    def emit(self, begin: Begin, end: End) -> None:
        """`begin` answers what a row of a tile begins with, `end` takes what it adds up to."""
        one = functools.partial(self._one, begin, end)
        if self._panels_stay():
            self._over_rows(lambda row, height: self._over_panels(lambda panel: one(row, height, panel)))
        else:
            self._over_panels(lambda panel: self._over_rows(lambda row, height: one(row, height, panel)))
        if self.bounds.strips.constant is None:
            self._over_strips(lambda strip: self._over_rows(lambda row, height: one(row, height, strip), True))

    def _panels_stay(self) -> bool:
        """Whether all panels stay in the first-level cache while rows pass by; else one does while all rows pass by."""
        tile = self.tile
        return tile.k * tile.n * element_bytes(self.panels.element) <= FIRST_LEVEL_BYTES

    def _over_panels(self, run: Callable[[Part], None]) -> None:
        b = self.context.b

        def body(panel: Scalar, _: list[Plain]) -> Sequence[Plain]:
            run(Part(panel, b.index(0), self.tile.columns))
            return []

        b.loop(b.index(0), self.bounds.panels, 1, [], body)

    def _over_strips(self, run: Callable[[Part], None]) -> None:
        b, width = self.context.b, self.tile.strip

        def body(strip: Scalar, _: list[Plain]) -> Sequence[Plain]:
            run(Part(self.bounds.panels, b.integer("muli", strip, width), width))
            return []

        b.loop(b.index(0), self.bounds.strips, 1, [], body)

    def _over_rows(self, run: Callable[[Scalar, int], None], narrow: bool = False) -> None:
        for first, last, height in self._heights(narrow):

            def body(row: Scalar, _: list[Plain], height: int = height) -> Sequence[Plain]:
                run(row, height)
                return []

            self.context.b.loop(first, last, height, [], body)

    def _heights(self, narrow: bool) -> Iterator[tuple[Scalar, Scalar, int]]:
        """The rows from the first to the last in tiles of a height."""
        b, tile = self.context.b, self.tile
        if narrow:
            yield b.index(0), self.bounds.rows, min(_STRIP_ROWS, tile.m)
            return
        high = tile.in_high
        yield b.index(0), b.integer("minsi", self.bounds.rows, high), tile.rows
        if high < tile.m:
            yield b.index(high), self.bounds.rows, tile.low

    def _one(self, begin: Begin, end: End, row: Scalar, height: int, part: Part) -> None:
        b = self.context.b
        with self.context.scope():
            column = b.integer("addi", b.integer("muli", part.panel, self.tile.columns), part.first)
            lane = None if part.width == 1 else 1
            places = [Cursor((b.integer("addi", row, r), column), lane, part.width) for r in range(height)]
            steps = self.tile.steps
            if part.width == self.tile.columns:
                self.before(row, height, part.panel)
            start = b.index(0)
            lefts = [self._find_row(each.index[0]) for each in places]
            right = self.panels.find(self.context, (part.panel, start, part.first))

            def round_(k: Scalar, totals: list[Plain]) -> Sequence[Plain]:
                for step in range(steps):
                    totals = self._step(lefts, right, b.integer("addi", k, step), part.width, totals)
                return totals

            totals = b.loop(start, self.bounds.depth, steps, [begin(each) for each in places], round_)
            for each, total in zip(places, totals, strict=True):
                end(each, total)

    def _find_row(self, row: Scalar) -> str:
        """Where a row begins: in a register of its own where LLVM would add up strides in the innermost loop."""
        b = self.context.b
        address = self.rows.find(self.context, (row, b.index(0)))
        return address if isinstance(self.rows.strides[0], int) else b.hidden(Scalar(address, "ptr")).name

    def _step(self, lefts: list[str], right: str, k: Scalar, width: int, totals: list[Plain]) -> list[Plain]:
        """The products of one column of the rows with one row of the panel, both of which begin at these addresses."""
        factor = self.panels.read_on(self.context, right, k, width)
        return [self._add(left, k, factor, total) for left, total in zip(lefts, totals, strict=True)]

    def _add(self, start: str, k: Scalar, right: Plain, total: Plain) -> Plain:
        left = self.rows.read_on(self.context, start, k, 1)
        assert isinstance(left, Scalar)
        return self.multiply(left, right, total)
