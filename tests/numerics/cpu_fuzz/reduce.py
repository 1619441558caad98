"""The least of a program that still fails. In: a failing program and what tells so. Out: a smaller one.

Ops are dropped, and values replaced by constants or by an operand of their type, as long as the failure stays.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator

from cpu_fuzz.program import Block, Op, Program, Value

_EFFECTS = ("tt.store", "tt.atomic_rmw", "tt.atomic_cas", "ttg.barrier", "scf.for", "scf.while", "scf.if", "tt.return")
Change = Callable[[Block, int], bool]


def reduce_program(program: Program, fails: Callable[[Program], bool], tries: int = 400) -> Program:
    """A program that fails too, and from which nothing more could be taken in so many tries."""
    best, spent, progress = _without_dead(copy.deepcopy(program)), 0, True
    while progress:
        progress = False
        for change in (_drop, _replace_by_operand, _replace_by_constant):
            place = len(list(_places(best)))
            while place:
                place -= 1
                candidate = copy.deepcopy(best)
                found = list(_places(candidate))
                if place >= len(found) or not change(*found[place]):
                    continue
                spent += 1
                if spent > tries:
                    return best
                candidate = _without_dead(candidate)
                if fails(candidate):
                    best, progress = candidate, True
    return best


def _blocks(block: Block) -> Iterator[Block]:
    yield block
    for operation in block.operations:
        for region in operation.regions:
            yield from _blocks(region)


def _places(program: Program) -> Iterator[tuple[Block, int]]:
    """Every op that is no terminator, as its block and its place in it."""
    for block in _blocks(program.body):
        for place in range(len(block.operations) - 1):
            yield block, place


def _uses(block: Block) -> set[Value]:
    return {value for each in _blocks(block) for operation in each.operations for value in operation.operands}


def _without_dead(program: Program) -> Program:
    """Without ops whose results nobody uses and that have no effect."""
    while True:
        used = _uses(program.body)
        before = sum(len(block.operations) for block in _blocks(program.body))
        for block in _blocks(program.body):
            last = len(block.operations) - 1
            block.operations = [
                each for place, each in enumerate(block.operations)
                if place == last or each.name in _EFFECTS or any(result in used for result in each.results)
            ]  # fmt: skip
        if before == sum(len(block.operations) for block in _blocks(program.body)):
            return program


def _drop(block: Block, place: int) -> bool:
    operation = block.operations[place]
    if operation.name not in _EFFECTS:
        return False
    replaced = {result: _constant(result) for result in operation.results}
    block.operations[place : place + 1] = [each for each in replaced.values() if each]
    return _rename(block, {old: new.results[0] for old, new in replaced.items() if new})


def _replace_by_operand(block: Block, place: int) -> bool:
    operation = block.operations[place]
    for result in operation.results:
        same = [each for each in operation.operands if each.type == result.type]
        if not same:
            return False
        _rename(block, {result: same[0]})
    return bool(operation.results)


def _replace_by_constant(block: Block, place: int) -> bool:
    operation = block.operations[place]
    if operation.name == "arith.constant" or not operation.results:
        return False
    constants = [_constant(result) for result in operation.results]
    if None in constants:
        return False
    block.operations[place:place] = [each for each in constants if each]
    return _rename(block, {old: new.results[0] for old, new in zip(operation.results, constants, strict=True) if new})


def _constant(value: Value) -> Op | None:
    type_ = value.type
    if type_.pointer or type_.element.startswith("f8"):
        return None
    text = "true" if type_.element == "i1" else "1.0" if type_.is_float else "1"
    typed = f"dense<{text}> : {type_}" if type_.shape else text if type_.element == "i1" else f"{text} : {type_}"
    return Op("arith.constant", [], [Value(type_)], {"value": typed})


def _rename(block: Block, renamed: dict[Value, Value]) -> bool:
    for each in _blocks(block):
        for operation in each.operations:
            operation.operands = [renamed.get(value, value) for value in operation.operands]
    return True
