"""The `llir` stage: `loops` text to LLVM IR text, by the upstream MLIR bindings. In: MLIR text. Out: LLVM IR text.

The passes are a list, so that `precast passes` can print it and a plugin can stand before or after it.
"""

from __future__ import annotations

import threading

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
_DIALECTS = ("arith", "cf", "func", "index", "llvm", "math", "scf", "ub", "vector")
_LONGEST_SERVICE = 100  # modules that a context is used for: what it knows of types and attributes it keeps


class _Context(threading.local):
    """A thread's context: making one takes longer than lowering a small kernel.

    It has all dialects from the start, so that a module's result does not depend on those before it.
    """

    def __init__(self) -> None:
        self._uses = 0

    def take(self) -> ir.Context:
        if self._uses % _LONGEST_SERVICE == 0:
            self._context = ir.Context()
            self._context.enable_multithreading(False)
            for name in _DIALECTS:
                _ = self._context.dialects[name]
        self._uses += 1
        return self._context


_CONTEXT = _Context()


def _parse_passes() -> PassManager:
    """What they leave is not verified, a third of their time: what came in was, and LLVM looks at what comes out."""
    passes = PassManager.parse(f"builtin.module({','.join(PASSES)})")
    passes.enable_verifier(False)
    return passes


def lower_module(text: str) -> str:
    """LLVM IR of a `loops` module; `PassError` where the text is not valid MLIR or a pass refuses it."""
    with _CONTEXT.take():
        try:
            module = ir.Module.parse(text)
            _parse_passes().run(module.operation)
        except ir.MLIRError as error:
            raise PassError(f"the loops do not lower to LLVM IR: {error}") from error
        return str(llvm.translate_module_to_llvmir(module.operation))
