"""What goes into a release and where: every file by its place, the index for the runtime, the manifest.

In: units with their facts, finished packs and libraries, launcher sources. Out: contents and manifest, ready to be
placed. The order is the design's: packs → interface digest → launcher sources → library → manifest → version.
What a release says of one file with images rests on that file and its units alone: it is an `ImagesPart`, which a
caller may keep, so that a release of thousands of units costs what has changed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from precast.artifact import UnitResult
from precast.errors import BugError
from precast.launch.formats import (
    LAUNCH_ABI,
    ImagePlace,
    KernelInterface,
    ReleaseFile,
    ReleaseInterface,
    interface_digest,
)
from precast.launch.formats.index import IndexEntry, describe_unit, join_index
from precast.launch.formats.pack import read_pack
from precast.release.folder import Content
from precast.release.manifest import (
    Manifest,
    ManifestFile,
    ManifestUnit,
    UnitTexts,
    WrittenManifest,
    join_manifest,
    parse_manifest,
    write_unit,
)
from precast.spec.model import Unit
from precast.store import digest_bytes
from precast.tuning.rules import SelectionRule

INDEX = "index.bin"


@dataclass(frozen=True)
class BuiltImages:
    """One finished file with images: its place in the release, where it lies now, and the units in it."""

    place: str
    file: Path
    units: tuple[tuple[Unit, UnitResult], ...]


class UnitPart(NamedTuple):
    """What a release says of one unit: in the index, where its image is, and in the manifest."""

    entry: IndexEntry
    image: ImagePlace
    texts: UnitTexts
    reproducible: bool


class ImagesPart(NamedTuple):
    """What a release says of one file with images."""

    file: ReleaseFile
    units: tuple[UnitPart, ...]


@dataclass(frozen=True)
class ReleaseParts:
    """Everything a release is made of. `files` are finished files by their place (libraries, sources, extension)."""

    name: str
    project_version: str
    interface: ReleaseInterface
    images: tuple[BuiltImages, ...]
    files: Mapping[str, Path]
    tools: tuple[tuple[str, str], ...] = ()
    selection: tuple[SelectionRule, ...] = ()


def compose_release(parts: ReleaseParts) -> tuple[dict[str, Content], Manifest]:
    """Contents by place, and the manifest that names them all."""
    contents, written = join_release(
        parts, [(images.file, describe_images(images, parts.interface)) for images in parts.images]
    )
    return contents, parse_manifest(written.data, parts.name)


def describe_images(images: BuiltImages, interface: ReleaseInterface) -> ImagesPart:
    """What a release of `interface` says of a file; `BugError` when its units' facts are of other images."""
    data = images.file.read_bytes()
    file = ReleaseFile(images.place, len(data), digest_bytes(data))
    kernels = {kernel.name: kernel for kernel in interface.kernels}
    places = _find_places(images, file, data)
    return ImagesPart(file, tuple(_describe(unit, result, places[str(unit)], kernels) for unit, result in images.units))


def _describe(unit: Unit, result: UnitResult, place: ImagePlace, kernels: Mapping[str, KernelInterface]) -> UnitPart:
    entry = describe_unit(kernels[unit.kernel], unit, result.facts)
    return UnitPart(entry, place, write_unit(_manifest_unit(unit, result, place)), result.facts.reproducible)


def join_release(
    parts: ReleaseParts, images: Sequence[tuple[Path, ImagesPart]]
) -> tuple[dict[str, Content], WrittenManifest]:
    """As `compose_release`, of files with what is said of them; `parts` are without images."""
    contents: dict[str, Content] = {**parts.files, **{part.file.path: file for file, part in images}}
    units = [unit for _, part in images for unit in part.units]
    files = {part.file.path: part.file for _, part in images}
    interface = interface_digest(parts.interface)
    entries = ((unit.entry, unit.image) for unit in units)
    contents[INDEX] = join_index(parts.interface, interface, entries, files.values(), parts.selection)
    manifest = Manifest(
        name=parts.name,
        project_version=parts.project_version,
        launch_abi=LAUNCH_ABI,
        interface=interface,
        units=(),
        files=tuple(_manifest_file(path, contents[path], files.get(path)) for path in sorted(contents)),
        tools=tuple(sorted(parts.tools)),
        selection=parts.selection,
        glibc=find_glibc_floor([each for each in contents.values() if isinstance(each, Path) and each.suffix == ".so"]),
        reproducible=all(unit.reproducible for unit in units),
    )
    return contents, join_manifest(manifest, [(unit.entry.unit, unit.texts) for unit in units])


def find_glibc_floor(libraries: Sequence[Path]) -> str:
    """The lowest glibc that has every symbol version that `libraries` name, as `2.34`; "" when they name none."""
    versions = {
        (int(major), int(minor))
        for library in libraries
        for major, minor in re.findall(rb"GLIBC_(\d+)\.(\d+)", library.read_bytes())
    }
    return "{}.{}".format(*max(versions)) if versions else ""


def _find_places(images: BuiltImages, file: ReleaseFile, data: bytes) -> dict[str, ImagePlace]:
    """Where each unit's image is; that of a CPU unit is the whole library."""
    if not images.place.endswith(".pack"):
        whole = ImagePlace(file.path, 0, file.size, file.digest)
        return {str(unit): whole for unit, _ in images.units}
    entries = {entry.unit: entry for entry in read_pack(data, images.place)}
    places = {}
    for unit, result in images.units:
        entry = entries[str(unit)]
        if entry.digest != result.image_digest:
            raise BugError(f"{images.place} holds another image of {unit} than its facts tell of")
        places[str(unit)] = ImagePlace(images.place, entry.offset, entry.size, entry.digest)
    return places


def _manifest_file(path: str, content: Content, known: ReleaseFile | None) -> ManifestFile:
    if known is not None:
        return ManifestFile(path, known.size, known.digest)
    data = content.read_bytes() if isinstance(content, Path) else content
    return ManifestFile(path, len(data), digest_bytes(data))


def _manifest_unit(unit: Unit, result: UnitResult, place: ImagePlace) -> ManifestUnit:
    return ManifestUnit(
        unit=str(unit),
        kernel=unit.kernel,
        target=str(unit.target),
        source=unit.source.text,
        file=place.file,
        offset=place.offset,
        size=place.size,
        digest=result.image_digest,
        facts=result.facts,
        passes=result.passes,
        findings=result.findings,
    )
