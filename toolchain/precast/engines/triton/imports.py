"""How modules of a project are found, read and forgotten in a worker.

In: the folders where a project's modules are. Out: an import system in which those folders come first, no bytecode
file is believed or written, and a missing package becomes a stand-in. `close` puts everything back, so that the
modules of one project or of one version of a file never serve another.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import linecache
import os
import sys
import types
from collections.abc import Sequence
from pathlib import Path

from precast.engines.triton.guards import is_expected_failure
from precast.engines.triton.stubs import Seal, is_standin, standin_spec

INSTALLED_FOLDERS = {"site-packages", "dist-packages"}


class SourceLoader(importlib.machinery.SourceFileLoader):
    """Always compiles the source: a bytecode file is keyed by whole seconds and would hide a quick edit."""

    def path_stats(self, path: str) -> types.MappingProxyType[str, int]:
        raise OSError("bytecode files are not used")


def _find_in(folders: Sequence[str], name: str) -> importlib.machinery.ModuleSpec | None:
    details = [
        (importlib.machinery.ExtensionFileLoader, importlib.machinery.EXTENSION_SUFFIXES),
        (SourceLoader, importlib.machinery.SOURCE_SUFFIXES),
    ]
    for folder in folders:
        spec = importlib.machinery.FileFinder(folder, *details).find_spec(name)
        if spec is not None and spec.loader is not None:
            return spec
    return None


class ProjectFinder(importlib.abc.MetaPathFinder):
    """Finds modules in a project's folders, and sub-modules of packages that were found there."""

    def __init__(self, roots: Sequence[str]) -> None:
        self.roots = tuple(roots)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if path is None:
            return _find_in(self.roots, name)
        ours = [folder for folder in path if any(Path(folder).is_relative_to(root) for root in self.roots)]
        return _find_in([folder for folder in ours if not is_installed(Path(folder))], name)


class LastFinder(importlib.abc.MetaPathFinder):
    """Asked when nobody else knows a module: a folder of the project without `__init__.py`, else a stand-in."""

    def __init__(self, roots: Sequence[str], seal: Seal, outermost: str) -> None:
        self.roots = tuple(roots)
        self.seal = seal
        self.outermost = outermost

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        last = name.rpartition(".")[2]
        portions = [os.path.join(root, last) for root in (self.roots if path is None else path)]
        portions = [folder for folder in portions if os.path.isdir(folder)]
        if portions:
            return _namespace_spec(name, portions)
        parent = sys.modules.get(name.rpartition(".")[0])
        if path is not None and not is_standin(parent):
            return None  # a package that is there lacks a part: the importer's own mistake
        if self.seal.closed or is_expected_failure(sys._getframe(1), self.outermost):
            return None
        return standin_spec(name, self.seal)


def _namespace_spec(name: str, portions: list[str]) -> importlib.machinery.ModuleSpec:
    spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
    spec.submodule_search_locations = portions
    return spec


def is_installed(path: Path) -> bool:
    """Whether a file belongs to an installed package, be it inside the project's folder."""
    return not INSTALLED_FOLDERS.isdisjoint(path.parts)


class ImportSession:
    """The import system of one project, from construction to `close`. `outermost` is the file that starts imports."""

    def __init__(self, project: Path, roots: Sequence[Path], outermost: str) -> None:
        self.project = project
        self.roots = tuple(dict.fromkeys(os.fspath(root) for root in roots))
        self.seal = Seal()
        self._known = set(sys.modules)
        self._path = list(sys.path)
        self._finders = (ProjectFinder(self.roots), LastFinder(self.roots, self.seal, outermost))
        sys.path[:0] = self.roots  # for code that reads it
        self._writes_bytecode, sys.dont_write_bytecode = not sys.dont_write_bytecode, True
        sys.meta_path.insert(_place_before_path_finder(), self._finders[0])
        sys.meta_path.append(self._finders[1])

    def modules(self) -> dict[str, Path]:
        """Modules of the project that were imported in this session, with their files."""
        found: dict[str, Path] = {}
        for name, module in list(sys.modules.items()):
            file = None if name in self._known else module.__dict__.get("__file__")
            if isinstance(file, str) and self._is_ours(Path(file)):
                found[name] = Path(file)
        return found

    def _is_ours(self, file: Path) -> bool:
        return not is_installed(file) and any(
            file.is_relative_to(each) for each in (os.fspath(self.project), *self.roots)
        )

    def files(self) -> tuple[str, ...]:
        """Project-relative paths of the modules' files, sorted; those outside the project are not its files."""
        project = self.project
        inside = [file for file in set(self.modules().values()) if file.is_relative_to(project)]
        return tuple(sorted(file.relative_to(project).as_posix() for file in inside))

    def close(self) -> None:
        """Forgets the project's modules and all stand-ins, and restores the interpreter's import system."""
        ours = self.modules()
        for name, module in list(sys.modules.items()):
            if name not in self._known and (name in ours or is_standin(module) or _is_namespace(module)):
                del sys.modules[name]
        sys.meta_path[:] = [finder for finder in sys.meta_path if finder not in self._finders]
        sys.path[:] = self._path
        sys.dont_write_bytecode = not self._writes_bytecode
        linecache.clearcache()


def _is_namespace(module: types.ModuleType) -> bool:
    return module.__dict__.get("__file__") is None and "__path__" in module.__dict__


def _place_before_path_finder() -> int:
    finders = [getattr(finder, "__name__", "") for finder in sys.meta_path]
    return finders.index("PathFinder") if "PathFinder" in finders else len(finders)
