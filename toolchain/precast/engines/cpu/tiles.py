"""Tiles turned in registers: read along one dimension, written along another. In: a value. Out: loops over tiles.

Where loads are contiguous along one dimension and the target along another, a gather or scatter would touch one element
at a time; a square tile is read in vectors, transposed with shuffles, and written in vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from precast.engines.cpu import nests
from precast.engines.cpu.builder import Builder
from precast.engines.cpu.conditions import find_conditions, separable, transfer
from precast.engines.cpu.context import Context
from precast.engines.cpu.ir import ELEMENT_BITS, Value
from precast.engines.cpu.strides import Strides
from precast.engines.cpu.values import Cursor, Plain, Vector

Write = Callable[[Cursor, Vector], None]


def tile_size(value: Value) -> int:
    """Rows and columns of a tile: eight, or four of 64-bit elements."""
    return 4 if ELEMENT_BITS[value.type.element] == 64 else 8


def find_source_axis(context: Context, value: Value, target: int | None) -> int | None:
    """The dimension to read `value` along when it is to be written along `target`; None when they are the same."""
    shape = value.type.shape
    size = tile_size(value)
    strides = Strides(context)
    if target is None or shape[target] < size or strides.smooth(value, target):
        return None
    for axis in reversed(range(len(shape))):
        if axis != target and shape[axis] >= size and strides.smooth(value, axis):
            return axis
    return None


def emit_turned(
    context: Context,
    value: Value,
    along: int,
    across: int,
    roots: Sequence[Value],
    read: Callable[[Cursor], Plain],
    write: Write,
    group: int = 1,
    inner: int | None = None,
) -> None:
    """Reads tiles along `along` and writes them along `across`; `roots` are what `write` evaluates itself.

    Tiles follow one another along `along`, or along `inner`.

    With `group`, so many neighbours along `along` stay together, as the bits of one integer.
    """
    size = tile_size(value)
    nest = nests.plan_tiles(context, value.type.shape, along, across, size, group, inner)
    target = Cursor(nest.cursor.index, across, size)
    found = find_conditions(context, nest.cursor, [value]) + find_conditions(context, target, roots)
    conditions = separable(found, [nest.cursor.index[along], nest.cursor.index[across]])

    def moved(cursor: Cursor, axis: int, lane: int, distance: int) -> Cursor:
        index = context.b.integer("addi", cursor.index[axis], distance)
        if distance:
            transfer(context, conditions, cursor.index[axis].name, index)
        places = (*cursor.index[:axis], index, *cursor.index[axis + 1 :])
        return Cursor(places, lane, size * (group if lane == along else 1))

    def body(cursor: Cursor, _: list[Plain]) -> Sequence[Plain]:
        rows = [context.b.vector(read(moved(cursor, across, along, row)), size * group) for row in range(size)]
        for column, vector in enumerate(transpose(context.b, [_grouped(context.b, each, group) for each in rows])):
            write(moved(cursor, along, across, column * group), vector)
        return []

    nests.emit_conditions(context, nest, conditions, body)


def _grouped(b: Builder, row: Vector, group: int) -> Vector:
    element = f"i{group * ELEMENT_BITS[row.element]}"
    lanes = row.width // group
    return (
        row
        if group == 1
        else Vector(b.emit(f"vector.bitcast {row.name} : {row.type} to vector<{lanes}x{element}>"), element, lanes)
    )


def transpose(b: Builder, rows: list[Vector]) -> list[Vector]:
    """A square of vectors transposed: blocks of 128 bits change places, what is in a block is interleaved.

    x86 has one instruction for each of these steps.
    """
    rows = list(rows)
    inside = min(len(rows), max(1, 128 // ELEMENT_BITS[rows[0].element]))
    half = len(rows) // 2
    while half >= inside:
        for first in (row for row in range(len(rows)) if not row & half):
            rows[first], rows[first + half] = _exchange(b, rows[first], rows[first + half], half)
        half //= 2
    groups = [rows[first : first + inside] for first in range(0, len(rows), inside)]
    return [row for group in groups for row in _interleave_blocks(b, group)]


def _exchange(b: Builder, x: Vector, y: Vector, half: int) -> tuple[Vector, Vector]:
    """Every second block of `half` lanes of one vector for the block before it of the other."""
    lanes = range(x.width)
    low = [lane if not lane & half else lane - half + x.width for lane in lanes]
    high = [lane + half if not lane & half else lane + x.width for lane in lanes]
    return b.shuffle(x, y, low), b.shuffle(x, y, high)


def _interleave_blocks(b: Builder, rows: list[Vector]) -> list[Vector]:
    """Transposes each square of as many lanes as there are rows: in log₂ rounds, the one half with the other."""
    count = len(rows)
    for _ in range(count.bit_length() - 1):
        pairs = zip(rows[: count // 2], rows[count // 2 :], strict=True)
        rows = [_interleave(b, x, y, count, side) for x, y in pairs for side in (0, count // 2)]
    return rows


def _interleave(b: Builder, x: Vector, y: Vector, block: int, side: int) -> Vector:
    """Lanes of x and y in turn: of each block the half that begins at `side`."""
    firsts = [start + side + lane for start in range(0, x.width, block) for lane in range(block // 2)]
    return b.shuffle(x, y, [lane + other for lane in firsts for other in (0, x.width)])
