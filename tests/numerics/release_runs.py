"""Runs the CPU kernels of a release, from its Python package and from the C program, on problems with references.

In: a release folder and a plan. Out: `Run` values, one per call, shape and launcher.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from kernel_cases import CASES
from kernel_cases.call import Call, positional, read_outputs, write_call
from kernel_cases.case import Array, Problem, Shape
from kernel_cases.dtypes import FP8


@dataclass(frozen=True)
class Run:
    """One problem through one launcher: `largest` absolute error, and `share` of the allowed one (at most 1: right)."""

    call: Call
    shape: Shape
    launcher: str
    largest: float
    share: float

    def __str__(self) -> str:
        return f"{self.launcher} {self.call} {self.shape}"


def list_problems(calls: Sequence[Call]) -> Iterator[tuple[Call, Shape, Problem]]:
    """Every call with each shape of its kernel, the problem made anew."""
    for call in calls:
        for shape in CASES[call.kernel].shapes:
            yield call, shape, CASES[call.kernel].problem(call.values, shape)


def import_package(release: Path, name: str = "kernels") -> ModuleType:
    """The release's own Python package, whatever another release's was."""
    for loaded in [each for each in sys.modules if each.partition(".")[0] == name]:
        del sys.modules[loaded]
    sys.path.insert(0, str(release / "python"))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.pop(0)


def run_from_python(package: ModuleType, calls: Sequence[Call]) -> Iterator[Run]:
    """Launch each problem through the package, grid from the spec."""
    for call, shape, problem in list_problems(calls):
        getattr(package, call.kernel)(*positional(call, problem, pass_array), **call.values)
        yield measure(call, shape, "python", problem)


@dataclass(frozen=True)
class Extended:
    """An array of a type that NumPy lacks (bf16, fp8), as extension types such as those of ml_dtypes present it."""

    array: Array

    @property
    def dtype(self) -> str:
        return self.array.element

    @property
    def __array_interface__(self) -> dict[str, object]:
        size = self.array.data.itemsize
        return {**self.array.view().__array_interface__, "typestr": f"|V{size}", "descr": [("", f"|V{size}")]}


def pass_array(array: Array) -> object:
    """An array as the package takes it."""
    return Extended(array) if array.element == "bf16" or array.element in FP8 else array.view()


def run_from_c(runner: Path, calls: Sequence[Call], folder: Path) -> Iterator[Run]:
    """Launch all problems in one run of the C program; `folder` holds their files."""
    problems = list(list_problems(calls))
    places = [folder / str(number) for number in range(len(problems))]
    for place, (call, _, problem) in zip(places, problems, strict=True):
        write_call(place, call, problem)
    subprocess.run([runner, "cpu", *places], check=True)
    for place, (call, shape, problem) in zip(places, problems, strict=True):
        read_outputs(place, problem)
        yield measure(call, shape, "c", problem)


def measure(call: Call, shape: Shape, launcher: str, problem: Problem) -> Run:
    """What came out, against the reference."""
    errors = problem.errors()
    return Run(call, shape, launcher, max(each.largest for each in errors), max(each.share for each in errors))
