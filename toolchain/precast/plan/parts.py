"""Parts of a project that can be wrong alone: units, kernels, spec files.

In: what is wrong while one of them is planned. Out: errors that end the plan, or, in a build that goes on after
errors, parts that fail by themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from precast.errors import CompileError, PrecastError
from precast.spec.problems import Problems


@dataclass(frozen=True)
class FailedPart:
    """What cannot be planned: a unit, every unit of a kernel (`softmax:*`), or a spec file, whose `kernel` is ""."""

    name: str
    kernel: str
    error: PrecastError


class Parts:
    """The parts that failed so far; without `keep_going` none does, for its errors are the whole plan's."""

    def __init__(self, problems: Problems, keep_going: bool) -> None:
        self.failed: list[FailedPart] = []
        self._problems = problems
        self._keep_going = keep_going

    @contextmanager
    def part(self, name: str, kernel: str = "") -> Iterator[Problems]:
        """Collects what is wrong with the part `name`."""
        own = Problems()
        with own.collect():
            yield own
        if not self._keep_going:
            self._problems.add(own.errors)
        elif own.errors:
            told = Problems()
            told.add(_of_unit(error, name) if kernel else error for error in own.errors)
            self.failed.append(FailedPart(name, kernel, told.joined()))

    def kernel(self, kernel: str) -> AbstractContextManager[Problems]:
        """Collects what is wrong with a kernel as a whole: which units it has is then not known."""
        return self.part(f"{kernel}:*", kernel)


def _of_unit(error: PrecastError, unit: str) -> CompileError:
    return CompileError(error.message, error.where, error.hint, unit=unit)
