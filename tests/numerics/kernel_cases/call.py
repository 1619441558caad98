"""How a kernel of a release is called: its arguments and axes in order, and one problem in the words of each launcher.

In: a `Problem` and a `Call` (made from a plan by `release_calls`, or read from JSON on a machine without Precast).
Out: positional arguments and axes for the Python package; a folder of files for the C program `runner.c`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kernel_cases.case import Argument, Array, Descriptor, Problem, Scalar
from kernel_cases.dtypes import encode

Constant = str | bool | int | float | None
FILE = "call"  # of a problem's folder: one line for each scalar, and the kernel's name


@dataclass(frozen=True)
class Axis:
    """One axis of a kernel's call; `number` is what C gets for this call's `value`."""

    name: str
    value: Constant
    number: int | float


@dataclass(frozen=True)
class Call:
    """One variant of a kernel on a target, hints left to the launcher; `slots` are (name, C's type) in order."""

    kernel: str
    target: str
    axes: tuple[Axis, ...]
    slots: tuple[tuple[str, str], ...]

    @property
    def values(self) -> dict[str, Constant]:
        return {axis.name: axis.value for axis in self.axes}

    def __str__(self) -> str:
        return f"{self.kernel}:{','.join(f'{axis.name}={axis.value}' for axis in self.axes)}"

    def to_data(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_data(data: Mapping[str, Any]) -> Call:
        axes = tuple(Axis(**axis) for axis in data["axes"])
        return Call(data["kernel"], data["target"], axes, tuple((name, kind) for name, kind in data["slots"]))


def positional(call: Call, problem: Problem, convert: Callable[[Array], object]) -> list[object]:
    """The arguments for the Python package, arrays through `convert`, an array that is not there as a null pointer."""

    def turn(value: Argument) -> object:
        if value is None:
            return 0
        if isinstance(value, tuple):
            return tuple(turn(each) for each in value)
        if isinstance(value, Descriptor):
            return convert(value.array)
        if isinstance(value, Scalar):
            return value.value
        return convert(value) if isinstance(value, Array) else value

    names = dict.fromkeys(name.split(".")[0] for name, _ in call.slots)
    return [turn(problem.arguments[name]) for name in names]


def write_call(folder: Path, call: Call, problem: Problem) -> None:
    """A problem as `runner.c` reads it: arrays as files of their bytes, scalars as lines of `call`."""
    folder.mkdir(parents=True)
    lines = [f"kernel {call.kernel}", *(f"{axis.name} {axis.number!r}" for axis in call.axes)]
    for name, _ in call.slots:
        value = problem.leaf(name)
        array = value.array if isinstance(value, Descriptor) else value
        if isinstance(array, Array):
            (folder / name).write_bytes(array.data.tobytes())
            lines += [f"{name}.rank {len(array.shape)}"]
            lines += [f"{name}.shape{i} {size}" for i, size in enumerate(array.shape)]
            lines += [f"{name}.stride{i} {size}" for i, size in enumerate(array.strides)]
        elif value is not None:
            lines.append(f"{name} {_scalar_text(value)}")
    (folder / FILE).write_text("".join(f"{line}\n" for line in lines))


def _scalar_text(value: Argument) -> str:
    if isinstance(value, Scalar):
        return str(int(encode([value.value], value.element).view(np.uint16)[0]))
    assert isinstance(value, bool | int | float)
    return repr(int(value) if isinstance(value, bool) else value)


def read_outputs(folder: Path, problem: Problem) -> None:
    """Put what the C program left in `folder` back into the problem's arrays."""
    for name in problem.expected:
        array = problem.array(name)
        array.data[...] = np.frombuffer((folder / name).read_bytes(), array.data.dtype)
