"""A product's innermost loops where registers hold matrices (AMX). In: packed words. Out: the loops' text.

Such a register has 16 rows of 16 words: of sums; of A, whose words are neighbours along K; of a panel of B, whose rows
are steps of K. Four of sums stay while K is run through.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from precast.engines.cpu.context import Context
from precast.engines.cpu.grouped import Group
from precast.engines.cpu.ir import element_bytes
from precast.engines.cpu.register_tiles import Bounds, Matrix, Tile
from precast.engines.cpu.values import Plain, Scalar

_SIDE = 16  # rows of a register, and words of a row
_AT_ONCE = 2  # registers of sums beside one another, and below one another
_WORD_BYTES = 4
_TYPE = "!llvm.x86_amx"


def plan_matrix_tile(m: int, n: int, k: int) -> Tile:
    """32 rows of sums, or what there is of them, in panels of a register's columns; K is counted in words."""
    return Tile(m, n, k, min(m, _AT_ONCE * _SIDE), _SIDE, min(k, _SIDE), 0)


@dataclass(frozen=True)
class MatrixTiles:
    """The tiles of one product of `rows`, [m][k], and `panels`, [n / columns][k][columns], added to `sums`, [m][n]."""

    context: Context
    tile: Tile
    group: Group
    rows: Matrix
    panels: Matrix
    sums: Matrix
    bounds: Bounds

    def emit(self, from_zero: bool) -> None:
        """Adds to what the sums are, or, where that is told, to zero.

        A's rows, which may be far apart, are loaded for all panels, which are packed, one after the other.
        """
        b = self.context.b

        def over_panels(row: Scalar, _: list[Plain]) -> Sequence[Plain]:
            def over_panel(panel: Scalar, _: list[Plain]) -> Sequence[Plain]:
                with self.context.scope():
                    self._one(from_zero, row, panel)
                return []

            b.loop(b.index(0), self.bounds.panels, min(_AT_ONCE, self.tile.panels), [], over_panel)
            return []

        b.loop(b.index(0), self.bounds.rows, self.tile.rows, [], over_panels)

    def _one(self, from_zero: bool, row: Scalar, panel: Scalar) -> None:
        b, tile = self.context.b, self.tile
        below = [b.integer("addi", row, down) for down in range(0, tile.rows, _SIDE)]
        beside = [b.integer("addi", panel, number) for number in range(min(_AT_ONCE, tile.panels))]
        places = [(down, b.integer("muli", each, _SIDE)) for down in below for each in beside]
        height = min(_SIDE, tile.m)

        def round_(k: Scalar, totals: list[Plain]) -> Sequence[Plain]:
            """Each factor is loaded right before its first product: loads and products run beside one another."""
            rights: dict[Scalar, Scalar] = {}
            added = []
            for number, down in enumerate(below):
                left = self._load(self.rows, (down, k), height, tile.steps)
                for total, each in zip(totals[number * len(beside) :], beside, strict=False):
                    if each not in rights:
                        rights[each] = self._load(self.panels, (each, k, b.index(0)), tile.steps)
                    added.append(self._multiply(height, left, rights[each], total))
            return added

        starts = [self._zero(height) if from_zero else self._load(self.sums, place, height) for place in places]
        totals = b.loop(b.index(0), self._depth(), tile.steps, starts, round_)
        for place, total in zip(places, totals, strict=True):
            self._store(place, height, total)

    def _depth(self) -> Scalar:
        """As far as K is run through: at least one step of zeros, which make +0 of -0, where some are left out."""
        b, depth, steps = self.context.b, self.bounds.depth, self.tile.steps
        if depth.constant is not None:
            return b.index(self.tile.k)
        whole = b.integer("addi", b.integer("andi", depth, -steps), steps)
        return b.integer("minsi", whole, self.tile.k)

    # Instructions. All are told the rows of a register and the bytes of a row.

    def _zero(self, height: int) -> Scalar:
        return self._matrix(self._call("llvm.x86.tilezero.internal", (height, _SIDE * _WORD_BYTES)))

    def _load(self, matrix: Matrix, index: tuple[Scalar, ...], height: int, words: int = _SIDE) -> Scalar:
        size, place = (height, words * _WORD_BYTES), self._find_place(matrix, index)
        return self._matrix(self._call("llvm.x86.tileloadd64.internal", size, *place))

    def _store(self, index: tuple[Scalar, ...], height: int, total: Plain) -> None:
        size, place = (height, _SIDE * _WORD_BYTES), self._find_place(self.sums, index)
        self.context.b.line(self._call("llvm.x86.tilestored64.internal", size, *place, total) + "()")

    def _multiply(self, height: int, left: Scalar, right: Scalar, total: Plain) -> Plain:
        sizes = (height, _SIDE * _WORD_BYTES, self.tile.steps * _WORD_BYTES)
        return self._matrix(self._call(self.group.instruction, sizes, total, left, right))

    def _matrix(self, call: str) -> Scalar:
        return self.context.b.scalar(call + _TYPE, "matrix")

    def _call(self, instruction: str, sizes: Sequence[int], *operands: Plain) -> str:
        """A call, but for the type of its result."""
        given = [*(self.context.b.constant(each, "i16") for each in sizes), *operands]
        names, types = (", ".join(getattr(each, name) for each in given) for name in ("name", "type"))
        return f'llvm.call_intrinsic "{instruction}"({names}) : ({types}) -> '

    def _find_place(self, matrix: Matrix, index: tuple[Scalar, ...]) -> tuple[Scalar, Scalar]:
        """The address of an element, and the bytes from a row to the next."""
        b = self.context.b
        distance = b.integer("muli", b.index(element_bytes(matrix.element)), matrix.strides[-2])
        return Scalar(matrix.find(self.context, index), "ptr"), distance
