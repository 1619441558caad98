"""Verifying a release: every file is there, of the digest that the manifest says, and nothing else is.

In: a release directory. Out: the list of faults, empty for a good one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from precast.errors import ReleaseError
from precast.launch.formats.pack import read_pack
from precast.release.manifest import MANIFEST, SIGNATURE, Manifest, ManifestFile, read_manifest

# Python leaves compiled modules beside a package that it may write to, and runs them in place of the sources.
_BYTECODE = "__pycache__"
_RUN_BY_PYTHON = "does not belong to the release, and Python would run it"


def find_faults(release: Path, *, allow_bytecode: bool = True) -> list[str]:
    """One sentence for each thing that is wrong, the manifest's faults first.

    Bytecode of the Python package is no part of a release and nothing vouches for it: whoever asks for a signature
    must not allow it.
    """
    try:
        manifest = read_manifest(release)
    except ReleaseError as error:
        return [error.message]
    faults = [fault for file in manifest.files for fault in _faults_of_file(release, file)]
    faults += _faults_of_names(release, manifest, allow_bytecode)
    return faults or list(_faults_of_packs(release, manifest))


def verify_release(release: Path, *, allow_bytecode: bool = True) -> Manifest:
    """The manifest of a good release; `ReleaseError` with every fault of a bad one."""
    faults = find_faults(release, allow_bytecode=allow_bytecode)
    if faults:
        raise ReleaseError("\n".join(faults), hint=_hint(faults))
    return read_manifest(release)


def _hint(faults: list[str]) -> str:
    if all(fault.endswith(_RUN_BY_PYTHON) for fault in faults):
        return "remove it; with PYTHONDONTWRITEBYTECODE=1 Python leaves none"
    return "build it again, or fetch it again"


def _faults_of_file(release: Path, file: ManifestFile) -> Iterator[str]:
    path = release / file.path
    if path.is_symlink() or not path.is_file():
        yield f"{path} is absent"
        return
    data = path.read_bytes()
    if len(data) != file.size:
        yield f"{path} is damaged: {len(data)} bytes, the manifest says {file.size}"
    elif hashlib.sha256(data).hexdigest() != file.digest:
        yield f"{path} is damaged: its digest is not the manifest's"


def _faults_of_names(release: Path, manifest: Manifest, allow_bytecode: bool) -> Iterator[str]:
    """The version in the folder's name, when it has one of ours, and files that the manifest does not name."""
    tail = release.resolve().name.rpartition("+")[2]
    named_by_digest = len(tail) == 12 and set(tail) <= set("0123456789abcdef")
    if named_by_digest and not manifest.digest.startswith(tail):
        yield f"{release / MANIFEST} is damaged: its digest does not match the release's version"
    known = {file.path for file in manifest.files} | {MANIFEST, SIGNATURE}
    for path in sorted(release.rglob("*")):
        is_bytecode = _BYTECODE in path.relative_to(release).parts
        if (is_bytecode and allow_bytecode) or (path.is_dir() and not path.is_symlink()):
            continue
        if is_bytecode:
            yield f"{path} {_RUN_BY_PYTHON}"
        elif path.relative_to(release).as_posix() not in known:
            yield f"{path} does not belong to the release"


def _faults_of_packs(release: Path, manifest: Manifest) -> Iterator[str]:
    """Packs must hold exactly the units that the manifest places in them, at these places."""
    packs = sorted({unit.file for unit in manifest.units if unit.file.endswith(".pack")})
    for name in packs:
        try:
            entries = read_pack((release / name).read_bytes(), str(release / name))
        except ReleaseError as error:
            yield error.message
            continue
        held = {(entry.unit, entry.offset, entry.size, entry.digest) for entry in entries}
        said = {(unit.unit, unit.offset, unit.size, unit.digest) for unit in manifest.units if unit.file == name}
        if held != said:
            yield f"{release / name} holds other units than the manifest says"
