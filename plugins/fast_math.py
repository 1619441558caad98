"""Approximate division and square roots for chosen kernels."""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from precast.passes import Pass, PassContext, end
from precast.passes.ir import walk

# Triton's own lowering takes no fast-math flags from `arith` ops: what is approximate has an op of its own.
APPROXIMATE = {"arith.divf": "tt.approx_divf", "tt.precise_divf": "tt.approx_divf", "tt.precise_sqrt": "math.sqrt"}


@dataclass(frozen=True)
class FastMath(Pass):
    """32-bit division within 2 to 2.5 ULP for normal numbers, and square roots that need not be correctly rounded.

    Denormal operands of a division may give zero or infinity. GPU targets only: on CPUs neither would be faster.
    """

    name, stage, at = "fast-math", "ttir", end()
    division: bool = True
    square_root: bool = True

    def run(self, module: ir.Module, context: PassContext) -> None:
        if context.target.backend == "cpu":
            raise ValueError("fast-math is for GPU targets; narrow `targets` to cuda:* and hip:*")
        for op in list(walk(module)):
            chosen = self.square_root if op.name == "tt.precise_sqrt" else self.division
            if chosen and op.name in APPROXIMATE and is_single(op.results[0].type):
                with ir.InsertionPoint(op), op.location:
                    made = ir.Operation.create(APPROXIMATE[op.name], [op.results[0].type], list(op.operands))
                op.results[0].replace_all_uses_with(made.results[0])
                op.erase()


def is_single(kind: ir.Type) -> bool:
    return isinstance(kind.element_type if isinstance(kind, ir.RankedTensorType) else kind, ir.F32Type)
