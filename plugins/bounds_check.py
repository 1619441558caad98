"""Puts a check before every access through a pointer whose length is known."""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith

from precast.passes import Pass, PassContext, start
from precast.passes.ir import entry_block, find_kernel, walk
from precast.passes.ops import TritonOp

ACCESSES = ("tt.load", "tt.store", "tt.atomic_rmw", "tt.atomic_cas")


@dataclass(frozen=True)
class BoundsCheck(Pass):
    """Stops a program that reads or writes outside of a buffer.

    `lengths` says how many elements the buffers have: `x=n_elements, out=4096`, a pointer argument of the kernel and
    an integer argument or a number. Arguments are named, or numbered from 0 among the run-time ones. Accesses whose
    pointer is not built from such an argument by offsets alone are left as they are, and so are masked-off elements.
    """

    name, stage, at = "bounds-check", "ttir", start()
    lengths: str = ""

    def run(self, module: ir.Module, context: PassContext) -> None:
        kernel = find_kernel(module)
        lengths = self.parse_lengths(kernel, context)
        for op in list(walk(kernel)):
            if op.name in ACCESSES:
                base, offsets = split_pointer(TritonOp(op).operand("ptr"))
                if base in lengths and offsets:
                    with ir.InsertionPoint(op), op.location:
                        check(op, offsets, lengths[base])

    def parse_lengths(self, kernel: ir.Operation, context: PassContext) -> dict[ir.Value, ir.Value | int]:
        arguments = list(entry_block(kernel).arguments)
        names = list(context.arguments)
        if len(names) != len(arguments):  # outside a unit, or where a descriptor takes several parameters
            names = [str(index) for index in range(len(arguments))]

        def find(word: str) -> ir.Value:
            if word not in names:
                context.refuse(kernel, f"the kernel has no argument `{word}`: {', '.join(names)}")
            return arguments[names.index(word)]

        found: dict[ir.Value, ir.Value | int] = {}
        for pair in filter(None, (each.strip() for each in self.lengths.split(","))):
            pointer, equals, length = (each.strip() for each in pair.partition("="))
            if not equals or not length:
                context.refuse(kernel, f"`{pair}` is not POINTER=LENGTH")
            number = length.isdigit() and length not in names
            found[find(pointer)] = int(length) if number else find(length)
        return found


def split_pointer(pointer: ir.Value) -> tuple[ir.Value, list[ir.Value]]:
    """The argument that a pointer is built from and the offsets added to it; no offsets if it is built otherwise."""
    offsets: list[ir.Value] = []
    while not isinstance(pointer.owner, ir.Block):
        owner = pointer.owner
        if owner.name == "tt.addptr":
            offsets.append(owner.operands[1])
        elif owner.name != "tt.splat":
            return pointer, []
        pointer = owner.operands[0]
    return pointer, offsets


def check(access: ir.Operation, offsets: list[ir.Value], length: ir.Value | int) -> None:
    """`0 <= sum of offsets < length` wherever the mask holds, in 64 bits, as an assertion before the access."""
    mask = TritonOp(access).operand("mask") if access.name != "tt.atomic_cas" else None
    shape = TritonOp(access).operand("ptr").type
    wide = of_shape(shape, ir.IntegerType.get_signless(64))
    total = sum_of([convert(offset, wide) for offset in offsets])
    low = arith.cmpi(arith.CmpIPredicate.sge, total, number(wide, 0))
    limit = number(wide, length) if isinstance(length, int) else convert(length, wide)
    inside = arith.andi(low, arith.cmpi(arith.CmpIPredicate.slt, total, limit))
    if mask is not None:
        inside = arith.ori(inside, arith.xori(mask, number(mask.type, 1)))
    message = ir.StringAttr.get(f"{access.name.removeprefix('tt.')} outside of its buffer")
    ir.Operation.create("tt.assert", [], [inside], {"message": message})


def of_shape(shape: ir.Type, element: ir.Type) -> ir.Type:
    return ir.RankedTensorType.get(shape.shape, element) if isinstance(shape, ir.RankedTensorType) else element


def sum_of(values: list[ir.Value]) -> ir.Value:
    total = values[0]
    for value in values[1:]:
        total = arith.addi(total, value)
    return total


def convert(value: ir.Value, wide: ir.Type) -> ir.Value:
    """`value`, sign-extended to 64 bits, in every element of the shape."""
    tensor = isinstance(value.type, ir.RankedTensorType)
    element = value.type.element_type if tensor else value.type
    if ir.IntegerType(element).width < 64:
        value = arith.extsi(of_shape(value.type, ir.IntegerType.get_signless(64)), value)
    if not tensor and isinstance(wide, ir.RankedTensorType):
        value = ir.Operation.create("tt.splat", [wide], [value]).results[0]
    return value


def number(kind: ir.Type, value: int) -> ir.Value:
    element = kind.element_type if isinstance(kind, ir.RankedTensorType) else kind
    attribute = ir.IntegerAttr.get(element, value)
    if isinstance(kind, ir.RankedTensorType):
        attribute = ir.DenseElementsAttr.get_splat(kind, attribute)
    return arith.constant(kind, attribute)
