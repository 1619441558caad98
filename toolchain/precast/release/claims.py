"""What a manifest claims, held against itself: names are names, files stay inside, units lie where units of theirs may.

In: a manifest that was read. Out: a sentence for each claim that cannot be. Nothing on disk is looked at.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from precast.bounded import MOST_FILE_BYTES
from precast.errors import printable
from precast.launch.formats.values import kernel_of
from precast.release.manifest import MANIFEST, SIGNATURE, Manifest, ManifestUnit

INDEX = "index.bin"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,199}")
_VERSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+_-]{0,199}")
_GLIBC = re.compile(r"(\d{1,4}\.\d{1,4})?", re.ASCII)
_DIGEST = re.compile(r"[0-9a-f]{64}")
_TARGET = re.compile(r"(cuda|hip|cpu):[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_PART = re.compile(r"[^/\\\x00-\x1f\x7f-\x9f\ud800-\udfff]{1,255}")


def find_false_claims(manifest: Manifest) -> Iterator[str]:
    """What is wrong in the manifest itself, without the words for where it lies."""
    if not _NAME.fullmatch(manifest.name):
        yield f"`{printable(manifest.name)}` is no name"
    if not _VERSION.fullmatch(manifest.project_version):
        yield f"`{printable(manifest.project_version)}` is no version"
    if not _GLIBC.fullmatch(manifest.glibc):
        yield f"`{printable(manifest.glibc)}` is no version of glibc"
    if not _DIGEST.fullmatch(manifest.interface):
        yield f"`{printable(manifest.interface)}` is no digest of an interface"
    yield from _false_files(manifest)
    yield from _false_units(manifest)


def _false_files(manifest: Manifest) -> Iterator[str]:
    paths = [file.path for file in manifest.files]
    yield from (f"it lists `{printable(path)}` twice" for path in _doubles(paths))
    folders = {path[:place] for path in paths for place, sign in enumerate(path) if sign == "/"}
    for file in manifest.files:
        path = printable(file.path)
        if not stays_inside(file.path) or file.path in (MANIFEST, SIGNATURE):
            yield f"`{path}` is no path of a file in a release"
        elif file.path in folders:
            yield f"`{path}` is a file and a folder"
        if not 0 <= file.size <= MOST_FILE_BYTES:
            yield f"`{path}` cannot have {printable(file.size)} bytes"
        if not _DIGEST.fullmatch(file.digest):
            yield f"`{path}` has no digest"
    if INDEX not in paths:
        yield f"it lists no {INDEX}"


def _doubles(texts: Sequence[str]) -> list[str]:
    return sorted(text for text, count in Counter(texts).items() if count > 1)


def stays_inside(path: str) -> bool:
    """Whether a path is relative, of plain parts, and nothing that Python makes by itself."""
    parts = path.split("/")
    return all(_PART.fullmatch(part) and part not in (".", "..", "__pycache__") for part in parts)


def _false_units(manifest: Manifest) -> Iterator[str]:
    yield from (f"it lists unit `{printable(text)}` twice" for text in _doubles([unit.unit for unit in manifest.units]))
    sizes = {file.path: file.size for file in manifest.files}
    for unit in manifest.units:
        fault = _false_unit(unit, sizes)
        if fault:
            yield f"unit `{printable(unit.unit)}` {fault}"


def _false_unit(unit: ManifestUnit, sizes: Mapping[str, int]) -> str:
    if kernel_of(unit.unit) != unit.kernel:
        return f"is not of kernel `{printable(unit.kernel)}`"
    if unit.unit.rpartition("@")[2] != unit.target or not _TARGET.fullmatch(unit.target):
        return f"is not of target `{printable(unit.target)}`"
    size = sizes.get(unit.file)
    if size is None:
        return f"lies in `{printable(unit.file)}`, which the release does not have"
    if not _may_hold(unit) or not 0 <= unit.offset <= size or not 0 <= unit.size <= size - unit.offset:
        return f"cannot lie in `{printable(unit.file)}`, {unit.size} bytes from {unit.offset}"
    return "" if _DIGEST.fullmatch(unit.digest) else "has no digest"


def _may_hold(unit: ManifestUnit) -> bool:
    """A GPU's unit lies in the pack of its kernel and target, a CPU's in the library of its feature level."""
    backend, _, arch = unit.target.partition(":")
    if backend == "cpu":
        return unit.file.startswith("lib/lib") and unit.file.endswith(f".cpu-{arch}.so") and not unit.offset
    return unit.file == f"targets/{backend}-{arch}/{unit.kernel}.pack"
