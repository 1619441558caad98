"""Ops that are spelled out as others before anything is planned. In: a function's IR. Out: the IR without them.

A subclass of `Expansion` for each kind of op writes what it means, op by op, where it stood.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from precast.engines.cpu.ir import Block, Dense, Function, Op, Type, Value


class Expansion:
    """One op being spelled out at the end of `written`."""

    def __init__(self, operation: Op, block: Block, written: list[Op]) -> None:
        self.operation = operation
        self.block = block
        self.written = written

    def run(self) -> None:
        """Writes ops, the last of which have the op's own results."""
        raise NotImplementedError

    def emit(self, name: str, operands: Sequence[Value], type_: Type, **attributes: Any) -> Value:
        operation = Op(name, list(operands), [], attributes, [], [], self.operation.where, self.block)
        operation.results = [Value(type_, operation)]
        self.written.append(operation)
        return operation.result

    def finish(self, operation: Op, results: list[Value]) -> None:
        """Writes an op that makes `results`, which the op's users know."""
        operation.where, operation.block, operation.results = self.operation.where, self.block, results
        for index, value in enumerate(results):
            value.definition, value.index = operation, index
        for region in operation.regions:
            for block in region:
                block.parent = operation
        self.written.append(operation)

    def filled(self, value: float, type_: Type) -> Value:
        return self.emit("arith.constant", [], type_, value=Dense((value,), True))

    def reshape(self, x: Value, shape: Sequence[int]) -> Value:
        return self.emit("tt.reshape", [x], shaped(x, shape))


def shaped(value: Value, shape: Sequence[int]) -> Type:
    """The value's type with another shape."""
    return Type(value.type.element, tuple(shape), value.type.pointee)


def expand_ops(function: Function, kinds: Mapping[str, type[Expansion]]) -> None:
    """Replaces every op whose name is in `kinds`, in place; an op that its kind leaves as it is writes itself."""
    for operation in list(function.operation.walk()):
        for region in operation.regions:
            for block in region:
                if any(each.name in kinds for each in block.operations):
                    _expand_block(block, kinds)


def _expand_block(block: Block, kinds: Mapping[str, type[Expansion]]) -> None:
    written: list[Op] = []
    for operation in block.operations:
        kind = kinds.get(operation.name)
        if kind:
            kind(operation, block, written).run()
        else:
            written.append(operation)
    block.operations = written
