"""A block program: ops of TTIR with typed values. In: what `generate` builds. Out: its text in MLIR's generic form."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

BITS = {
    "i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "f16": 16, "bf16": 16, "f32": 32, "f64": 64, "f8E4M3FN": 8,
    "f8E5M2": 8,
}  # fmt: skip
INTEGERS = ("i8", "i16", "i32", "i64")
FLOATS = ("f16", "bf16", "f32", "f64")
SMALL_FLOATS = ("f8E4M3FN", "f8E5M2")


@dataclass(frozen=True)
class Type:
    """An element with a shape, () for a scalar; a pointer to it where `pointer` is set."""

    element: str
    shape: tuple[int, ...] = ()
    pointer: bool = False

    def __str__(self) -> str:
        word = f"!tt.ptr<{self.element}>" if self.pointer else self.element
        return f"tensor<{'x'.join(map(str, self.shape))}x{word}>" if self.shape else word

    @property
    def is_float(self) -> bool:
        return self.element[0] in "fb"

    @property
    def count(self) -> int:
        product = 1
        for size in self.shape:
            product *= size
        return product

    def of(self, element: str) -> Type:
        return Type(element, self.shape, self.pointer)

    def shaped(self, *shape: int) -> Type:
        return Type(self.element, shape, self.pointer)


@dataclass(eq=False)
class Value:
    """An SSA value. An inexact one is a float that the engine may round otherwise than the evaluator, within bounds."""

    type: Type
    exact: bool = True


@dataclass(eq=False)
class Block:
    arguments: list[Value] = field(default_factory=list)
    operations: list[Op] = field(default_factory=list)


@dataclass(eq=False)
class Op:
    """One op; attributes are MLIR text by name."""

    name: str
    operands: list[Value] = field(default_factory=list)
    results: list[Value] = field(default_factory=list)
    attributes: dict[str, str] = field(default_factory=dict)
    regions: list[Block] = field(default_factory=list)
    successors: list[Block] = field(default_factory=list)
    passed: list[list[Value]] = field(default_factory=list)  # what each successor gets; in `operands` too

    def walk(self) -> Iterator[Op]:
        yield self
        for region in self.regions:
            for operation in region.operations:
                yield from operation.walk()


@dataclass(eq=False)
class Function:
    """A function that the kernel calls: blocks that branch to later ones, and return."""

    name: str
    blocks: list[Block]
    result: Type


@dataclass(frozen=True)
class Array:
    """An argument that is an array: of exactly `count` elements, or as many as argument `n` says times `stride`."""

    element: str
    count: int
    bounded: bool = False  # has n elements
    alias: int | None = None  # the argument whose memory it is
    sink: bool = False  # takes inexact values, within error bounds


@dataclass(frozen=True)
class Number:
    """An argument that is a scalar."""

    element: str


@dataclass
class Program:
    """A kernel: arguments with their values, the body, and how it is run."""

    seed: int
    parameters: list[Array | Number]
    body: Block
    grid: tuple[int, int, int] = (1, 1, 1)
    strict: bool = False
    signed_zeros: bool = True  # whether the sign of zero is determined
    functions: list[Function] = field(default_factory=list)

    def text(self) -> str:
        """The module in generic form."""
        return _Text().module(self)


class _Text:
    def __init__(self) -> None:
        self.names: dict[Value, str] = {}
        self.labels: dict[Block, str] = {}
        self.lines: list[str] = []

    def name(self, value: Value) -> str:
        return self.names.setdefault(value, f"%v{len(self.names)}")

    def module(self, program: Program) -> str:
        self.lines.append('"builtin.module"() ({')
        self.function("fuzz", [program.body], "public", "")
        for each in program.functions:
            self.function(each.name, each.blocks, "private", str(each.result))
        self.lines.append("}) : () -> ()")
        return "\n".join([*self.lines, ""])

    def function(self, name: str, blocks: list[Block], visibility: str, result: str) -> None:
        types = ", ".join(str(each.type) for each in blocks[0].arguments)
        head = f'function_type = ({types}) -> ({result}), sym_name = "{name}", sym_visibility = "{visibility}"'
        self.lines.append(f'  "tt.func"() <{{{head}}}> ({{')
        self.labels.update({block: f"^bb{index}" for index, block in enumerate(blocks)})
        for block in blocks:
            self.block(block, 4)
        self.lines.append("  }) {noinline = false} : () -> ()")

    def block(self, block: Block, indent: int) -> None:
        if block.arguments:
            arguments = ", ".join(f"{self.name(each)}: {each.type}" for each in block.arguments)
            self.lines.append(" " * (indent - 2) + f"{self.labels.get(block, '^bb0')}({arguments}):")
        for operation in block.operations:
            self.operation(operation, indent)

    def operation(self, operation: Op, indent: int) -> None:
        operands = ", ".join(self.name(each) for each in operation.operands)
        result = ", ".join(self.name(each) for each in operation.results)
        attributes = ", ".join(f"{name} = {text}" for name, text in operation.attributes.items())
        line = " " * indent + (f"{result} = " if result else "") + f'"{operation.name}"({operands})'
        line += f"[{', '.join(self.labels[each] for each in operation.successors)}]" if operation.successors else ""
        line += f" <{{{attributes}}}>" if attributes else ""
        if operation.regions:
            self.lines.append(line + " ({")
            for index, region in enumerate(operation.regions):
                if index:
                    self.lines.append(" " * indent + "}, {")
                self.block(region, indent + 2)
            line = " " * indent + "})"
        inputs = ", ".join(str(each.type) for each in operation.operands)
        outputs = ", ".join(str(each.type) for each in operation.results)
        self.lines.append(f"{line} : ({inputs}) -> ({outputs})")
