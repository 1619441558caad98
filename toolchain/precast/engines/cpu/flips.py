"""Halves that change places, as `tl.sort` writes it. In: a function's IR. Out: the IR with `precast.flip` for it.

x ^ (the xor of x along a dimension of size 2) is x with that dimension in reverse, which a buffer can be seen as: no
reduction, and nothing is moved. A flip through a bitcast is one of what was cast, so that both share a buffer.
"""

from __future__ import annotations

from collections import Counter

from precast.engines.cpu.ir import Block, Function, Op, Value

FLIP = "precast.flip"


def replace_flips(function: Function) -> None:
    """Rewrites the function in place; a reduction that nothing uses any more is dropped."""
    blocks = [block for op in function.operation.walk() for region in op.regions for block in region]
    found: set[Op] = set()
    for block in blocks:
        written: list[Op] = []
        for operation in block.operations:
            source = _find_source(operation)
            if source:
                found.update(source[1])
                written += _flip(operation, source[0], int(source[1][-1].attributes["axis"]))
            written.append(operation)
        block.operations = written
    if found:
        _drop_unused(function, blocks, found)


def _find_source(operation: Op) -> tuple[Value, list[Op]] | None:
    """What an op flips, and the ops that the xor of both halves goes through, the reduction last."""
    if operation.name != "arith.xori":
        return None
    for value, other in (operation.operands, operation.operands[::-1]):
        chain = _find_chain(other)
        if chain and chain[-1].operands == [value]:
            return value, chain
    return None


def _find_chain(value: Value) -> list[Op] | None:
    chain = []
    for name in ("tt.broadcast", "tt.expand_dims", "tt.reduce"):
        operation = value.definition
        if operation is None or operation.name != name:
            return None
        chain.append(operation)
        value = operation.operands[0]
    spread, added, reduction = chain
    axis = reduction.attributes["axis"]
    whole = reduction.operands[0].type.shape == spread.result.type.shape and reduction.operands[0].type.shape[axis] == 2
    return chain if whole and added.attributes["axis"] == axis and _is_xor(reduction) else None


def _is_xor(reduction: Op) -> bool:
    body = reduction.body
    first, *others = body.operations
    alone = len(others) == 1 and len(reduction.operands) == 1 and first.name == "arith.xori"
    return alone and set(first.operands) == set(body.arguments) and others[0].operands == first.results


def _flip(operation: Op, value: Value, axis: int) -> list[Op]:
    """Makes the op the flip, or a bitcast of a flip, which comes before it."""
    cast = value.definition
    if cast is None or cast.name not in ("tt.bitcast", "arith.bitcast"):
        operation.name, operation.operands, operation.attributes = FLIP, [value], {"axis": axis}
        return []
    inner = Op(FLIP, [cast.operands[0]], [], {"axis": axis}, where=operation.where, block=operation.block)
    inner.results = [Value(cast.operands[0].type, inner)]
    operation.name, operation.operands, operation.attributes = cast.name, [inner.result], dict(cast.attributes)
    return [inner]


def _drop_unused(function: Function, blocks: list[Block], candidates: set[Op]) -> None:
    """Drops the candidates whose results nothing uses."""
    uses = Counter(value for op in function.operation.walk() for value in op.operands)
    for block in blocks:
        kept: list[Op] = []
        for operation in reversed(block.operations):
            if operation in candidates and not any(uses[value] for value in operation.results):
                uses.subtract(operation.operands)
            else:
                kept.append(operation)
        block.operations = kept[::-1]
