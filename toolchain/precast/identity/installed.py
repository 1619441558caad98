"""The identity of an installed package by the bytes that would be imported.

In: a package's name. Out: its version and a digest over its files, found where the import system finds it, be that a
wheel, an edited one or an editable install; what an installer once recorded is not believed. The package itself is
not imported.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib.machinery import all_suffixes
from pathlib import Path

from precast.digest import FileDigests, digest_pairs
from precast.reads import Read, ReadKind, digest_names, digest_place

NOT_INSTALLED = "not installed"
SUFFIXES = frozenset({".py", ".so", ".bc", ".ll", ""})
_WITHOUT_CODE = {"__pycache__", "include"}


@dataclass(frozen=True)
class InstalledPart:
    """A part of top-level packages: `is_part` picks files by their names, which begin with the package's."""

    name: str
    distribution: str  # whose version is told
    packages: tuple[str, ...]
    is_part: Callable[[str], bool]


def find_folder(package: str) -> Path | None:
    """The folder that importing a top-level package would read; None when there is none."""
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return None
    places = list(spec.submodule_search_locations or []) if spec else []
    return Path(places[0]) if places else None


def reads_of_search(package: str) -> Iterator[Read]:
    """What finding a top-level package asks of the file system."""
    for folder in sys.path:
        for suffix in ("", *all_suffixes()):
            place = os.path.join(folder, package + suffix)
            yield Read(ReadKind.PLACE, place, digest_place(place))


def list_files(package: str, listed: dict[str, str] | None = None) -> tuple[tuple[str, str], ...]:
    """The files of a package that may hold code: their names in it, sorted, and their paths. Folders that were listed
    for that go to `listed`, with the digests of what they hold."""
    folder = find_folder(package)
    found: list[tuple[str, str]] = []
    for parent, folders, files in os.walk(folder) if folder else ():
        if listed is not None:
            listed[parent] = digest_names((*folders, *files))
        folders[:] = [each for each in folders if each not in _WITHOUT_CODE]
        inside = os.path.relpath(parent, folder)
        prefix = f"{package}/" if inside == "." else f"{package}/{inside}/"
        kept = (each for each in files if os.path.splitext(each)[1] in SUFFIXES)
        found += [(prefix + each, os.path.join(parent, each)) for each in kept]
    return tuple(sorted(found))


def identify_part(part: InstalledPart, files: Iterable[tuple[str, str]], digests: FileDigests) -> str:
    """Version and 12 hex digits over the names and bytes of those of `files` that are the part's."""
    pairs = [(name, digests.digest(path)) for name, path in files if part.is_part(name)]
    if not any(name.startswith(f"{part.packages[0]}/") for name, _ in pairs):
        return NOT_INSTALLED
    return f"{_version(part.distribution)} {digest_pairs(pairs)[:12]}"


def _version(distribution: str) -> str:
    import importlib.metadata  # a tenth of what a worker imports, which asks for no version

    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"
