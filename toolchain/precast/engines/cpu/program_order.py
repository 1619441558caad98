"""Which programs follow one another on a thread. In: a function's IR. Out: whether the grid's second axis steps first.

Programs may run in any order; the grid's first axis stepping first is what most kernels are laid out for. Where the
first axis is a row and the second a block of columns, that goes down the columns: each program begins a line of memory
that nothing foresaw. There the next program is the one whose accesses begin where this one's end.
"""

from __future__ import annotations

from dataclasses import dataclass

from precast.engines.cpu import kinds
from precast.engines.cpu.ir import Function, Op, Value

_SAME = {"tt.splat", "tt.expand_dims", "tt.broadcast", "arith.extsi", "arith.extui", "arith.trunci", "tt.bitcast"}
_SUMS = {"tt.addptr", "arith.addi", "arith.subi"}
_OTHERS = {"tt.dot", "tt.dot_scaled", "tt.print", "tt.assert", "tt.call"}


@dataclass(frozen=True)
class _Steps:
    """How far a value moves with a program's place on both axes; None: by what nobody knows here."""

    first: int | None
    second: int | None

    def joined(self, other: _Steps, sign: int) -> _Steps:
        return _Steps(_sum(self.first, other.first, sign), _sum(self.second, other.second, sign))

    def scaled(self, factor: int | None) -> _Steps:
        return _Steps(_product(self.first, factor), _product(self.second, factor))


def _sum(x: int | None, y: int | None, sign: int) -> int | None:
    return None if x is None or y is None else x + sign * y


def _product(x: int | None, factor: int | None) -> int | None:
    return 0 if x == 0 else None if x is None or factor is None else x * factor


_STILL, _UNKNOWN = _Steps(0, 0), _Steps(None, None)


def steps_second_axis_first(function: Function) -> bool:
    """Whether every store goes on where the next program of the second axis begins, and not of the first."""
    operations = list(function.operation.walk())
    names = {each.name for each in operations}
    if names & _OTHERS or any("atomic" in each for each in names):
        return False
    steps: dict[Value, _Steps] = dict.fromkeys(function.blocks[0].arguments, _STILL)
    for operation in operations:
        if len(operation.results) == 1:
            steps[operation.result] = _find_steps(operation, steps)
    stores = [each for each in operations if each.name == "tt.store"]
    loads = [each for each in operations if each.name == "tt.load"]
    moved = (_continues(each, steps) for each in stores)
    return bool(stores) and all(moved) and all(_stays_near(each, steps) for each in loads)


def _find_steps(operation: Op, steps: dict[Value, _Steps]) -> _Steps:
    operands = [steps.get(each, _UNKNOWN) for each in operation.operands]
    if operation.regions:
        return _UNKNOWN
    if operation.name == "tt.get_program_id":
        return {0: _Steps(1, 0), 1: _Steps(0, 1)}.get(operation.attributes["axis"], _STILL)
    if operation.name in _SAME:
        return operands[0]
    if operation.name in _SUMS:
        return operands[0].joined(operands[1], -1 if operation.name == "arith.subi" else 1)
    if operation.name == "arith.muli":
        return _find_product(operation, operands)
    return _unless_moved(operands)


def _find_product(operation: Op, operands: list[_Steps]) -> _Steps:
    for value, other in (operation.operands, operation.operands[::-1]):
        factor = kinds.known_constant(other)
        if factor is not None:
            return operands[operation.operands.index(value)].scaled(factor)
    return _unless_moved(operands)


def _unless_moved(operands: list[_Steps]) -> _Steps:
    """Of what is computed anyhow: it stands still where all that it is made of does."""
    first, second = all(each.first == 0 for each in operands), all(each.second == 0 for each in operands)
    return _Steps(0 if first else None, 0 if second else None)


def _extent(operation: Op) -> int:
    """Elements along the last dimension of what an access handles."""
    shape = operation.operands[0].type.shape
    return shape[-1] if shape else 1


def _continues(store: Op, steps: dict[Value, _Steps]) -> bool:
    moved, extent = steps.get(store.operands[0], _UNKNOWN), _extent(store)
    near = moved.first is not None and abs(moved.first) <= extent
    return moved.second == extent and extent > 1 and not near


def _stays_near(load: Op, steps: dict[Value, _Steps]) -> bool:
    moved = steps.get(load.operands[0], _UNKNOWN)
    return moved.second is not None and abs(moved.second) <= _extent(load)
