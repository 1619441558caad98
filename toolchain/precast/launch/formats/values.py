"""What a release tells its launchers, as frozen values; `index`, `pack` and `interface` turn them into bytes.

In: plan (units) and engines (facts). Out: the values that release assembly fills in and the writers take.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from precast.artifact import Facts
from precast.keyed import Keyed
from precast.spec.model import Constant, Unit, format_constant
from precast.tuning.rules import Condition as Condition
from precast.tuning.rules import SelectionRule as SelectionRule

SCHEMA = 2  # layout of index.bin and of packs
LAUNCH_ABI = 1  # calls between generated code, runtime and CPU units

# Element types by the numbers that `precast.h` gives them; also the values of a dtype axis.
TYPE_CODES = {
    "i1": 1, "i8": 2, "i16": 3, "i32": 4, "i64": 5,
    "u1": 6, "u8": 7, "u16": 8, "u32": 9, "u64": 10,
    "fp16": 11, "bf16": 12, "fp32": 13, "fp64": 14,
    "fp8e4nv": 15, "fp8e5": 16, "fp8e4b8": 17, "fp8e5b16": 18, "fp8e4b15": 19,
}  # fmt: skip
POINTER = 0x80  # added to the code of what it points to
DESCRIPTOR = 0x40
MOST_WORDS = 256  # that may stand beside numbers on an axis


def word_of(value: Constant) -> str:
    """An axis value as launchers know it: a string as it is, the rest as in a unit's name."""
    return value if isinstance(value, str) else format_constant(value)


def kernel_of(unit: str) -> str:
    """The kernel that a unit's text begins with."""
    return unit.partition("@")[0].partition(":")[0]


@dataclass(frozen=True)
class Slot:
    """One 8-byte place among a call's arguments: an argument, or one leaf of a tuple.

    `type` is what a caller passes: `ptr`, `const ptr`, `tensordesc`, or a scalar's type, the widest of its kind
    where variants differ. `dtype_axis` names the axis that a tensor's element type decides, else empty.
    """

    name: str  # `x`, or `pair.0`
    type: str
    dtype_axis: str = ""
    rank: int = 0  # of a tensor descriptor
    optional: bool = False  # some unit has no such argument
    varied: bool = False  # a number whose type is not the same in all units


@dataclass(frozen=True)
class ArgumentInterface:
    """One run-time argument of a kernel; more than one slot when it is a tuple."""

    name: str
    slots: tuple[Slot, ...]
    default: tuple[Constant, ...] = ()  # one, or none


@dataclass(frozen=True)
class AxisInterface:
    """One axis and its values over all targets; `kind` is int, bool, float, dtype or word."""

    name: str
    kind: str
    values: tuple[Constant, ...]

    def says_itself(self, value: Constant) -> bool:
        """Whether C says the value by its number, and not by a macro's."""
        return self.kind != "word" or (type(value) is int and MOST_WORDS - 2**63 < value < 2**63)

    @property
    def has_numbers(self) -> bool:
        """Whether words stand beside numbers, of which none may be taken for a word's."""
        return self.kind == "word" and any(map(self.says_itself, self.values))


@dataclass(frozen=True)
class KernelInterface(Keyed):
    """What a caller of one kernel sees."""

    name: str
    source: str
    arguments: tuple[ArgumentInterface, ...]
    axes: tuple[AxisInterface, ...]
    has_grid: bool = True  # of its own; else each call gives one
    constants: tuple[AxisInterface, ...] = ()  # constexprs that have one value in every unit, and are no axes
    docstring: str = ""  # of the function; no part of what a caller's code rests on

    @property
    def slots(self) -> tuple[Slot, ...]:
        return tuple(slot for argument in self.arguments for slot in argument.slots)


@dataclass(frozen=True)
class ReleaseInterface:
    """What generated code depends on: nothing that a changed image changes."""

    name: str  # the library's name, a C identifier
    kernels: tuple[KernelInterface, ...]  # sorted by name
    units: tuple[str, ...]  # sorted by text

    @cached_property
    def keys(self) -> Mapping[str, str]:
        """The kernels' keys by their names."""
        return {kernel.name: kernel.key for kernel in self.kernels}

    @cached_property
    def units_of(self) -> Mapping[str, tuple[str, ...]]:
        """The units of each kernel, sorted by text."""
        found: dict[str, list[str]] = {kernel.name: [] for kernel in self.kernels}
        for unit in self.units:
            found.setdefault(kernel_of(unit), []).append(unit)
        return {kernel: tuple(units) for kernel, units in found.items()}


class ImagePlace(NamedTuple):
    """Where the bytes of an image lie in a release: a pack and a span, or a whole CPU shared object."""

    file: str  # relative to the release, with `/`
    offset: int
    size: int
    digest: str  # sha256 hex of the span


@dataclass(frozen=True)
class ReleaseFile:
    """A file that holds images, whole."""

    path: str
    size: int
    digest: str


@dataclass(frozen=True)
class IndexedUnit:
    """A built unit and where its image is."""

    unit: Unit
    facts: Facts
    image: ImagePlace


@dataclass(frozen=True)
class ReleaseIndex:
    """All that `index.bin` holds."""

    interface: ReleaseInterface
    units: tuple[IndexedUnit, ...]  # of a kernel and target in the spec's order, which decides where nothing else does
    files: tuple[ReleaseFile, ...]  # every pack and every CPU shared object
    selection: tuple[SelectionRule, ...] = ()
