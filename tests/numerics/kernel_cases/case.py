"""What a kernel's numerics check is made of: arrays in one flat buffer, a problem, a case.

A `KernelCase` makes a `Problem` for one variant and one shape: every run-time argument by name, and what each output
must hold, in float64. Whoever runs it (CPU release, interpreter, GPU) passes the arguments in the spec's order and then
asks `Problem.errors`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import cast

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import as_strided

from kernel_cases.dtypes import HALF_ULP, STORAGE, Floats, Storage, decode, encode

Values = Mapping[str, object]  # axes of a variant
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Array:
    """An array argument: `shape` with `strides` (in elements) inside flat `data`; gaps between rows hold a mark.

    The first `slack` elements of each gap may change: TMA stores rows in units of 16 bytes.
    """

    element: str
    data: Storage
    shape: Shape
    strides: Shape
    slack: int = 0

    def view(self) -> Storage:
        """The array inside its buffer: writing to it writes the buffer."""
        return as_strided(self.data, self.shape, [each * self.data.itemsize for each in self.strides])

    def values(self) -> Floats:
        return decode(self.view(), self.element)

    def broken_gaps(self) -> int:
        """How many elements of the gaps no longer hold the mark: writes out of bounds."""
        gaps = np.ones(len(self.data), bool)
        owned = (*self.shape[:-1], self.shape[-1] + self.slack) if self.shape else ()
        as_strided(gaps, owned, self.strides)[...] = False
        changed = self.data.view(np.uint8).reshape(len(self.data), -1) != _mark(self.element).view(np.uint8)
        return int(np.count_nonzero(changed.any(axis=1) & gaps))


@dataclass(frozen=True)
class Descriptor:
    """A host tensor descriptor argument: an array and the names of the axes that give its block shape."""

    array: Array
    block: tuple[str, ...]


@dataclass(frozen=True)
class Scalar:
    """A scalar argument of a type that C has no word for (fp16, bf16): C gets its bits."""

    element: str
    value: float


Argument = Array | Descriptor | Scalar | int | float | tuple[object, ...] | None


@dataclass(frozen=True)
class Tolerance:
    """|got - wanted| must be at most `absolute` + `relative` · |wanted|."""

    relative: float
    absolute: float


@dataclass(frozen=True)
class OutputError:
    """How far one output is off: its largest absolute error, and the largest share of what is allowed (≤ 1: right)."""

    argument: str
    largest: float
    share: float


@dataclass(frozen=True)
class Problem:
    """One launch: arguments by name, wanted outputs, and how near they must come (by output, else by `""`)."""

    arguments: Mapping[str, Argument]
    expected: Mapping[str, Floats]
    tolerances: Mapping[str, Tolerance]

    def leaf(self, name: str) -> Argument:
        """The argument `x`, or `pair.0` inside a tuple."""
        first, *path = name.split(".")
        value: Argument = self.arguments[first]
        for step in path:
            assert isinstance(value, tuple), name
            value = cast(Argument, value[int(step)])
        return value

    def array(self, name: str) -> Array:
        """The array of an argument, or of a leaf of one."""
        argument = self.leaf(name)
        found = argument.array if isinstance(argument, Descriptor) else argument
        assert isinstance(found, Array), name
        return found

    def errors(self) -> list[OutputError]:
        """One entry per output, after a launch; a write outside of an array counts as infinitely wrong."""
        return [self._error(name) for name in self.expected]

    def _error(self, name: str) -> OutputError:
        array, wanted = self.array(name), self.expected[name]
        if array.broken_gaps():
            return OutputError(name, np.inf, np.inf)
        tolerance = self.tolerances.get(name) or self.tolerances[""]
        got = array.values()
        assert got.shape == wanted.shape, f"{name}: {got.shape} against {wanted.shape}"
        equal = (got == wanted) | (np.isnan(got) & np.isnan(wanted))
        with np.errstate(invalid="ignore"):
            distance = np.where(equal, 0.0, np.abs(got - wanted))
            allowed = tolerance.absolute + tolerance.relative * np.abs(wanted)
            share = np.where(equal, 0.0, distance / np.where(allowed > 0, allowed, 1e-300))
        unequal = ~np.isfinite(share)
        distance[unequal] = share[unequal] = np.inf
        return OutputError(name, float(distance.max(initial=0.0)), float(share.max(initial=0.0)))


@dataclass(frozen=True)
class KernelCase:
    """How a kernel is checked: problems of three `shapes` (one ragged) for any variant.

    `tolerances` is by element type of the `dtype` axis (`""` when there is none): what `Problem` falls back on.
    """

    kernel: str
    make: Callable[[Values, Shape, np.random.Generator], Problem]
    shapes: tuple[Shape, ...]
    tolerances: Mapping[str, Tolerance] = field(default_factory=lambda: STANDARD)

    def problem(self, values: Values, shape: Shape) -> Problem:
        """The problem of one variant and shape; the same every time."""
        seed = sum(f"{self.kernel} {sorted(values.items())} {shape}".encode())
        made = self.make(values, shape, np.random.default_rng(seed))
        general = self.tolerances[str(values.get("dtype", ""))]
        return Problem(made.arguments, made.expected, {"": general, **made.tolerances})


def _standard(element: str, absolute: float) -> Tolerance:
    # One rounding of the result, and as much again for fp32 arithmetic before it.
    return Tolerance(2 * HALF_ULP[element], absolute)


# For kernels whose fp32 arithmetic loses a few bits at most.
STANDARD: Mapping[str, Tolerance] = {
    "": Tolerance(2e-6, 1e-6),
    "fp16": _standard("fp16", 1e-6),
    "bf16": _standard("bf16", 1e-6),
    "fp32": Tolerance(2e-6, 1e-6),
    "fp64": Tolerance(1e-12, 1e-12),
}
EXACT: Mapping[str, Tolerance] = dict.fromkeys(["", *STORAGE], Tolerance(0.0, 0.0))


def _mark(element: str) -> Storage:
    """What gaps and outputs hold before a launch: a NaN where the type has one, else an unlikely number."""
    number = np.nan if element in HALF_ULP else False if element == "i1" else 0x5A
    return encode([number], element)


def blank(element: str, shape: Shape, *, gap: int = 0, slack: int = 0) -> Array:
    """An array full of marks; `gap` elements stand between rows, `slack` of them the array's own."""
    row = (shape[-1] if shape else 1) + gap
    strides = (*(int(np.prod(shape[i + 1 : -1], dtype=np.int64)) * row for i in range(len(shape) - 1)), 1)
    size = max(int(np.prod(shape[:-1], dtype=np.int64)) * row, 1)
    return Array(element, np.repeat(_mark(element), size), shape, strides if shape else (), slack)


def filled(values: npt.ArrayLike, element: str, *, gap: int = 0) -> Array:
    """An array of `element` that holds `values`, rounded."""
    exact = np.asarray(values)
    array = blank(element, exact.shape, gap=gap)
    array.view()[...] = encode(exact, element)
    return array
