"""Counts what one program of a kernel moves and computes: two numbers of a roofline plot."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from mlir import ir

from precast.passes import Pass, PassContext, end
from precast.passes.ir import find_kernel

MOVES = {"tt.load": "load", "tt.store": "store", "tt.atomic_rmw": "atomic", "tt.atomic_cas": "atomic"}
MOVES |= {"tt.descriptor_load": "load", "tt.descriptor_store": "store", "tt.descriptor_gather": "load"}
FLOPS = re.compile(
    r"arith\.(add|sub|mul|div|rem|neg)f|arith\.(max|min)(num|imum)f|math\.(?!abs|copysign).*|tt\.precise_.*"
)


@dataclass(frozen=True)
class Traffic:
    """Of one program, masks taken as full and both sides of a branch as taken: upper bounds.

    A loop whose trip count is known only at run time counts once and adds to `dynamic_loops`: then all numbers are
    for one trip. `intensity` is flops per byte; `attainable_tflops` is what a roof of `peak_tflops` and
    `bandwidth_gbs` leaves at that intensity (0 when no roof was given).
    """

    load_bytes: int
    store_bytes: int
    atomic_bytes: int
    flops: int
    intensity: float
    attainable_tflops: float
    dynamic_loops: int


@dataclass(frozen=True)
class CountTraffic(Pass):
    """Bytes moved and floating-point operations of one program of a kernel, as findings."""

    name, stage, at = "count-traffic", "ttir", end()
    peak_tflops: float = 0.0
    bandwidth_gbs: float = 0.0

    def run(self, module: ir.Module, context: PassContext) -> Traffic:
        total = {"load": 0, "store": 0, "atomic": 0, "flops": 0, "loops": 0}
        for op, times in counted_ops(find_kernel(module), 1, total):
            if op.name in MOVES:
                total[MOVES[op.name]] += times * bytes_moved(op)
            total["flops"] += times * flops_of(op)
        moved = total["load"] + total["store"] + total["atomic"]
        intensity = total["flops"] / moved if moved else 0.0
        attainable = min(self.peak_tflops, intensity * self.bandwidth_gbs / 1000)
        return Traffic(
            total["load"], total["store"], total["atomic"], total["flops"], intensity, attainable, total["loops"]
        )


def counted_ops(op: ir.Operation, times: int, total: dict[str, int]) -> Iterator[tuple[ir.Operation, int]]:
    """Every op below `op` with how often it runs."""
    for region in op.regions:
        for block in region.blocks:
            for child in block.operations:
                yield child.operation, times
                yield from counted_ops(child.operation, times * trips(child.operation, total), total)


def trips(op: ir.Operation, total: dict[str, int]) -> int:
    """How often the body of `op` runs each time that `op` does."""
    if op.name in ("tt.reduce", "tt.scan"):
        return max(prod(op.operands[0].type.shape) - 1, 0)
    if op.name == "scf.for":
        low, high, step = (constant(op.operands[index]) for index in range(3))
        if low is not None and high is not None and step:
            return max(0, -(-(high - low) // step))
    if op.name in ("scf.for", "scf.while"):
        total["loops"] += 1
    return 1


def constant(value: ir.Value) -> int | None:
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.constant":
        return None
    return int(ir.IntegerAttr(owner.attributes["value"]).value)


def elements(kind: ir.Type) -> int:
    return prod(kind.shape) if isinstance(kind, ir.RankedTensorType) else 1


def bytes_moved(op: ir.Operation) -> int:
    """The bytes that one execution of a memory op moves, for all its elements."""
    kind = op.results[0].type if len(op.results) else op.operands[1].type
    element = kind.element_type if isinstance(kind, ir.RankedTensorType) else kind
    bits = re.search(r"[iuf](\d+)|f8", str(element))
    width = int(bits[1]) if bits and bits[1] else 8
    return elements(kind) * max(1, (64 if "ptr" in str(element) else width) // 8)


def flops_of(op: ir.Operation) -> int:
    """Floating-point operations of one execution; a fused multiply-add is two."""
    if op.name in ("tt.dot", "tt.dot_scaled"):
        (rows, inner), columns = op.operands[0].type.shape[-2:], op.results[0].type.shape[-1]
        return 2 * elements(op.results[0].type) // (rows * columns) * rows * columns * inner
    if not FLOPS.fullmatch(op.name):
        return 0
    return elements(op.results[0].type) * (2 if op.name == "math.fma" else 1)
