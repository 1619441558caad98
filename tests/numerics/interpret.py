"""Run one kernel of `kernels/` in Triton's interpreter against its float64 references: `python interpret.py KERNEL`.

Prints one line of JSON per problem. A process of its own, because Triton decides at import whether it interprets. Needs
torch, whose tensors the interpreter takes.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

os.environ["TRITON_INTERPRET"] = "1"

import numpy as np
import torch
import triton.language as tl
from kernel_cases import CASES
from kernel_cases.case import Argument, Array, Descriptor, Problem
from triton.tools.tensor_descriptor import TensorDescriptor

from precast.grid import evaluate, parse_grid
from precast.plan import plan_project
from precast.project import read_project
from precast.spec.model import Unit

ROOT = Path(__file__).parents[2]
TORCH = {
    "i1": torch.bool, "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64,
    "u8": torch.uint8, "fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32, "fp64": torch.float64,
}  # fmt: skip


def refusal(unit: Unit) -> str:
    """Why the interpreter of Triton 3.9 cannot judge a unit; empty when it can."""
    values = dict(unit.variant.values)
    if unit.kernel in ("attention", "matmul", "matmul_persistent", "matmul_specialized") and values["dtype"] == "bf16":
        return "it multiplies the bits of bf16"
    if values.get("SOFTCAP"):
        return "it has no libdevice"
    return ""


def list_units(kernel: str) -> Iterator[Unit]:
    """The variants of a kernel, without those that differ by hints alone."""
    plan = plan_project(read_project(ROOT), kernels=(kernel,), targets=("cuda:90",))
    for planned in plan.units:
        if not planned.unit.variant.hints and not refusal(planned.unit):
            yield planned.unit


def run(unit: Unit, problem: Problem) -> None:
    """Launch the unit's function over its grid; outputs land in the problem's arrays."""
    source = ROOT / unit.source.file
    sys.path.insert(0, str(source.parent))
    function = getattr(importlib.import_module(source.stem), unit.source.function)
    axes = dict(unit.variant.values)
    values = {argument.name: constant(argument.value) for argument in unit.arguments if argument.type == "constexpr"}
    values |= {name: pass_argument(value, axes) for name, value in problem.arguments.items()}
    function[find_grid(unit, problem)](**values)


def constant(value: object) -> object:
    """A constexpr as Triton takes it: `tl.` and a name is a data type."""
    return getattr(tl, value[3:]) if isinstance(value, str) and value.startswith("tl.") else value


def pass_argument(value: Argument, axes: dict[str, object]) -> object:
    """An argument as the interpreter takes it; tensors share memory with the problem's arrays."""
    if isinstance(value, Array):
        return tensor(value)
    if isinstance(value, Descriptor):
        array = value.array
        return TensorDescriptor(
            tensor(array), list(array.shape), list(array.strides), [axes[name] for name in value.block]
        )
    return torch.zeros(1, dtype=TORCH[str(axes["dtype"])]) if value is None else value


def tensor(array: Array) -> torch.Tensor:
    """The whole buffer of an array as a torch tensor of its element type."""
    data = array.data.view(np.int16) if array.element == "bf16" else array.data
    return torch.from_numpy(data).view(TORCH[array.element])


def find_grid(unit: Unit, problem: Problem) -> tuple[int, ...]:
    """The grid of the spec for a problem's arguments."""
    named = {**dict(unit.variant.values), **{argument.name: argument.value for argument in unit.arguments}}
    integers = {name: value for name, value in {**named, **problem.arguments}.items() if isinstance(value, int)}
    return tuple(evaluate(parse_grid(text, integers), integers) for text in unit.grid)


def main() -> None:
    case = CASES[sys.argv[1]]
    for unit in list_units(case.kernel):
        for shape in case.shapes:
            problem = case.problem(dict(unit.variant.values), shape)
            run(unit, problem)
            shares = {error.argument: error.share for error in problem.errors()}
            print(json.dumps({"unit": str(unit), "shape": shape, "shares": shares}), flush=True)


if __name__ == "__main__":
    main()
