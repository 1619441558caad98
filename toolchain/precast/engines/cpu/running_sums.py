"""Blocks that a loop adds up and a sum reduces behind it. In: a function's IR. Out: the IR with the sum inside.

`total += block` for each round and `tl.sum(total)` at the end is the sum of all blocks' sums: the loop then carries one
number in a register, where it would read and write a block's buffer in each round. Floats are added in another order
than before, as a sum over a block is anyway.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from precast.engines.cpu.combines import only_name
from precast.engines.cpu.ir import Block, Dense, Function, Op, Value

_ELEMENTS = ("f32", "f64")  # smaller ones would be rounded where they were not
_SHORTEST = 512  # elements of a block; of shorter ones each lane is added up alone, as folding lanes takes longer
_BOUNDS = 3  # operands of a loop before what it carries
_Users = dict[Value, list[Op]]


@dataclass(frozen=True)
class _Sum:
    """What a loop carries as number `place`: `addition` adds to it, `reduction` is all that the result is for."""

    loop: Op
    place: int
    addition: Op
    reduction: Op


def reduce_inside(function: Function) -> None:
    """Rewrites the function in place."""
    users: _Users = defaultdict(list)
    homes = {each: block for op in function.operation.walk() for blocks in op.regions for block in blocks
             for each in block.operations}  # fmt: skip
    for operation in function.operation.walk():
        for operand in operation.operands + [each for _, passed in operation.successors for each in passed]:
            users[operand].append(operation)
    for loop in [each for each in function.operation.walk() if each.name == "scf.for"]:
        for place in range(len(loop.results)):
            found = _find_sum(loop, place, users)
            if found:
                _rewrite(found, homes)


def _find_sum(loop: Op, place: int, users: _Users) -> _Sum | None:
    argument, yielded = loop.body.arguments[1 + place], loop.body.terminator.operands[place]
    addition, reductions = yielded.definition, users[loop.results[place]]
    if addition is None or addition.name != "arith.addf" or len(reductions) != 1:
        return None
    alone = users[argument] == [addition] and users[yielded] == [loop.body.terminator]
    inside = addition in loop.body.operations
    fits = alone and inside and _is_zero(loop.operands[_BOUNDS + place]) and _is_sum(reductions[0])
    return _Sum(loop, place, addition, reductions[0]) if fits else None


def _is_zero(value: Value) -> bool:
    made = value.definition
    if made is None or made.name != "arith.constant" or value.type.element not in _ELEMENTS:
        return False
    dense = made.attributes["value"]
    return isinstance(dense, Dense) and dense.splat and str(float(dense.values[0])) == "0.0"


def _is_sum(operation: Op) -> bool:
    """Whether an op is the sum of all elements of one long block."""
    if operation.name != "tt.reduce" or len(operation.operands) != 1 or only_name(operation) != "arith.addf":
        return False
    shape = operation.operands[0].type.shape
    return len(shape) == 1 and shape[0] >= _SHORTEST


def _rewrite(found: _Sum, homes: dict[Op, Block]) -> None:
    loop, place, addition, reduction = found.loop, found.place, found.addition, found.reduction
    argument, start, result = loop.body.arguments[1 + place], loop.operands[_BOUNDS + place], loop.results[place]
    other = addition.operands[1] if addition.operands[0] is argument else addition.operands[0]
    homes[reduction].operations.remove(reduction)
    _insert(reduction, addition, loop.body)
    inner = Value(result.type.scalar, reduction)
    final, reduction.results, reduction.operands = reduction.result, [inner], [other]
    final.definition, final.index, loop.results[place] = loop, place, final
    addition.operands = [argument, inner]
    for value in (argument, addition.result):
        value.type = value.type.scalar
    zero = Op("arith.constant", attributes={"value": 0.0}, where=loop.where)
    zero.results = [Value(start.type.scalar, zero)]
    _insert(zero, loop, homes[loop])
    loop.operands[_BOUNDS + place] = zero.result


def _insert(operation: Op, before: Op, block: Block) -> None:
    operation.block = block
    block.operations.insert(block.operations.index(before), operation)
