"""What goes into a release and where: every file by its place, the index for the runtime, the manifest.

In: units with their facts, finished packs and libraries, launcher sources. Out: contents and manifest, ready to be
placed. The order is the design's: packs → interface digest → launcher sources → library → manifest → version.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from precast.artifact import UnitResult
from precast.errors import BugError
from precast.launch.formats import (
    LAUNCH_ABI,
    ImagePlace,
    IndexedUnit,
    ReleaseFile,
    ReleaseIndex,
    ReleaseInterface,
    interface_digest,
    write_index,
)
from precast.launch.formats.pack import read_pack
from precast.release.folder import Content
from precast.release.manifest import Manifest, ManifestFile, ManifestUnit
from precast.spec.model import Unit
from precast.store import digest_bytes

INDEX = "index.bin"


@dataclass(frozen=True)
class BuiltImages:
    """One finished file with images: its place in the release, where it lies now, and the units in it."""

    place: str
    file: Path
    units: tuple[tuple[Unit, UnitResult], ...]


@dataclass(frozen=True)
class ReleaseParts:
    """Everything a release is made of. `files` are finished files by their place (libraries, sources, extension)."""

    name: str
    project_version: str
    interface: ReleaseInterface
    images: tuple[BuiltImages, ...]
    files: Mapping[str, Path]
    tools: tuple[tuple[str, str], ...] = ()


def compose_release(parts: ReleaseParts) -> tuple[dict[str, Content], Manifest]:
    """Contents by place, and the manifest that names them all."""
    places = {str(unit): place for images in parts.images for unit, place in _image_places(images)}
    built = sorted((pair for images in parts.images for pair in images.units), key=lambda pair: str(pair[0]))
    contents: dict[str, Content] = {**parts.files, **{images.place: images.file for images in parts.images}}
    contents[INDEX] = write_index(
        ReleaseIndex(
            parts.interface,
            tuple(
                IndexedUnit(unit, result.facts, places[str(unit)])
                for images in parts.images
                for unit, result in images.units
            ),
            tuple(_release_file(images) for images in parts.images),
        )
    )
    files = tuple(_manifest_file(path, content) for path, content in sorted(contents.items()))
    manifest = Manifest(
        name=parts.name,
        project_version=parts.project_version,
        launch_abi=LAUNCH_ABI,
        interface=interface_digest(parts.interface),
        units=tuple(_manifest_unit(unit, result, places[str(unit)]) for unit, result in built),
        files=files,
        tools=tuple(sorted(parts.tools)),
        glibc=find_glibc_floor([each for each in contents.values() if isinstance(each, Path) and each.suffix == ".so"]),
        reproducible=all(result.facts.reproducible for _, result in built),
    )
    return contents, manifest


def find_glibc_floor(libraries: Sequence[Path]) -> str:
    """The lowest glibc that has every symbol version that `libraries` name, as `2.34`; "" when they name none."""
    versions = {
        (int(major), int(minor))
        for library in libraries
        for major, minor in re.findall(rb"GLIBC_(\d+)\.(\d+)", library.read_bytes())
    }
    return "{}.{}".format(*max(versions)) if versions else ""


def _image_places(images: BuiltImages) -> list[tuple[Unit, ImagePlace]]:
    data = images.file.read_bytes()
    if not images.place.endswith(".pack"):
        whole = ImagePlace(images.place, 0, len(data), digest_bytes(data))
        return [(unit, whole) for unit, _ in images.units]
    entries = {entry.unit: entry for entry in read_pack(data, images.place)}
    places = []
    for unit, result in images.units:
        entry = entries[str(unit)]
        if entry.digest != result.image_digest:
            raise BugError(f"{images.place} holds another image of {unit} than its facts tell of")
        places.append((unit, ImagePlace(images.place, entry.offset, entry.size, entry.digest)))
    return places


def _release_file(images: BuiltImages) -> ReleaseFile:
    data = images.file.read_bytes()
    return ReleaseFile(images.place, len(data), digest_bytes(data))


def _manifest_file(path: str, content: Content) -> ManifestFile:
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
