"""Calls of other functions, put in place. In: a module's functions. Out: the kernel without `tt.call`."""

from __future__ import annotations

from precast.engines.cpu.errors import refuse
from precast.engines.cpu.ir import Block, Function, Op, Value


def inline_calls(kernel: Function, functions: dict[str, Function], depth: int = 0) -> None:
    """Replaces every call in `kernel`, in place; recursion is refused. No function branches any more."""
    for operation in list(kernel.operation.walk()):
        for region in operation.regions:
            for block in region:
                _inline_block(block, functions, depth)


def _inline_block(block: Block, functions: dict[str, Function], depth: int) -> None:
    renamed: dict[Value, Value] = {}
    result: list[Op] = []
    for operation in block.operations:
        if operation.name != "tt.call":
            result.append(operation)
            continue
        body = _callee(operation, functions, depth)
        mapping = dict(zip(body.arguments, operation.operands, strict=True))
        copies = [_clone(each, mapping, block) for each in body.operations]
        returned = copies.pop().operands
        renamed.update(zip(operation.results, returned, strict=True))
        result += copies
    block.operations = result
    if renamed:
        for operation in result:
            _rename(operation, renamed)


def _callee(call: Op, functions: dict[str, Function], depth: int) -> Block:
    callee = functions.get(str(call.attributes["callee"]))
    if callee is None:
        raise refuse(call, f"there is no function `{call.attributes['callee']}`")
    if depth > 16:
        raise refuse(call, "the functions call one another in a circle")
    inline_calls(callee, functions, depth + 1)
    return callee.blocks[0]


def _rename(operation: Op, renamed: dict[Value, Value]) -> None:
    for inner in operation.walk():
        inner.operands = [_resolve(each, renamed) for each in inner.operands]
        inner.successors = [(block, [_resolve(each, renamed) for each in passed]) for block, passed in inner.successors]


def _resolve(value: Value, renamed: dict[Value, Value]) -> Value:
    while value in renamed:
        value = renamed[value]
    return value


def _clone(operation: Op, mapping: dict[Value, Value], block: Block) -> Op:
    operands = [mapping.get(each, each) for each in operation.operands]
    copy = Op(operation.name, operands, [], operation.attributes, [], [], operation.where, block)
    copy.results = [Value(each.type, copy, each.index) for each in operation.results]
    mapping.update(zip(operation.results, copy.results, strict=True))
    for region in operation.regions:
        copy.regions.append([_clone_block(inner, mapping, copy) for inner in region])
    return copy


def _clone_block(block: Block, mapping: dict[Value, Value], parent: Op) -> Block:
    copy = Block(parent=parent)
    copy.arguments = [Value(each.type, None, each.index, copy) for each in block.arguments]
    mapping.update(zip(block.arguments, copy.arguments, strict=True))
    copy.operations = [_clone(each, mapping, copy) for each in block.operations]
    return copy
