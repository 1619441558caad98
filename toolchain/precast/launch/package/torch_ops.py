"""Kernels of a release as PyTorch's custom operators, for `torch.compile`, `torch.export` and their like.

In: kernels and what their calls take. Out: operators `<namespace>::<kernel>`. An operator has the kernel's arguments in
order, then its grid where the spec has none, then its axes; it returns nothing and declares what it writes. This file
goes into a release's Python package.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

# A kernel's call: its arguments and its axes, each with its kind, and whether the spec has a grid.
Signature = tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...], bool]
_TYPES = {"int": "SymInt", "float": "float", "bool": "bool", "tensor": "Tensor", "tensor?": "Tensor?",
          "const tensor": "Tensor", "const tensor?": "Tensor?"}  # fmt: skip
_AXES = {"dtype": "str", "word": "str", "int": "int", "float": "float", "bool": "bool"}
DEVICES = ("cpu", "cuda")  # torch calls ROCm's so, too


def register(
    namespace: str,
    kernels: Mapping[str, Any],
    signatures: Mapping[str, Signature],
    mutates: Mapping[str, Iterable[str]],
) -> tuple[str, ...]:
    """Registers each kernel whose arguments are tensors and numbers, and returns the operators' names.

    `mutates` says for a kernel which of its tensors it writes; without it that is each which its spec does not call
    `*k…`, for more may be declared than is written, and never less.
    """
    unknown = sorted(set(mutates) - set(kernels))
    if unknown:
        raise KeyError(f"the release has no kernel {unknown[0]!r}")
    registered = []
    for name, kernel in kernels.items():
        if any(kind not in _TYPES for _, kind in signatures[name][0]):
            continue
        written = _written(name, signatures[name], mutates)
        _register_one(f"{namespace}::{name}", kernel, signatures[name], written)
        registered.append(f"{namespace}::{name}")
    return tuple(registered)


def _written(name: str, signature: Signature, mutates: Mapping[str, Iterable[str]]) -> frozenset[str]:
    tensors = {argument: kind for argument, kind in signature[0] if kind.rstrip("?").endswith("tensor")}
    if name not in mutates:
        return frozenset(argument for argument, kind in tensors.items() if not kind.startswith("const"))
    wrong = sorted(set(mutates[name]) - set(tensors))
    if wrong:
        raise ValueError(f"`{wrong[0]}` of `{name}` is no tensor")
    return frozenset(mutates[name])


def render_schema(signature: Signature, written: frozenset[str]) -> str:
    """The operator's arguments in PyTorch's language."""
    arguments, axes, has_grid = signature
    words = []
    for number, (name, kind) in enumerate(arguments):
        type_ = _TYPES[kind]
        if name in written:
            type_ = type_.replace("Tensor", f"Tensor(a{number}!)")
        words.append(f"{type_} {name}")
    words += [] if has_grid else ["SymInt[] grid"]
    words += ["*"] if axes else []
    words += [f"{_AXES[kind]}? {name}=None" for name, kind in axes]
    return f"({', '.join(words)}) -> ()"


def _register_one(operator: str, kernel: Any, signature: Signature, written: frozenset[str]) -> None:
    import torch

    made = torch.library.custom_op(
        operator,
        _launch_of(kernel, signature[2]),
        mutates_args=written,
        device_types=DEVICES,
        schema=render_schema(signature, written),
    )
    made.register_fake(_make_nothing)


def _launch_of(kernel: Any, has_grid: bool) -> Callable[..., None]:
    def launch(*arguments: Any, **axes: Any) -> None:
        said = {name: value for name, value in axes.items() if value is not None}
        if has_grid:
            kernel(*arguments, **said)
        else:
            kernel[tuple(arguments[-1])](*arguments[:-1], **said)

    return launch


def _make_nothing(*arguments: Any, **axes: Any) -> None:
    """What tracing runs in place of a launch: no operator here returns anything."""
