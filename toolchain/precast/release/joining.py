"""Releases of one project, built on several machines, as the parts of one: what each holds, and why some do not join.

In: good release directories. Out: `ReleaseParts` without what is made anew for the whole, launchers and library; or a
`ReleaseError` that says in which two things the parts differ. What a kernel has on a target is taken from one part;
where several hold it, they must hold the same.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path

from precast.artifact import UnitResult
from precast.bounded import MOST_FILE_BYTES
from precast.errors import ReleaseError, printable
from precast.identity import Tools, merge_tools
from precast.identity.tools import OWN_TOOLS, STANDIN, tool_names
from precast.launch.formats import ImagePlace, IndexedUnit, ReleaseFile, ReleaseIndex, ReleaseInterface, write_index
from precast.launch.formats.index_units import read_units
from precast.launch.formats.interface import describe_interface
from precast.release.contents import INDEX, BuiltImages
from precast.release.files import read_file
from precast.release.manifest import Manifest, ManifestUnit
from precast.release.verify import verify_release
from precast.spec.model import Argument, Unit
from precast.target import Backend, Target
from precast.tuning.rules import MOST_ROWS, SelectionRule


@dataclass(frozen=True)
class Part:
    """One release that was read: its units as launchers know them, each with what the manifest says of it."""

    folder: Path
    manifest: Manifest
    units: tuple[tuple[Unit, ManifestUnit], ...]  # of a kernel and target in the spec's order

    @property
    def name(self) -> str:
        """What the user called it."""
        return printable(self.folder)

    @cached_property
    def interface(self) -> ReleaseInterface:
        return describe_interface(self.manifest.name, [unit for unit, _ in self.units])

    @cached_property
    def files(self) -> Mapping[str, str]:
        """Digests by path."""
        return {file.path: file.digest for file in self.manifest.files}

    def groups(self) -> Mapping[tuple[str, Target], tuple[tuple[Unit, ManifestUnit], ...]]:
        """The units of each kernel on each target."""
        found: dict[tuple[str, Target], list[tuple[Unit, ManifestUnit]]] = {}
        for unit, about in self.units:
            found.setdefault((unit.kernel, unit.target), []).append((unit, about))
        return {group: tuple(units) for group, units in found.items()}


@dataclass(frozen=True)
class Joined:
    """What the parts are together."""

    name: str
    version: str  # of the project
    interface: ReleaseInterface
    images: tuple[BuiltImages, ...]
    tools: Tools
    selection: tuple[SelectionRule, ...] = ()


def read_part(folder: Path) -> Part:
    """A good release; `ReleaseError` when it is none, or holds more than can be written again."""
    manifest = verify_release(folder)
    data = read_file(folder / INDEX, MOST_FILE_BYTES)
    about = {unit.unit: unit for unit in manifest.units}
    try:
        part = Part(folder, manifest, tuple((unit, about[str(unit)]) for unit in read_units(data)))
        is_ours = _write_index(part) == data
    except Exception:  # values of the right kinds may say anything
        is_ours = False
    if not is_ours:
        raise ReleaseError(f"{printable(folder)} cannot be merged: this Precast does not write such an {INDEX}")
    return part


def _write_index(part: Part) -> bytes:
    images = {unit.file for unit in part.manifest.units}
    files = tuple(ReleaseFile(each.path, each.size, each.digest) for each in part.manifest.files if each.path in images)
    units = tuple(IndexedUnit(unit, about.facts, _place(part, about)) for unit, about in part.units)
    return write_index(ReleaseIndex(part.interface, units, files, part.manifest.selection))


def _place(part: Part, about: ManifestUnit) -> ImagePlace:
    """Where an index says that the image lies: a CPU's is the whole library, by the library's digest."""
    digest = about.digest if about.file.endswith(".pack") else part.files[about.file]
    return ImagePlace(about.file, about.offset, about.size, digest)


def join_parts(parts: Sequence[Part]) -> Joined:
    """The parts as one; `ReleaseError` with every reason why they are none."""
    faults = list(dict.fromkeys(_find_faults(parts)))
    if faults:
        hint = "build all parts from one state of the sources, with the same versions of all tools"
        raise ReleaseError("\n".join(faults), hint=hint)
    owners: dict[tuple[str, Target], Part] = {}
    for part in parts:
        for group in part.groups():
            owners.setdefault(group, part)
    first = parts[0].manifest
    selection = tuple(_join_rules(parts, owners))
    _check_rows(selection)
    units = _in_one_order(parts, [unit for group, part in owners.items() for unit, _ in part.groups()[group]])
    return Joined(
        name=first.name,
        version=first.project_version,
        interface=describe_interface(first.name, units),
        images=tuple(_images(owners)),
        tools=_join_tools(parts),
        selection=selection,
    )


def _check_rows(rules: Sequence[SelectionRule]) -> None:
    """Each part may have few enough rows of a kernel, and the whole too many."""
    for kernel, count in Counter(rule.kernel for rule in rules).items():
        if count > MOST_ROWS:
            message = f"kernel `{kernel}` would have {count:,} rows of selection, more than {MOST_ROWS:,}"
            raise ReleaseError(message, hint="merge fewer targets, or build the parts with fewer rows")


def _join_rules(parts: Sequence[Part], owners: Mapping[tuple[str, Target], Part]) -> Iterator[SelectionRule]:
    """The rules of each kernel and target of whom its units are taken from."""
    for part in parts:
        for rule in part.manifest.selection:
            owner = owners.get((rule.kernel, Target.parse(rule.target))) if rule.target else part
            if owner is part:
                yield rule


def _in_one_order(parts: Sequence[Part], units: Sequence[Unit]) -> list[Unit]:
    """The units with their constexprs in one order for each kernel: those that the whole may tell, as the source has
    them, then the rest.

    A part tells those that have one value in all of its units, in the source's order; the whole tells no others.
    """
    told: dict[str, list[str]] = {}
    for kernel in (kernel for part in parts for kernel in part.interface.kernels):
        names = [each.name for each in kernel.constants]
        told[kernel.name] = [name for name in told.get(kernel.name, names) if name in names]
    return [replace(unit, arguments=_ordered(unit.arguments, told[unit.kernel])) for unit in units]


def _ordered(arguments: Sequence[Argument], told: Sequence[str]) -> tuple[Argument, ...]:
    places = {name: place for place, name in enumerate(told)}
    constexprs = [each for each in arguments if each.type == "constexpr"]
    last = len(places)
    return (
        *(each for each in arguments if each.type != "constexpr"),
        *sorted(constexprs, key=lambda each: (places.get(each.name, last), each.name)),
    )


def _images(owners: Mapping[tuple[str, Target], Part]) -> Iterator[BuiltImages]:
    """The files with images, each with its units."""
    files: dict[str, list[tuple[Part, Unit, ManifestUnit]]] = {}
    for group, part in owners.items():
        for unit, about in part.groups()[group]:
            files.setdefault(about.file, []).append((part, unit, about))
    for path, members in files.items():
        units = tuple((unit, _result(about)) for _, unit, about in members)
        yield BuiltImages(path, members[0][0].folder / path, units)


def _result(about: ManifestUnit) -> UnitResult:
    return UnitResult(about.unit, about.digest, about.facts, (), about.passes, about.findings)


def _find_faults(parts: Sequence[Part]) -> Iterator[str]:
    for first, second in combinations(parts, 2):
        yield from _differing_heads(first, second)
        yield from _differing_tools(first, second)
        yield from _differing_sources(first, second)
        yield from _differing_units(first, second)


def _differing_heads(first: Part, second: Part) -> Iterator[str]:
    for one, other in zip(_head(first), _head(second), strict=True):
        if one != other:
            yield f"{first.name} {one}, {second.name} {other}"


def _head(part: Part) -> tuple[str, ...]:
    said = part.manifest
    name, version = printable(said.name), printable(said.project_version)
    return f"is a release of `{name}`", f"has version {version}", f"has launch ABI {said.launch_abi}"


def _differing_tools(first: Part, second: Part) -> Iterator[str]:
    """One machine has one version of each tool; the rest of an identity may be another for another target."""
    ones, others = _versions(first), _versions(second)
    for name in sorted(ones.keys() & others.keys()):
        if ones[name] != others[name]:
            one, other = (", ".join(sorted(each[name])) for each in (ones, others))
            yield f"tool `{name}` is {one} in {first.name} and {other} in {second.name}"


def _versions(part: Part) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for text, identity in part.manifest.tools:
        name, _ = _split_name(text)
        version, _, digest = identity.partition(" ")
        if digest or name in OWN_TOOLS:
            found.setdefault(name, set()).add(version)
    return found


def _differing_sources(first: Part, second: Part) -> Iterator[str]:
    ones, others = _sources(first), _sources(second)
    for kernel in sorted(ones.keys() & others.keys()):
        if ones[kernel] != others[kernel]:
            yield f"kernel `{printable(kernel)}` has other sources in {first.name} than in {second.name}"


def _sources(part: Part) -> dict[str, set[tuple[str, str, tuple[str, ...]]]]:
    """By kernel, all that tells what it was made from beside its target's own options."""
    found: dict[str, set[tuple[str, str, tuple[str, ...]]]] = {}
    for unit, about in part.units:
        found.setdefault(unit.kernel, set()).add((about.source, about.facts.source_digest, unit.grid))
    return found


def _differing_units(first: Part, second: Part) -> Iterator[str]:
    """What both hold must be the same, and the whole of what it is a part of."""
    ones, others = first.groups(), second.groups()
    for kernel, target in sorted(ones.keys() & others.keys(), key=str):
        one, other = ones[kernel, target], others[kernel, target]
        if [unit for unit, _ in one] != [unit for unit, _ in other]:
            yield f"kernel `{printable(kernel)}` has other units for {target} in {first.name} than in {second.name}"
        for (unit, about), (_, again) in zip(one, other, strict=False):
            if str(unit) == again.unit and _same(about) != _same(again):
                yield f"unit `{printable(about.unit)}` is another in {first.name} than in {second.name}"
    for target in sorted(_on_cpu(ones) & _on_cpu(others), key=str):
        if {group for group in ones if group[1] == target} != {group for group in others if group[1] == target}:
            yield (
                f"{first.name} and {second.name} hold different kernels for {target}, "
                "whose units are linked into one library: build that target on one machine"
            )


def _same(about: ManifestUnit) -> object:
    return (about.digest, about.facts, about.passes, about.findings)


def _on_cpu(groups: Iterable[tuple[str, Target]]) -> set[Target]:
    return {target for _, target in groups if target.kind is Backend.CPU}


def _join_tools(parts: Sequence[Part]) -> Tools:
    """The tools of all, with the names that a plan of all their targets gives them."""
    every: dict[str, dict[tuple[str, str], None]] = {}
    for part in parts:
        for target, tools in _tools_by_target(part).items():
            every.setdefault(target, {}).update(dict.fromkeys(tools))
    return merge_tools({target: tuple(sorted(tools)) for target, tools in sorted(every.items())})


def _tools_by_target(part: Part) -> dict[str, list[tuple[str, str]]]:
    standin = any(STANDIN in text for text, _ in part.manifest.tools)
    targets = sorted({unit.target for unit, _ in part.units}, key=str)
    used = {str(target): tool_names(target, standin=standin) for target in targets}
    found: dict[str, list[tuple[str, str]]] = {target: [] for target in used}
    for text, identity in part.manifest.tools:
        name, named = _split_name(text)
        owners = named or [target for target, names in used.items() if name in names]
        for target in owners or [""]:  # of a target that has no unit
            found.setdefault(target, []).append((name, identity))
    return found


def _split_name(text: str) -> tuple[str, list[str]]:
    """A tool's name in a manifest, and the targets that it names, if it does."""
    found = re.fullmatch(r"(.*?) \((.*)\)", text)
    return (found[1], found[2].split(", ")) if found else (text, [])
