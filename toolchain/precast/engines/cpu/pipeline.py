"""The `llir` stage: `loops` text to LLVM IR text, by the upstream MLIR bindings. In: MLIR text. Out: LLVM IR text.

The passes are a list, so that `precast passes` can print it and a plugin can stand before or after it.
"""

from __future__ import annotations

from mlir import ir
from mlir.dialects import llvm
from mlir.passmanager import PassManager

from precast.errors import PassError

PASSES = (
    "canonicalize",
    "cse",
    "convert-scf-to-cf",
    *(f"convert-{dialect}-to-llvm" for dialect in ("vector", "math", "arith", "index", "ub", "func", "cf")),
    "reconcile-unrealized-casts",
)


def lower_module(text: str) -> str:
    """LLVM IR of a `loops` module; `PassError` where the text is not valid MLIR or a pass refuses it."""
    with ir.Context() as context:
        context.enable_multithreading(False)
        try:
            module = ir.Module.parse(text)
            PassManager.parse(f"builtin.module({','.join(PASSES)})").run(module.operation)
        except ir.MLIRError as error:
            raise PassError(f"the loops do not lower to LLVM IR: {error}") from error
        return str(llvm.translate_module_to_llvmir(module.operation))
