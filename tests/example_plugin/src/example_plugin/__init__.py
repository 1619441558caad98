"""A pass in an installed package: it forbids kernels that grow too large."""

from dataclasses import dataclass

from mlir import ir

from example_plugin.counting import count_ops
from precast.passes import Pass, PassContext, end
from precast.passes.ir import find_kernel


@dataclass(frozen=True)
class Size:
    ops: int


@dataclass(frozen=True)
class LimitSize(Pass):
    """Refuses kernels of more than `limit` operations, and tells how many the others have."""

    name, stage, at = "limit-size", "ttir", end()
    limit: int = 10000

    def run(self, module: ir.Module, context: PassContext) -> Size:
        kernel = find_kernel(module)
        ops = count_ops(kernel)
        if ops > self.limit:
            context.refuse(kernel, f"{ops} operations, and {self.limit} are allowed")
        return Size(ops)
