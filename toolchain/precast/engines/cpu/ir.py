"""The engine's own IR: TTIR as Python objects. In: what `reader` parsed. Out: what analyses and lowerings walk.

An op keeps TTIR's name; its attributes hold Python values (integers, floats, strings, tuples, `Dense`, `Type`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from precast.errors import Place


@dataclass(frozen=True)
class Type:
    """A scalar, pointer or tensor of them. `element` is MLIR's word (`f32`, `i8`, `f8E4M3FN`) or `ptr`.

    A pointer's `pointee` is the element it points to. A scalar has shape ().
    """

    element: str
    shape: tuple[int, ...] = ()
    pointee: str = ""

    @property
    def is_tensor(self) -> bool:
        return bool(self.shape)

    @property
    def is_pointer(self) -> bool:
        return self.element == "ptr"

    @property
    def is_float(self) -> bool:
        return self.element[0] in "fb"

    @property
    def count(self) -> int:
        """Elements in all."""
        product = 1
        for size in self.shape:
            product *= size
        return product

    @property
    def scalar(self) -> Type:
        return Type(self.element, (), self.pointee)

    def with_element(self, element: str) -> Type:
        return Type(element, self.shape)

    def __str__(self) -> str:
        word = f"!tt.ptr<{self.pointee}>" if self.is_pointer else self.element
        return f"tensor<{'x'.join(map(str, self.shape))}x{word}>" if self.shape else word


@dataclass(frozen=True)
class Dense:
    """A `dense<…>` constant: one value for all elements (`splat`), or all values in row-major order."""

    values: tuple[int | float | bool, ...]
    splat: bool


@dataclass(eq=False)
class Value:
    """An SSA value; `definition` is the op that makes it, None for a block argument."""

    type: Type
    definition: Op | None = None
    index: int = 0
    block: Block | None = None

    def __repr__(self) -> str:
        return f"<{self.definition.name if self.definition else 'argument'}#{self.index} : {self.type}>"


@dataclass(eq=False)
class Block:
    """Ops in order; the last one is the terminator."""

    arguments: list[Value] = field(default_factory=list)
    operations: list[Op] = field(default_factory=list)
    parent: Op | None = None

    @property
    def terminator(self) -> Op:
        return self.operations[-1]


@dataclass(eq=False)
class Op:
    """One operation; `where` is its place in the kernel's source, if the text has locations."""

    name: str
    operands: list[Value] = field(default_factory=list)
    results: list[Value] = field(default_factory=list)
    attributes: dict[str, Any] = field(default_factory=dict)
    regions: list[list[Block]] = field(default_factory=list)
    successors: list[tuple[Block, list[Value]]] = field(default_factory=list)
    where: Place | None = None
    block: Block | None = None

    def __repr__(self) -> str:
        return f"<{self.name}>"

    @property
    def result(self) -> Value:
        return self.results[0]

    @property
    def body(self) -> Block:
        """The only block of the first region."""
        return self.regions[0][0]

    def walk(self) -> Iterator[Op]:
        """This op and every op inside it, in order."""
        yield self
        for region in self.regions:
            for block in region:
                for operation in block.operations:
                    yield from operation.walk()


@dataclass(frozen=True)
class Function:
    """One `tt.func`: its op and name."""

    operation: Op
    name: str
    public: bool

    @property
    def blocks(self) -> list[Block]:
        return self.operation.regions[0]


ELEMENT_BITS = {
    "i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "index": 64, "f16": 16, "bf16": 16, "f32": 32, "f64": 64,
    "f8E4M3FN": 8, "f8E5M2": 8, "f8E4M3FNUZ": 8, "f8E5M2FNUZ": 8, "f8E4M3B11FNUZ": 8, "ptr": 64,
}  # fmt: skip


def element_bytes(element: str) -> int:
    """Bytes of one element in memory: `i1` takes one."""
    return max(1, ELEMENT_BITS[element] // 8)
