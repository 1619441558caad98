"""Where a build keeps things, relative to the project's folder. In: units. Out: paths with `/`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # a build with nothing to do knows no units
    from precast.spec.model import Unit

BUILD = "build"
INDEX_FILE = f"{BUILD}/index.sqlite"
STORE = f"{BUILD}/store"
UNITS = f"{BUILD}/units"
PLUGINS = f"{BUILD}/plugins"
KERNELS = f"{BUILD}/kernels"
SNAPSHOTS = f"{BUILD}/snapshots"
KEPT_PLAN = f"{SNAPSHOTS}/plan"
PACKS = f"{BUILD}/packs"
LAUNCHERS = f"{BUILD}/launchers"
OBJECTS = f"{BUILD}/objects"
LIBRARIES = f"{BUILD}/lib"
PARTS = f"{BUILD}/parts"
ENTRIES = f"{BUILD}/entries"
SELECTIONS = f"{BUILD}/selection"
REPRODUCERS = f"{BUILD}/repro"
SIGNATURES = f"{BUILD}/sconsign.dblite"
GENERATED = "generated"
CANDIDATES = "candidates"
SCONSTRUCT = "SConstruct"
SETTINGS = "pyproject.toml"
FACTS_FILE = "facts.json"  # in a unit's folder: a `UnitResult`


def unit_folder(unit: Unit) -> str:
    """Where a unit's outputs go."""
    return f"{UNITS}/{unit.target.folder}/{unit.slug}"


def stage_paths(unit: Unit) -> list[str]:
    """What each stage of the unit made, in order."""
    start = f"{unit_folder(unit)}/{unit.kernel}."
    return [start + stage for stage in unit.stages]


def image_path(unit: Unit) -> str:
    return f"{unit_folder(unit)}/{unit.kernel}.{unit.stages[-1]}"


def facts_path(unit: Unit) -> str:
    """What is known of the unit's image: a `UnitResult`."""
    return f"{unit_folder(unit)}/{FACTS_FILE}"
