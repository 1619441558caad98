"""Sets how chosen loads or stores use the caches."""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from precast.passes import Pass, PassContext, end
from precast.passes.ir import entry_block, find_kernel, walk
from precast.passes.ops import TritonOp

MODIFIERS = ("none", "ca", "cg", "wb", "cs", "wt", "cv")
EVICTIONS = ("evict_normal", "evict_first", "evict_last")


@dataclass(frozen=True)
class CachePolicy(Pass):
    """Gives the loads, or the stores, of a kernel a cache modifier and an eviction policy.

    `argument` restricts it to accesses through one pointer: its position among the kernel's run-time arguments, from
    0; -1 takes all.
    """

    name, stage, at = "cache-policy", "ttir", end()
    modifier: str = "none"
    eviction: str = "evict_normal"
    stores: bool = False
    argument: int = -1

    def run(self, module: ir.Module, context: PassContext) -> None:
        kernel = find_kernel(module)
        if self.modifier not in MODIFIERS:
            context.refuse(kernel, f"there is no cache modifier `{self.modifier}`: {', '.join(MODIFIERS)}")
        if self.eviction not in EVICTIONS:
            context.refuse(kernel, f"there is no eviction policy `{self.eviction}`: {', '.join(EVICTIONS)}")
        arguments = list(entry_block(kernel).arguments)
        if self.argument >= len(arguments):
            context.refuse(kernel, f"the kernel has {len(arguments)} arguments, not {self.argument + 1}")
        wanted = arguments[self.argument] if self.argument >= 0 else None
        policy = f"#tt.cache_policy<cache_modifier = {self.modifier}, eviction_policy = {self.eviction}>"
        for op in walk(kernel):
            if op.name == ("tt.store" if self.stores else "tt.load"):
                access = TritonOp(op)
                if wanted is None or find_base(access.operand("ptr")) == wanted:
                    access.set_attribute("cachePolicy", policy)


def find_base(pointer: ir.Value) -> ir.Value:
    """The value that a pointer, or a tensor of pointers, was made from by splats, broadcasts and offsets."""
    steps = ("tt.addptr", "tt.splat", "tt.broadcast", "tt.expand_dims", "tt.reshape", "tt.bitcast")
    while not isinstance(pointer.owner, ir.Block) and pointer.owner.name in steps:
        pointer = pointer.owner.operands[0]
    return pointer
