"""What `LimitSize` counts with: part of the package, and so of the pass's digest."""

from mlir import ir

from precast.passes.ir import walk


def count_ops(kernel: ir.Operation) -> int:
    return sum(1 for _ in walk(kernel))
