"""What the next round of a loop loads for a product, asked for meanwhile. In: the product and its loop. Out: text.

Each tile of sums asks for its share of the lines, so that they come while products are made. Where an address cannot be
told yet, nothing is asked for; a wrong one does no harm.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from precast.engines.cpu import shapes
from precast.engines.cpu.context import Context
from precast.engines.cpu.ir import Op, Value, element_bytes
from precast.engines.cpu.kernel import Kernel
from precast.engines.cpu.register_tiles import FIRST_LEVEL_BYTES, Matrix, Tile
from precast.engines.cpu.steps import advanced, find_steps
from precast.engines.cpu.strides import Strides
from precast.engines.cpu.values import Affine, Cursor, Plain, Scalar, Shifted

_LINE, _WORTH_IT = 64, 1 << 15  # bytes; less than that is soon there
_TO_SECOND_LEVEL = "{cache = 1 : i32, hint = 2 : i32, rw = 0 : i32}"
_TO_FIRST_LEVEL = "{cache = 1 : i32, hint = 3 : i32, rw = 0 : i32}"
_PASSED = (*shapes.MOVES, "arith.extf", "arith.truncf", "tt.fp_to_fp", "arith.extsi", "arith.extui")


@dataclass(frozen=True)
class Ahead:
    """The pointers of blocks that a loop loads each time round."""

    context: Context
    loop: Op
    pointers: tuple[Value, ...]
    tile: Tile

    def ask(self, row: Scalar, height: int, panel: Scalar) -> None:
        """Asks for the share of the tile of `height` rows from `row` on, if there is a next round."""
        context = self.context
        upper, step = (context.scalar(each) for each in self.loop.operands[1:3])
        following = context.b.integer("addi", context.scalar(self.loop.body.arguments[0]), step)
        more = context.b.compare("slt", following, upper)
        assert isinstance(more, Scalar)

        def run() -> list[Plain]:
            with _next_round(context, self.loop):
                for pointer in self.pointers:
                    self._ask(pointer, row, height, panel)
            return []

        context.branch(more, [], run)

    def _ask(self, pointer: Value, row: Scalar, height: int, panel: Scalar) -> None:
        b, tile, element = self.context.b, self.tile, pointer.type.pointee
        rows, columns = pointer.type.shape
        first = b.integer("divui", b.integer("muli", row, rows), tile.m)
        width, count = max(1, columns // tile.panels), -(-height * rows // tile.m)
        place = Cursor((first, b.integer("muli", panel, width)), 0, count, address=True)
        address = self.context.evaluate(pointer, place)
        if not isinstance(address, Affine):
            return
        for each in range(count):
            start = b.integer("muli", address.stride, each)
            for column in range(0, width, _LINE // element_bytes(element)):
                line = b.offset(address.base.name, b.integer("addi", start, column), element)
                b.line(f'"llvm.intr.prefetch"({line}) {_TO_SECOND_LEVEL} : (!llvm.ptr) -> ()')


@dataclass(frozen=True)
class Following:
    """The sums of the tile below, which are not in the first-level cache."""

    context: Context
    tile: Tile
    sums: Matrix

    def ask(self, row: Scalar, height: int, panel: Scalar) -> None:
        """Asks for what the tile after that of `height` rows from `row` on begins with."""
        b, tile, element = self.context.b, self.tile, self.sums.element
        column = b.integer("muli", panel, tile.columns)
        for each in range(height, 2 * height):
            start = self.sums.find(self.context, (b.integer("addi", row, each), column))
            for place in range(0, tile.columns, _LINE // element_bytes(element)):
                line = b.offset(start, b.index(place), element)
                b.line(f'"llvm.intr.prefetch"({line}) {_TO_FIRST_LEVEL} : (!llvm.ptr) -> ()')


def find_following(context: Context, tile: Tile, sums: Matrix) -> Following | None:
    """What to ask for in a product of narrow tiles whose sums do not stay in the first-level cache."""
    size = tile.m * tile.n * element_bytes(sums.element)
    return None if tile.strip or size <= FIRST_LEVEL_BYTES else Following(context, tile, sums)


def find_ahead(kernel: Kernel, operation: Op, tile: Tile) -> Ahead | None:
    """What to ask for in a product that a counted loop makes each time round."""
    loop = kernel.analysis.innermost_loop(operation)
    if loop is None or loop.name != "scf.for":
        return None
    strides = Strides(kernel.context)
    loads = [_find_load(each) for each in operation.operands[:2]]
    pointers = tuple(
        load.operands[0]
        for load in loads
        if load is not None
        and kernel.analysis.same_loops(load.result, operation)
        and _is_wide(strides, load)
        # A masked-off index must not be loaded, not even to find what would be loaded next.
        and not kernel.analysis.reads_memory(load.operands[0])
    )
    return Ahead(kernel.context, loop, pointers, tile) if pointers else None


def _find_load(value: Value) -> Op | None:
    while value.definition is not None and value.definition.name in _PASSED:
        value = value.definition.operands[0]
    return value.definition if value.definition is not None and value.definition.name == "tt.load" else None


def _is_wide(strides: Strides, load: Op) -> bool:
    type_ = load.result.type
    if len(type_.shape) != 2 or type_.count * element_bytes(type_.element) < _WORTH_IT:
        return False
    return strides.along(load.operands[0], 1) == 1


@contextmanager
def _next_round(context: Context, loop: Op) -> Iterator[None]:
    """Inside, what a loop counts and what it advances are as they will be in its next round."""
    arguments, yielded = loop.body.arguments, loop.body.terminator.operands
    index = context.scalar(arguments[0])
    with context.region():
        following: dict[Value, Scalar | Shifted] = {
            arguments[0]: context.b.integer("addi", index, context.scalar(loop.operands[2]))
        }
        for argument, value in zip(arguments[1:], yielded, strict=True):
            place, steps = context.places.get(argument), find_steps(argument, value)
            if isinstance(place, Shifted) and steps and all(_is_there(context, each) for each in steps):
                following[argument] = Shifted(place.start, advanced(context, place.distance, steps))
        for argument, shifted in following.items():
            context.places[argument] = shifted
        yield


def _is_there(context: Context, step: Value) -> bool:
    """Whether the scalars that a uniform step is made of were computed before this place."""
    pending = [step]
    while pending:
        each = pending.pop()
        if not each.type.is_tensor and each not in context.places:
            return False
        if each.type.is_tensor and each.definition is not None:
            pending += each.definition.operands
    return True
