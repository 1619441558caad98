"""Renames a kernel: its symbol in every image comes from here."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mlir import ir

from precast.passes import Pass, PassContext, end
from precast.passes.ir import find_kernel


@dataclass(frozen=True)
class RenameKernel(Pass):
    """Gives the kernel another symbol: `prefix` + its name + `suffix`."""

    name, stage, at = "rename-kernel", "ttir", end()
    prefix: str = ""
    suffix: str = ""

    def run(self, module: ir.Module, context: PassContext) -> None:
        kernel = find_kernel(module)
        symbol = f"{self.prefix}{kernel.attributes['sym_name'].value}{self.suffix}"
        if not re.fullmatch(r"[A-Za-z_]\w*", symbol):
            context.refuse(kernel, f"`{symbol}` is not a symbol: letters, digits and underscores")
        kernel.attributes["sym_name"] = ir.StringAttr.get(symbol)
