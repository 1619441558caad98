"""Built units as a reader sees them. In: the build folder. Out: results, stage texts, and rows of what changed.

Reads `facts.json` of each unit folder; knows nothing of how a unit was built.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from precast.artifact import Facts, UnitResult
from precast.codec import from_json
from precast.errors import SpecError, nearest_hint

COMPARED = (
    "registers", "spill_bytes", "shared_bytes", "tensor_memory_bytes", "code_bytes", "num_warps",
    "thread_scratch_bytes",
)  # fmt: skip


@dataclass(frozen=True)
class BuiltUnit:
    """A unit with an image: what is known of it and the folder that holds its files."""

    result: UnitResult
    folder: Path

    @property
    def kernel(self) -> str:
        return self.result.unit.partition("@")[0].partition(":")[0]


@dataclass(frozen=True)
class Change:
    """One fact of one unit that differs between two builds; `None` where a build lacks the unit or the fact."""

    unit: str
    fact: str
    before: int | None
    after: int | None


def read_built_units(units_folder: Path) -> tuple[BuiltUnit, ...]:
    """Every unit with an image below `build/units`, ordered by its text."""
    found = [
        BuiltUnit(from_json(path.read_bytes(), UnitResult), path.parent) for path in units_folder.glob("*/*/facts.json")
    ]
    return tuple(sorted(found, key=lambda built: built.result.unit))


def find_units(built: Sequence[BuiltUnit], pattern: str) -> tuple[BuiltUnit, ...]:
    """The units whose text, kernel or variant `pattern` matches as a glob; `SpecError` when none does."""
    found = tuple(unit for unit in built if matches(unit, pattern))
    if not found:
        names = [unit.result.unit for unit in built] + [unit.kernel for unit in built]
        raise SpecError(f"no built unit matches `{pattern}`", hint=nearest_hint(pattern, names, "units"))
    return found


def matches(unit: BuiltUnit, pattern: str) -> bool:
    text = unit.result.unit
    return any(fnmatchcase(name, pattern) for name in (text, text.rpartition("@")[0], unit.kernel))


def read_stage(unit: BuiltUnit, stage: str) -> bytes:
    """A stage's text or image as it was built; `SpecError` names the stages that are there."""
    stages = [file.stage for file in unit.result.stages]
    path = unit.folder / f"{unit.kernel}.{stage}"
    if not path.is_file():
        raise SpecError(f"{unit.result.unit} has no stage `{stage}`", hint=nearest_hint(stage, stages, "stages"))
    return path.read_bytes()


def compare_facts(before: Sequence[UnitResult], after: Sequence[UnitResult]) -> tuple[Change, ...]:
    """What differs in size and resources between two sets of units, by unit text."""
    old = {result.unit: result.facts for result in before}
    new = {result.unit: result.facts for result in after}
    return tuple(
        Change(unit, fact, number(old.get(unit), fact), number(new.get(unit), fact))
        for unit in sorted(old.keys() | new.keys())
        for fact in COMPARED
        if number(old.get(unit), fact) != number(new.get(unit), fact)
    )


def number(facts: Facts | None, fact: str) -> int | None:
    value = dataclasses.asdict(facts)[fact] if facts else None
    return value if value is None else int(value)
