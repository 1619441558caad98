"""Is a release what its manifest says: every file is there, of the digest that the manifest says, and nothing else is;
index and packs say the same as the manifest; and nothing in the manifest is what cannot be.

In: a release directory or an installed package, whatever lies in it. Out: the list of faults, empty for a good one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from precast.bounded import MOST_FILE_BYTES
from precast.errors import ReleaseError, printable
from precast.launch.formats.index_reader import IndexContents, launch_facts, read_index
from precast.launch.formats.pack import read_pack
from precast.launch.formats.values import ImagePlace
from precast.release.claims import INDEX, find_false_claims
from precast.release.files import digest_file, read_file
from precast.release.layout import Layout, find_layout
from precast.release.manifest import Manifest, ManifestFile, ManifestUnit, read_manifest

# Python leaves compiled modules beside a package that it may write to, and runs them in place of the sources.
_RUN_BY_PYTHON = "does not belong to the release, and Python would run it"
MOST_TOLD = 100  # faults of one kind; the rest is counted


def find_faults(release: Path, *, allow_bytecode: bool = True) -> list[str]:
    """One sentence for each thing that is wrong, the manifest's faults first.

    Bytecode of the Python package is no part of a release and nothing vouches for it: whoever asks for a signature
    must not allow it.
    """
    return _examine(release, allow_bytecode)[1]


def verify_release(release: Path, *, allow_bytecode: bool = True) -> Manifest:
    """The manifest of a good release; `ReleaseError` with every fault of a bad one."""
    manifest, faults = _examine(release, allow_bytecode)
    if manifest is None or faults:
        raise ReleaseError("\n".join(faults), hint=_hint(faults))
    return manifest


def _examine(release: Path, allow_bytecode: bool) -> tuple[Manifest | None, list[str]]:
    """The manifest, read once, and the faults that were found by it."""
    layout = find_layout(release)
    try:
        manifest = read_manifest(layout.manifest.parent)
    except ReleaseError as error:
        return None, [error.message]
    return manifest, _faults_of(layout, manifest, allow_bytecode)


def _hint(faults: list[str]) -> str:
    if all(fault.endswith(_RUN_BY_PYTHON) for fault in faults):
        return "remove it; with PYTHONDONTWRITEBYTECODE=1 Python leaves none, with --no-compile pip leaves none"
    return "build it again, or fetch it again"


def _faults_of(layout: Layout, manifest: Manifest, allow_bytecode: bool) -> list[str]:
    name = printable(layout.manifest)
    claims = _few(f"{name} is no manifest of a release: {claim}" for claim in find_false_claims(manifest))
    if claims:
        return claims  # its paths lead nowhere
    faults = _few(fault for file in manifest.files for fault in _faults_of_file(layout, file))
    faults += _few(_faults_of_names(layout, manifest, allow_bytecode))
    return faults or _few((*_faults_of_index(layout, manifest), *_faults_of_packs(layout, manifest)))


def _few(faults: Iterable[str]) -> list[str]:
    told: list[str] = []
    more = 0
    for fault in faults:
        if len(told) < MOST_TOLD:
            told.append(fault)
        else:
            more += 1
    return [*told, f"… and {more} more"] if more else told


def _faults_of_file(layout: Layout, file: ManifestFile) -> Iterator[str]:
    path = layout.place(file.path)
    if path is None:
        return
    try:
        if digest_file(path, file.size) != file.digest:
            yield f"{printable(path)} is damaged: its digest is not the manifest's"
    except ReleaseError as error:
        yield error.message


def _faults_of_names(layout: Layout, manifest: Manifest, allow_bytecode: bool) -> Iterator[str]:
    """The version in the folder's name, when it has one of ours, and files that the manifest does not name."""
    tail = layout.root.resolve().name.rpartition("+")[2]
    named_by_digest = len(tail) == 12 and set(tail) <= set("0123456789abcdef")
    if named_by_digest and not manifest.digest.startswith(tail):
        yield f"{printable(layout.manifest)} is damaged: its digest does not match the release's version"
    known = {layout.place(file.path) for file in manifest.files} | {layout.manifest, layout.signature}
    for path in sorted(_files_below(layout.root)):
        if path in known or (allow_bytecode and layout.may_be_bytecode(path)):
            continue
        told = _RUN_BY_PYTHON if layout.may_be_bytecode(path) else "does not belong to the release"
        yield f"{printable(path)} {told}"


def _files_below(folder: Path) -> Iterator[Path]:
    """Everything that is no folder that can be looked into: files of any kind, links to folders included."""
    closed: list[Path] = []
    for place, folders, files in os.walk(folder, onerror=lambda error: closed.append(Path(error.filename))):
        yield from (Path(place, name) for name in files)
        yield from (Path(place, name) for name in folders if Path(place, name).is_symlink())
    yield from closed


def _read(layout: Layout, path: str) -> bytes:
    place = layout.place(path)
    return b"" if place is None else read_file(place, MOST_FILE_BYTES)


def _faults_of_index(layout: Layout, manifest: Manifest) -> Iterator[str]:
    """The index, which the runtime believes, must say what the manifest says, which is signed."""
    name = printable(layout.place(INDEX))
    try:
        index = read_index(_read(layout, INDEX), name)
    except ReleaseError as error:
        yield error.message
        return
    of_manifest = (manifest.name, manifest.launch_abi, manifest.interface)
    if (index.name, index.launch_abi, index.interface) != of_manifest:
        yield f"{name} is of another release than the manifest: name, launch ABI or interface differ"
    images = {unit.file for unit in manifest.units}
    listed = {(file.path, file.size, file.digest) for file in manifest.files if file.path in images}
    if {(file.path, file.size, file.digest) for file in index.files} != listed:
        yield f"{name} names other files than the manifest says"
    yield from _faults_of_units(name, index, manifest)


def _faults_of_units(name: str, index: IndexContents, manifest: Manifest) -> Iterator[str]:
    files = {file.path: file.digest for file in manifest.files}
    held = {text: rest for text, *rest in index.units}
    if len(held) != len(index.units) or set(held) != {unit.unit for unit in manifest.units}:
        yield f"{name} holds other units than the manifest says"
        return
    for unit in manifest.units:
        if held[unit.unit] != _as_in_index(unit, files):
            yield f"{name} says other things of {printable(unit.unit)} than the manifest"


def _as_in_index(unit: ManifestUnit, files: dict[str, str]) -> list[object]:
    """What an index holds of a unit: a CPU's image is the whole library, by the library's digest."""
    backend = unit.target.partition(":")[0]
    digest = files[unit.file] if backend == "cpu" else unit.digest
    place = ImagePlace(unit.file, unit.offset, unit.size, digest)
    return [unit.kernel, backend, place, launch_facts(unit.facts)]


def _faults_of_packs(layout: Layout, manifest: Manifest) -> Iterator[str]:
    """Packs must hold exactly the units that the manifest places in them, at these places."""
    packs = sorted({unit.file for unit in manifest.units if unit.file.endswith(".pack")})
    for path in packs:
        name = printable(layout.place(path))
        try:
            entries = read_pack(_read(layout, path), name)
        except ReleaseError as error:
            yield error.message
            continue
        held = {(entry.unit, entry.offset, entry.size, entry.digest) for entry in entries}
        said = {(unit.unit, unit.offset, unit.size, unit.digest) for unit in manifest.units if unit.file == path}
        if held != said:
            yield f"{name} holds other units than the manifest says"
