"""Checks that a kernel is a block program: every scalar has one value for all threads of a program."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mlir import ir

from precast.passes import Pass, PassContext, start
from precast.passes.ir import find_functions, walk
from precast.passes.ops import TritonOp

# Registers and intrinsics that differ between lanes or warps of one program. Those that do not (the program's own
# place in the grid, the multiprocessor, the clock) may be read.
VARYING = re.compile(
    r"%(laneid|warpid|tid|lanemask_\w+|pm\d+)"  # PTX special registers
    r"|v_mbcnt\w*|hwreg\(HW_REG_HW_ID\w*|v0\b"  # AMD: lane counts, hardware id, the work-item id in v0
    r"|(?:nvvm\.read\.ptx\.sreg|amdgcn)\.(?:tid|laneid|warpid|workitem\.id|mbcnt)[\w.]*"
    r"|__ockl_get_local_id|threadIdx"
)


@dataclass(frozen=True)
class CheckBlockProgram(Pass):
    """Refuses kernels that smuggle a lane- or warp-varying value into a scalar through inline assembly or a library.

    `allow` lists registers, separated by commas, that a kernel may read all the same.
    """

    name, stage, at = "check-block-program", "ttir", start()
    allow: str = ""

    def run(self, module: ir.Module, context: PassContext) -> None:
        allowed = {each.strip() for each in self.allow.split(",")}
        for function in find_functions(module):
            for op in walk(function):
                source = source_text(op)
                found = [match[0] for match in VARYING.finditer(source) if match[0] not in allowed]
                if found and not all(isinstance(each.type, ir.RankedTensorType) for each in op.results):
                    context.refuse(op, f"a scalar takes the value of `{found[0]}`, which differs between threads")


def source_text(op: ir.Operation) -> str:
    """The target's own text that an op carries: assembly, or the symbol of a library function."""
    if op.name == "tt.elementwise_inline_asm":
        return str(TritonOp(op).attribute("asm_string"))
    if op.name == "tt.extern_elementwise":
        return str(TritonOp(op).attribute("symbol"))
    return ""
