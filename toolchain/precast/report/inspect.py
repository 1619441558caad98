"""Built units as a reader sees them. In: the build folder. Out: results and stage texts.

Reads `facts.json` of each unit folder; knows nothing of how a unit was built.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from precast.artifact import UnitResult
from precast.bounded import read_bounded
from precast.codec import CodecError, from_json
from precast.errors import SpecError, ToolError, nearest_hint
from precast.spec.model import Unit


@dataclass(frozen=True)
class BuiltUnit:
    """A unit with an image: what is known of it and the folder that holds its files."""

    result: UnitResult
    folder: Path

    @property
    def kernel(self) -> str:
        return self.result.unit.partition("@")[0].partition(":")[0]


def read_built_units(units_folder: Path) -> tuple[BuiltUnit, ...]:
    """Every unit with an image below `build/units`, ordered by its text."""
    found = [BuiltUnit(_read_facts(path), path.parent) for path in units_folder.glob("*/*/facts.json")]
    return tuple(sorted(found, key=lambda built: built.result.unit))


def _read_facts(path: Path) -> UnitResult:
    try:
        return from_json(read_bounded(path), UnitResult)
    except CodecError:
        raise ToolError(f"{path} is damaged", hint="`precast build` makes it anew") from None


def find_units(built: Sequence[BuiltUnit], *patterns: str) -> tuple[BuiltUnit, ...]:
    """The units whose text, kernel or variant one of `patterns` matches as a glob; `SpecError` for one that matches
    none."""
    for pattern in patterns:
        if not any(matches(unit, pattern) for unit in built):
            names = [unit.result.unit for unit in built] + [unit.kernel for unit in built]
            raise SpecError(f"no built unit matches `{pattern}`", hint=nearest_hint(pattern, names, "units"))
    return tuple(unit for unit in built if any(matches(unit, pattern) for pattern in patterns))


def matches(unit: BuiltUnit, pattern: str) -> bool:
    text = unit.result.unit
    return any(name == pattern or fnmatchcase(name, pattern) for name in (text, text.rpartition("@")[0], unit.kernel))


def describe_conditions(unit: Unit) -> dict[str, object]:
    """What a launch of the unit must meet: hints, requirements, and arguments that equal a value."""
    return {
        "hints": [str(hint) for hint in unit.variant.hints],
        "requires": list(unit.requires),
        "equal": {each.name: each.equal for each in unit.arguments if each.equal is not None},
    }


def read_stage(unit: BuiltUnit, stage: str) -> bytes:
    """A stage's text or image as it was built; `SpecError` names the stages that are there."""
    stages = [file.stage for file in unit.result.stages]
    path = unit.folder / f"{unit.kernel}.{stage}"
    if not path.is_file():
        raise SpecError(f"{unit.result.unit} has no stage `{stage}`", hint=nearest_hint(stage, stages, "stages"))
    return path.read_bytes()
