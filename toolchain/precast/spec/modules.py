"""Where modules are, without importing any: dotted names to files and back.

In: search folders. Out: files, as an import would find them: regular packages, modules, namespace packages; and what
was asked of the file system on the way.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.machinery import SOURCE_SUFFIXES
from pathlib import Path

from precast.reads import ABSENT, Read, ReadKind, digest_place

PACKAGE_FILE = "__init__.py"


@dataclass(frozen=True)
class ModuleFile:
    """A module's dotted name, its source file, and the folder on the path where the search for it began."""

    name: str
    file: Path
    root: Path

    @property
    def package(self) -> str:
        """The package that the module's relative imports start from."""
        return self.name if self.file.stem == "__init__" else self.name.rpartition(".")[0]


def find_module(name: str, folders: Sequence[Path]) -> ModuleFile | None:
    """The source file of a dotted name; None when there is none (missing, built in, or a compiled extension).

    A namespace package has no file of its own and is passed through.
    """
    return ModuleFinder().find(name, folders)


class ModuleFinder:
    """Finds many modules: each folder that may hold one is listed once."""

    def __init__(self) -> None:
        self._listed: dict[str, Mapping[str, bool]] = {}
        self._asked: dict[str, set[str]] = {}

    @property
    def reads(self) -> Iterator[Read]:
        """What it was asked for, found or not."""
        words = {True: "file", False: "folder", None: ABSENT}
        for folder, asked in self._asked.items():
            names = self._list(folder)
            yield from (Read(ReadKind.PLACE, os.path.join(folder, each), words[names.get(each)]) for each in asked)

    def find(self, name: str, folders: Sequence[Path]) -> ModuleFile | None:
        """As `find_module`, by the folders as they were when they were listed."""
        parts = name.split(".")
        for folder in folders:
            file = self._file(os.path.join(folder, *parts[:-1]), parts[-1])
            if file:
                return ModuleFile(name, Path(file), folder)
            if len(parts) > 1 and self._file(str(folder), parts[0]):
                return None  # the first folder that has the package decides
        return None

    def _file(self, folder: str, word: str) -> str | None:
        """The file that stands for `word` in a folder: that of a package, or of a module."""
        inside = os.path.join(folder, word)
        if self._is_file(folder, word) is False and self._is_file(inside, PACKAGE_FILE):
            return os.path.join(inside, PACKAGE_FILE)
        return next((inside + each for each in SOURCE_SUFFIXES if self._is_file(folder, word + each)), None)

    def _is_file(self, folder: str, name: str) -> bool | None:
        """Whether a name in a folder is that of a file; None when there is none."""
        self._asked.setdefault(folder, set()).add(name)
        return self._list(folder).get(name)

    def _list(self, folder: str) -> Mapping[str, bool]:
        """The files (True) and folders (False) in a folder; nothing of one that is not there."""
        if folder not in self._listed:
            try:
                with os.scandir(folder) as entries:
                    found = {each.name: each.is_file() for each in entries if each.is_file() or each.is_dir()}
            except OSError:
                found = {}
            self._listed[folder] = found
        return self._listed[folder]


def module_of_file(file: Path) -> ModuleFile:
    """The module that a file named by path is: in a package when folders with `__init__.py` stand around it.

    Its root is the folder above the outermost package, where an import of it has to start.
    """
    root, parts = file.parent, [file.stem] if file.stem != "__init__" else []
    while (root / PACKAGE_FILE).is_file():
        parts.insert(0, root.name)
        root = root.parent
    return ModuleFile(".".join(parts), file, root)


def reads_around(file: Path) -> Iterator[Read]:
    """What `module_of_file` asks for."""
    for folder in file.parents:
        found = digest_place(folder / PACKAGE_FILE)
        yield Read(ReadKind.PLACE, str(folder / PACKAGE_FILE), found)
        if found != "file":
            return
