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
class Checked:
    """The accesses that are checked, each as `load x`, in the kernel's order."""

    accesses: tuple[str, ...]


@dataclass(frozen=True)
class Access:
    """An access to check: through the argument `name`, at the sum of `offsets`, of `length` elements."""

    op: ir.Operation
    name: str
    offsets: list[ir.Value]
    length: ir.Value | int

    def __str__(self) -> str:
        return f"{self.op.name.removeprefix('tt.')} {self.name}"


@dataclass(frozen=True)
class BoundsCheck(Pass):
    """Finds programs that read or write outside of a buffer.

    `lengths` says how many elements the buffers have: `x=n_elements, out=4096`, a pointer argument of the kernel and
    an integer argument or a number. Arguments are named, or numbered from 0 among the run-time ones. Accesses whose
    pointer is not built from such an argument by offsets alone are left as they are, and so are masked-off elements.

    With `stop` such a program fails an assertion. Without, it goes on and leaves out what is outside (the value of a
    load there is undefined), and a device buffer holds an i32 for each access of the finding: how many elements.
    `tt.atomic_cas`, which has no mask, fails the assertion either way.
    """

    name, stage, at = "bounds-check", "ttir", start()
    lengths: str = ""
    stop: bool = True

    def run(self, module: ir.Module, context: PassContext) -> Checked:
        kernel = find_kernel(module)
        accesses = find_accesses(kernel, self.parse_lengths(kernel, context))
        described = Checked(tuple(str(access) for access in accesses))
        counts = context.add_buffer(module, 4 * len(accesses)) if accesses and not self.stop else None
        for index, access in enumerate(accesses):
            with ir.InsertionPoint(access.op), access.op.location:
                inside = compare(access)
                if counts is None or access.op.name == "tt.atomic_cas":
                    message = ir.StringAttr.get(f"{access.op.name.removeprefix('tt.')} outside of its buffer")
                    ir.Operation.create("tt.assert", [], [allow_masked(access, inside)], {"message": message})
                else:
                    count_outside(counts, index, allow_masked(access, inside))
                    restrict(access, inside)
        return described

    def parse_lengths(self, kernel: ir.Operation, context: PassContext) -> dict[ir.Value, tuple[str, ir.Value | int]]:
        """The name and the length of each argument that `lengths` is about."""
        arguments = list(entry_block(kernel).arguments)
        names = list(context.arguments)
        if len(names) != len(arguments):  # outside a unit, or where a descriptor takes several parameters
            names = [str(index) for index in range(len(arguments))]

        def find(word: str) -> ir.Value:
            if word not in names:
                context.refuse(kernel, f"the kernel has no argument `{word}`: {', '.join(names)}")
            return arguments[names.index(word)]

        found: dict[ir.Value, tuple[str, ir.Value | int]] = {}
        for pair in filter(None, (each.strip() for each in self.lengths.split(","))):
            pointer, equals, length = (each.strip() for each in pair.partition("="))
            if not equals or not length:
                context.refuse(kernel, f"`{pair}` is not POINTER=LENGTH")
            is_number = length.isdigit() and length not in names
            found[find(pointer)] = (pointer, int(length) if is_number else find(length))
        return found


def find_accesses(kernel: ir.Operation, lengths: dict[ir.Value, tuple[str, ir.Value | int]]) -> list[Access]:
    """The accesses through the arguments of `lengths`, in order."""
    found = []
    for op in walk(kernel):
        if op.name in ACCESSES:
            base, offsets = split_pointer(TritonOp(op).operand("ptr"))
            if base in lengths and offsets:
                name, length = lengths[base]
                found.append(Access(op, name, offsets, length))
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


def compare(access: Access) -> ir.Value:
    """`0 <= sum of offsets < length` for each element, in 64 bits."""
    wide = of_shape(TritonOp(access.op).operand("ptr").type, ir.IntegerType.get_signless(64))
    total, *others = (convert(offset, wide) for offset in access.offsets)
    for offset in others:
        total = arith.addi(total, offset)
    low = arith.cmpi(arith.CmpIPredicate.sge, total, number(wide, 0))
    limit = number(wide, access.length) if isinstance(access.length, int) else convert(access.length, wide)
    return arith.andi(low, arith.cmpi(arith.CmpIPredicate.slt, total, limit))


def allow_masked(access: Access, inside: ir.Value) -> ir.Value:
    """`inside`, or masked off."""
    mask = find_mask(access)
    return inside if mask is None else arith.ori(inside, arith.xori(mask, number(mask.type, 1)))


def find_mask(access: Access) -> ir.Value | None:
    return TritonOp(access.op).operand("mask") if access.op.name != "tt.atomic_cas" else None


def count_outside(counts: ir.Value, index: int, fine: ir.Value) -> None:
    """Adds to the counter `index` how many elements are not `fine`."""
    i32 = ir.IntegerType.get_signless(32)
    outside = arith.extui(of_shape(fine.type, i32), arith.xori(fine, number(fine.type, 1)))
    while isinstance(outside.type, ir.RankedTensorType):
        outside = sum_first(outside)
    place = ir.Operation.create("tt.addptr", [counts.type], [counts, number(i32, index)]).results[0]
    words = {"atomic_rmw_op": 4, "sem": 1, "scope": 1}  # add, relaxed, one GPU
    attributes = {name: ir.IntegerAttr.get(i32, value) for name, value in words.items()}
    ir.Operation.create("tt.atomic_rmw", [i32], [place, outside, number(ir.IntegerType.get_signless(1), 1)], attributes)


def sum_first(value: ir.Value) -> ir.Value:
    """The sum of a tensor of i32 along its first axis."""
    i32 = value.type.element_type
    rest = value.type.shape[1:]
    result = ir.RankedTensorType.get(rest, i32) if rest else i32
    made = ir.Operation.create("tt.reduce", [result], [value], {"axis": ir.IntegerAttr.get(i32, 0)}, regions=1)
    block = ir.Block.create_at_start(made.regions[0], [i32, i32])
    with ir.InsertionPoint(block):
        ir.Operation.create("tt.reduce.return", [], [arith.addi(*block.arguments)])
    return made.results[0]


def restrict(access: Access, inside: ir.Value) -> None:
    """Masks off what is not inside."""
    mask = find_mask(access)
    made = TritonOp(access.op).copy_with(mask=inside if mask is None else arith.andi(mask, inside))
    for old, new in zip(access.op.results, made.results, strict=True):
        old.replace_all_uses_with(new)
    access.op.erase()


def of_shape(shape: ir.Type, element: ir.Type) -> ir.Type:
    return ir.RankedTensorType.get(shape.shape, element) if isinstance(shape, ir.RankedTensorType) else element


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
