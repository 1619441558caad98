"""What a release lacks to serve recorded programs.

In: a release, spec files that recording wrote. Out: for each target, the variants that no unit of the release takes. A
unit takes a launch that has its types, constexprs and options, and all that the unit takes for granted of arguments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from precast.bounded import MOST_FILE_BYTES, read_bounded
from precast.errors import ReleaseError, SpecError, printable
from precast.launch.formats.index_reader import UnitDescription, read_descriptions
from precast.launch.package.calls import plain
from precast.launch.package.specs import Table, Unstated, Variant, format_toml, state_value
from precast.launch.package.variants import CPU_IGNORES
from precast.recording.kernels import find_assumed_kernels, read_variants
from precast.spec.spelling import Spelled
from precast.spec.toml import read_document
from precast.spec.types import parse_type

INDEX = "index.bin"


@dataclass(frozen=True)
class Missing:
    """Variants of a recorded kernel that the release has no unit for on some targets."""

    kernel: str
    source: str
    targets: tuple[str, ...]
    variants: tuple[Variant, ...]


@dataclass(frozen=True)
class Coverage:
    """`variants`: how many were recorded, `assumed` of them of kernels that were recorded without a device; `unread`:
    kernels of the files that say more than recording writes."""

    variants: int
    assumed: int
    missing: tuple[Missing, ...]
    unread: tuple[str, ...]


def compare_release(release: Path, files: Sequence[Path]) -> Coverage:
    """What a release lacks of all that the spec files have. `SpecError`, `ReleaseError` for what cannot be read."""
    units = _read_units(release)
    targets = sorted({unit.target for unit in units})
    count = assumed = 0
    missing: list[Missing] = []
    unread: list[str] = []
    for file in files:
        kernels = list(_read_kernels(file))
        marked = find_assumed_kernels(read_bounded(file).decode())
        for name, kernel in kernels:
            own = [unit for unit in units if is_same_source(unit.source, str(kernel.get("source")), file.parent)]
            variants = read_variants(kernel, {constexpr for unit in own for constexpr in unit.constants})
            if variants is None:
                unread.append(f"{name} in {file}")
                continue
            count += len(variants)
            assumed += len(variants) if name in marked else 0
            missing += _find_missing(name, kernel, variants, own, targets)
    return Coverage(count, assumed, tuple(missing), tuple(unread))


def _find_missing(
    name: str, kernel: Table, variants: Sequence[Variant], own: Sequence[_Unit], targets: Sequence[str]
) -> Iterator[Missing]:
    """By the variants that lack, so that targets which lack the same are told together."""
    lacking: dict[tuple[str, ...], list[str]] = {}
    by_key = {variant.key: variant for variant in variants}
    for target in targets:
        units = [unit for unit in own if unit.target == target]
        keys = tuple(key for key, variant in by_key.items() if not any(unit.takes(variant) for unit in units))
        lacking.setdefault(keys, []).append(target)
    for keys, of in lacking.items():
        if keys:
            yield Missing(name, str(kernel.get("source")), tuple(of), tuple(by_key[key] for key in keys))


def _read_kernels(file: Path) -> Iterator[tuple[str, Table]]:
    kernels = read_document(file, str(file)).data.get("kernel")
    for name, kernel in kernels.items() if isinstance(kernels, dict) else ():
        if isinstance(kernel, dict):
            yield name, kernel


@dataclass(frozen=True)
class _Unit:
    """A unit of the release, its values as a spec's table has them."""

    target: str
    source: str
    constants: Mapping[str, str]
    options: Mapping[str, Any]
    types: Mapping[str, str]
    held: frozenset[str]

    def takes(self, variant: Variant) -> bool:
        types = {name: str(parse_type(text)) for name, text in variant.types.items()}
        return (
            types == self.types
            and all(self.constants.get(name) == _word(value) for name, value in variant.constants.items())
            and all(self._has(name, value) for name, value in variant.options.items())
            and self.held <= variant.hints
        )

    def _has(self, name: str, value: Any) -> bool:
        """Options that a target does not know, or that decide nothing on it, are passed over."""
        free = self.target.startswith("cpu:") and name in CPU_IGNORES
        return free or name not in self.options or format_toml(self.options[name]) == format_toml(value)


def _read_units(release: Path) -> list[_Unit]:
    path = release / INDEX
    try:
        data = read_bounded(path, MOST_FILE_BYTES)
    except OSError as error:
        inner = release / "current"
        hint = f"{printable(inner)} is one" if (inner / INDEX).is_file() else "run `precast build`"
        raise ReleaseError(f"{printable(release)} is no release: it has no {INDEX}", hint=hint) from error
    try:
        return [_read_unit(each) for each in read_descriptions(data, printable(path))]
    except (SpecError, Unstated, TypeError, ValueError):  # values of the right kinds may say anything
        raise ReleaseError(f"{printable(path)} says what no spec can say") from None


def _read_unit(described: UnitDescription) -> _Unit:
    about = described.about
    constants = {name: _word(state_value(name, _constant_of(value))) for name, value in about["constants"].items()}
    options = {name: value for name, value in about["options"].items() if value is not None}
    target = described.unit.rpartition("@")[2]
    return _Unit(target, described.source, constants, options, about["types"], frozenset(about["holds"]))


def _constant_of(described: Any) -> Any:
    return Spelled(described["spelled"]) if isinstance(described, dict) else described


def _word(value: Any) -> str:
    """A constexpr's value as text; a data type by its short name."""
    return format_toml(plain(value) if isinstance(value, str) else value)


def is_same_source(one: str, other: str, folder: Path) -> bool:
    """Whether two texts name one function: `other` is relative to a folder, `one` to a project that is not known."""
    (place, _, function), (second, _, other_function) = one.partition(":"), other.partition(":")
    parts, longer = _parts(place), _parts(str((folder / second).resolve()) if second.endswith(".py") else second)
    length = min(len(parts), len(longer))
    return function == other_function and parts[-length:] == longer[-length:]


def _parts(place: str) -> list[str]:
    return [part for part in re.split(r"[/.]", place.removesuffix(".py")) if part]
