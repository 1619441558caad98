"""Approximate arithmetic for chosen kernels: one pass for GPU targets, one for CPU targets."""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from precast.passes import Pass, PassContext, end
from precast.passes.ir import parse_attribute, walk

# Triton's own lowering takes no fast-math flags from `arith` ops: what is approximate has an op of its own.
APPROXIMATE = {"arith.divf": "tt.approx_divf", "tt.precise_divf": "tt.approx_divf", "tt.precise_sqrt": "math.sqrt"}


@dataclass(frozen=True)
class FastMath(Pass):
    """32-bit division within 2 to 2.5 ULP for normal numbers, and square roots that need not be correctly rounded.

    Denormal operands of a division may give zero or infinity. For GPU targets.
    """

    name, stage, at = "fast-math", "ttir", end()
    division: bool = True
    square_root: bool = True

    def run(self, module: ir.Module, context: PassContext) -> None:
        if context.target.backend == "cpu":
            raise ValueError("fast-math is for GPU targets: narrow `targets`, and use fast-math-cpu for cpu:*")
        for op in list(walk(module)):
            chosen = self.square_root if op.name == "tt.precise_sqrt" else self.division
            if chosen and op.name in APPROXIMATE and is_single(op.results[0].type):
                with ir.InsertionPoint(op), op.location:
                    made = ir.Operation.create(APPROXIMATE[op.name], [op.results[0].type], list(op.operands))
                op.results[0].replace_all_uses_with(made.results[0])
                op.erase()


def is_single(kind: ir.Type) -> bool:
    return isinstance(kind.element_type if isinstance(kind, ir.ShapedType) else kind, ir.F32Type)


@dataclass(frozen=True)
class FastMathCpu(Pass):
    """Lets LLVM divide by multiplying with a reciprocal, and fuse multiplications with additions. For CPU targets.

    Each changes a result by a rounding. `reassociate` also lets it change the order of additions and multiplications:
    sums then differ by as much as the order of their terms can make.
    """

    name, stage, at = "fast-math-cpu", "loops", end()
    division: bool = True
    fusion: bool = True
    reassociate: bool = False

    def run(self, module: ir.Module, context: PassContext) -> None:
        flags = {"arcp": self.division, "contract": self.fusion, "reassoc": self.reassociate}
        chosen = ",".join(flag for flag, wanted in flags.items() if wanted)
        for op in walk(module):
            if chosen and op.name in ("arith.addf", "arith.subf", "arith.mulf", "arith.divf"):
                op.attributes["fastmath"] = parse_attribute(op, f"#arith.fastmath<{chosen}>")
