"""Where modules are, without importing any: dotted names to files and back.

In: search folders. Out: files, as an import would find them: regular packages, modules, namespace packages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.machinery import SOURCE_SUFFIXES
from pathlib import Path


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
    parts = name.split(".")
    for folder in folders:
        base = folder.joinpath(*parts)
        for file in (base / "__init__.py", *(base.with_name(base.name + suffix) for suffix in SOURCE_SUFFIXES)):
            if file.is_file():
                return ModuleFile(name, file, folder)
        if (folder / parts[0] / "__init__.py").is_file() or (folder / f"{parts[0]}.py").is_file():
            return None  # the first folder that has the package decides
    return None


def module_of_file(file: Path) -> ModuleFile:
    """The module that a file named by path is: in a package when folders with `__init__.py` stand around it.

    Its root is the folder above the outermost package, where an import of it has to start.
    """
    root, parts = file.parent, [file.stem] if file.stem != "__init__" else []
    while (root / "__init__.py").is_file():
        parts.insert(0, root.name)
        root = root.parent
    return ModuleFile(".".join(parts), file, root)
