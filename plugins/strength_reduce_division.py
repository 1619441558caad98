"""Turns integer division by a constant power of two into shifts: index arithmetic with constexpr strides."""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith

from precast.passes import Pass, PassContext, end
from precast.passes.ir import walk

DIVISIONS = ("arith.divsi", "arith.remsi", "arith.divui", "arith.remui")


@dataclass(frozen=True)
class StrengthReduceDivision(Pass):
    """Division and remainder of integers by a power of two that is known at compile time become shifts and masks.

    The rewriting looks at one op and its divisor alone, and holds for every dividend: a negative one is rounded
    towards zero, as the division does.
    """

    name, stage, at = "strength-reduce-division", "ttir", end()

    def run(self, module: ir.Module, context: PassContext) -> None:
        for op in list(walk(module)):
            divisor = power_of_two(op.operands[1]) if op.name in DIVISIONS else None
            if divisor is not None:
                with ir.InsertionPoint(op), op.location:
                    op.results[0].replace_all_uses_with(reduce(op.name, op.operands[0], divisor))
                op.erase()


def power_of_two(value: ir.Value) -> int | None:
    """The power of two that a constant, or a tensor of one constant, is; not 1, for that is no division."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.constant":
        return None
    attribute = owner.attributes["value"]
    if isinstance(attribute, ir.DenseElementsAttr):
        if not attribute.is_splat:
            return None
        attribute = attribute.get_splat_value()
    number = ir.IntegerAttr(attribute).value
    return number if number > 1 and number & (number - 1) == 0 else None


def reduce(name: str, dividend: ir.Value, divisor: int) -> ir.Value:
    """The quotient or remainder by shifts."""
    shift, mask = constant(dividend.type, divisor.bit_length() - 1), constant(dividend.type, divisor - 1)
    if name == "arith.divui":
        return arith.shrui(dividend, shift)
    if name == "arith.remui":
        return arith.andi(dividend, mask)
    # Towards zero: a negative dividend gets divisor - 1 added before the shift, which itself rounds down.
    sign = arith.shrsi(dividend, constant(dividend.type, width(dividend.type) - 1))
    biased = arith.addi(dividend, arith.andi(sign, mask))
    if name == "arith.divsi":
        return arith.shrsi(biased, shift)
    return arith.subi(dividend, arith.shli(arith.shrsi(biased, shift), shift))


def width(kind: ir.Type) -> int:
    return ir.IntegerType(kind.element_type if isinstance(kind, ir.RankedTensorType) else kind).width


def constant(kind: ir.Type, value: int) -> ir.Value:
    """`value` as a constant of the type, or in every element of it."""
    scalar = kind.element_type if isinstance(kind, ir.RankedTensorType) else kind
    attribute = ir.IntegerAttr.get(scalar, value)
    if isinstance(kind, ir.RankedTensorType):
        attribute = ir.DenseElementsAttr.get_splat(kind, attribute)
    return arith.constant(kind, attribute)
