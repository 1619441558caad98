"""Checked access to Triton's ops: the bindings take any attribute name, and keep a misspelt one silently.

In: an op of a module. Out: its attributes, operands and results by the names that Triton's own definition gives them;
any other name is an `AttributeError` that suggests the nearest one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from precast.errors import nearest_hint
from precast.passes.ir import parse_attribute
from precast.passes.op_schemas import OpSchema, read_op_schemas

if TYPE_CHECKING:
    from mlir.ir import Attribute, Operation, Value


class TritonOp:
    """An op of a `tt`, `ttg`, `ttng` or `gluon` dialect, seen through its definition."""

    def __init__(self, op: Any) -> None:
        self.op: Operation = op.operation
        schemas = read_op_schemas()
        if self.op.name not in schemas:
            raise AttributeError(f"`{self.op.name}` is not an op of Triton's")
        self._schema: OpSchema = schemas[self.op.name]

    def attribute(self, name: str) -> Attribute | None:
        """The attribute `name`; None when it is absent or has its default."""
        self._check(name, self._schema.attributes, "attribute")
        return self.op.attributes.get(name, None)

    def set_attribute(self, name: str, value: Attribute | str | bool | int) -> None:
        """Sets the attribute `name`. Text is MLIR's (`"a"` with quotes is a string); a whole number keeps the width
        of what was there, or has 32 bits.
        """
        before = self.attribute(name)
        if isinstance(value, bool):
            value = "true" if value else "false"
        elif isinstance(value, int):
            value = f"{value} : {before.type if before is not None else 'i32'}"
        self.op.attributes[name] = parse_attribute(self.op, value) if isinstance(value, str) else value

    def remove_attribute(self, name: str) -> None:
        """Back to its default, or absent."""
        if self.attribute(name) is not None:
            del self.op.attributes[name]

    def operand(self, name: str) -> Value | None:
        """The operand `name`; None for an optional one that is absent. `ValueError` when it stands for several."""
        values = self.operands(name)
        if len(values) > 1:
            raise ValueError(f"`{name}` of `{self.op.name}` is {len(values)} values; ask for operands(…)")
        return values[0] if values else None

    def operands(self, name: str) -> list[Value]:
        """All values that the operand `name` stands for."""
        self._check(name, self._schema.operands, "operand")
        start, length = self._segment(self._schema.operands.index(name))
        return list(self.op.operands)[start : start + length]

    def copy_with(self, **operands: Value | None) -> Operation:
        """A copy of the op at the current insertion point, with other values for some operands; None leaves one out.

        For ops without regions. The op itself, and the uses of its results, stay as they are.
        """
        for name in operands:
            self._check(name, self._schema.operands, "operand")
        chosen = [self._chosen(name, operands) for name in self._schema.operands]
        found = {name: self.op.attributes.get(name, None) for name in self._schema.attributes}
        attributes = {name: value for name, value in found.items() if value is not None}
        if self._schema.segmented:
            sizes = ", ".join(str(len(values)) for values in chosen)
            attributes["operandSegmentSizes"] = parse_attribute(self.op, f"array<i32: {sizes}>")
        values = [value for some in chosen for value in some]
        return type(self.op).create(self.op.name, [each.type for each in self.op.results], values, attributes)

    def _chosen(self, name: str, operands: Mapping[str, Value | None]) -> list[Value]:
        if name not in operands:
            return self.operands(name)
        value = operands[name]
        return [] if value is None else [value]

    def result(self, name: str) -> Value:
        """The result `name`."""
        self._check(name, self._schema.results, "result")
        return self.op.results[self._schema.results.index(name)]

    def _segment(self, index: int) -> tuple[int, int]:
        names, total = self._schema.operands, len(self.op.operands)
        if self._schema.segmented:
            sizes = list(self.op.attributes["operandSegmentSizes"])
            return sum(sizes[:index]), sizes[index]
        if index == len(names) - 1:  # the last one may be variadic
            return index, total - index
        return index, 1

    def _check(self, name: str, known: Iterable[str], noun: str) -> None:
        if name not in known:
            raise AttributeError(f"`{self.op.name}` has no {noun} `{name}`: {nearest_hint(name, known, f'{noun}s')}")
