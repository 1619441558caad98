"""Elementwise ops declared in Python: a function for kernels, and the MLIR that it becomes on each target.

In: a kernel's call. Out: `tt.extern_elementwise` with a symbol of ours, which a generated pass at the start of ttir
replaces by the declared ops (an op of a dialect that libtriton does not know could not be parsed). Triton is reached
through what the front end hands in, never imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from precast.errors import PassError
from precast.passes.selection import Anchor
from precast.target import Target

SYMBOL_PREFIX = "precast.op."
MLIR_TYPES = {"fp16": "f16", "bf16": "bf16", "fp32": "f32", "fp64": "f64", "int32": "i32", "int64": "i64"}


@dataclass(frozen=True)
class ElementwiseOp:
    """A pure elementwise op. A value of this class is a plain function in kernels: `y = softsign(x)`.

    `name` is what pyproject.toml selects, for every kernel that calls it; `types` are the scalar types it is for
    (operands and result share one). `lowering` holds MLIR text by target glob, first match wins: one
    `func.func` over scalars of `arith` and `math` ops, in which `{type}` stands for the type; it is put in the place
    of each call, element by element.
    """

    kind: ClassVar[str] = "op"
    stage: ClassVar[str] = "ttir"
    at: ClassVar[Anchor] = Anchor("start")
    __triton_builtin__: ClassVar[bool] = True  # how Triton's front end knows what a kernel may call

    name: str
    types: tuple[str, ...]
    lowering: Mapping[str, str] = field(hash=False)  # Triton's front end hashes what a kernel calls
    reads: tuple[str, ...] = ()

    def __call__(self, *arguments: Any, _semantic: Any = None) -> Any:
        """Called by Triton's front end while it reads a kernel."""
        if _semantic is None:
            raise TypeError(f"`{self.name}` can be called in a kernel only")
        operands = [_semantic.to_tensor(argument) for argument in arguments]
        for index in range(1, len(operands)):
            operands[0], operands[index] = _semantic.broadcast_impl_value(operands[0], operands[index])
        for index in range(1, len(operands)):
            operands[0], operands[index] = _semantic.broadcast_impl_value(operands[0], operands[index])
        types = {str(operand.dtype) for operand in operands}
        if len(types) != 1 or not types <= set(self.types):
            raise TypeError(f"`{self.name}` takes {' or '.join(self.types)}, not {', '.join(sorted(types))}")
        result, builder = operands[0].type, _semantic.builder
        handle = builder.create_extern_elementwise(
            "precast", "", self.symbol(types.pop()), [each.handle for each in operands], result.to_ir(builder), True
        )
        return type(operands[0])(handle, result)

    def symbol(self, scalar: str) -> str:
        """The symbol that a call on `scalar` elements carries until it is lowered."""
        return f"{SYMBOL_PREFIX}{self.name}.{scalar}"

    def lowering_for(self, target: Target, scalar: str) -> str:
        """The MLIR text for a target and a scalar type. `PassError` when no glob matches the target."""
        for pattern, text in self.lowering.items():
            if target.matches(pattern):
                return text.replace("{type}", MLIR_TYPES[scalar])
        raise PassError(f"op `{self.name}` has no lowering for target `{target}`")


def check_lowered(text: str) -> None:
    """`PassError` when ttir `text` still calls an op: it would be a missing symbol three stages later."""
    _, found, rest = text.partition(f'symbol = "{SYMBOL_PREFIX}')
    if found:
        name = rest.partition('"')[0].rpartition(".")[0]
        raise PassError(
            f"the kernel calls op `{name}`, which is not selected for it",
            hint=f'select it in pyproject.toml: [[tool.precast.pass]] use = "{name}"',
        )
