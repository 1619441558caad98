"""How modules of a project are found, read and forgotten in a worker.

In: the folders where a project's modules are. Out: an import system in which those folders come first, no bytecode
file is believed or written, and a missing package becomes a stand-in. `close` puts everything back, so that the
modules of one project, of one version of a file or of one target never serve another.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import linecache
import os
import sys
import sysconfig
import types
import zipimport
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from precast.bounded import MOST_FILE_BYTES, read_bounded
from precast.engines.triton.guards import is_expected_failure
from precast.engines.triton.reading import Recording
from precast.engines.triton.stubs import Seal, StandinDistribution, is_standin, standin_spec
from precast.reads import ReadKind
from precast.spec.closure import TOOLS, read_imports

INSTALLED_FOLDERS = {"site-packages", "dist-packages"}
STANDARD_LIBRARY = tuple(dict.fromkeys(sysconfig.get_path(name) for name in ("stdlib", "platstdlib")))
KEPT = TOOLS | {"precast"}  # the worker's own, which all kernels share
UNTOLD = (KEPT - {"numpy"}) | sys.stdlib_module_names | {""}  # known by other ways, or the importer's own package
# Loaders whose modules can be executed again; a file that they read themselves is heard of.
FORGETTABLE = (importlib.machinery.SourceFileLoader, importlib.machinery.SourcelessFileLoader, zipimport.zipimporter)
ImportPath = Sequence[str] | None


class SourceLoader(importlib.machinery.SourceFileLoader):
    """Compiles the source, and says which bytes it compiled.

    Bytecode files are keyed by whole seconds and would hide a quick edit. Triton reads functions by their text through
    `linecache`, which is told the same bytes.
    """

    def __init__(self, name: str, path: str, recording: Recording) -> None:
        super().__init__(name, path)
        self._recording = recording
        recording.modules.add(name)

    def path_stats(self, path: str) -> types.MappingProxyType[str, int]:
        raise OSError("bytecode files are not used")

    def get_data(self, path: str) -> bytes:
        if path != self.path:  # data of the package, which code asks its loader for
            self._recording.note(ReadKind.DATA, path)
        return read_bounded(path)

    def source_to_code(self, data: bytes, path: str, *, _optimize: int = -1) -> types.CodeType:  # type: ignore[override]
        self._recording.note_source(path, data)
        self._recording.packages |= _imported_packages(data)
        lines = importlib.util.decode_source(data).splitlines(keepends=True)
        linecache.cache[path] = (len(data), None, lines, path)  # without a time: never read again
        return _compile(data, path)


@lru_cache(maxsize=1024)
def _compile(data: bytes, path: str) -> types.CodeType:
    """Code of a source, which every variant and target of a kernel needs again."""
    code: types.CodeType = compile(data, path, "exec", dont_inherit=True)
    return code


@lru_cache(maxsize=1024)
def _imported_packages(data: bytes) -> frozenset[str]:
    """The top-level names that a source imports, wherever in it."""
    return frozenset(str(dotted).partition(".")[0] for dotted, *_ in read_imports(data)["records"]) - UNTOLD


class ExtensionLoader(importlib.machinery.ExtensionFileLoader):
    """A compiled module of the project, whose file counts as a source."""

    def __init__(self, name: str, path: str, recording: Recording) -> None:
        super().__init__(name, path)
        self._recording = recording
        recording.modules.add(name)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        self._recording.note_source(self.path, read_bounded(self.path, MOST_FILE_BYTES))
        return super().create_module(spec)


class ProjectFinder(importlib.abc.MetaPathFinder):
    """Finds modules in a project's folders, and sub-modules of packages that were found there."""

    def __init__(self, roots: Sequence[str], recording: Recording) -> None:
        self.roots = tuple(roots)
        self._recording = recording

    def find_spec(
        self, name: str, path: ImportPath = None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if path is None:
            return self._find_in(self.roots, name)
        ours = [folder for folder in path if any(Path(folder).is_relative_to(root) for root in self.roots)]
        return self._find_in([folder for folder in ours if not is_installed(Path(folder))], name)

    def _find_in(self, folders: Sequence[str], name: str) -> importlib.machinery.ModuleSpec | None:
        details = [
            (importlib.machinery.ExtensionFileLoader, importlib.machinery.EXTENSION_SUFFIXES),
            (importlib.machinery.SourceFileLoader, importlib.machinery.SOURCE_SUFFIXES),
        ]
        is_told, last = self._is_told(name), name.rpartition(".")[2]
        for folder in folders:
            spec = importlib.machinery.FileFinder(folder, *details).find_spec(name)
            if spec is not None and spec.loader is not None and spec.origin is not None:
                kind = ExtensionLoader if _is_extension(spec.origin) else SourceLoader
                spec.loader = kind(name, spec.origin, self._recording)
                return spec
            if is_told:
                self._recording.note_places(folder, last)
        return None

    def _is_told(self, name: str) -> bool:
        """Whether it counts where a module is not: the plan has looked for those that sources import by name."""
        is_known = name in self._recording.packages or name in UNTOLD
        return not is_known and _is_asked_by_kernels(sys._getframe(1))


class InstalledFinder(importlib.abc.MetaPathFinder):
    """Finds installed packages that kernels' modules import: read and forgotten like the project's own.

    A package with compiled parts cannot be imported twice in one process; it is left to Python, with all that it
    imports itself.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    def find_spec(
        self, name: str, path: ImportPath = None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name.partition(".")[0] in KEPT or not _is_asked_by_kernels(sys._getframe(1)):
            return None
        specs = (finder.find_spec(name, path, target) for finder in sys.meta_path if _is_ordinary(finder))
        spec = next((each for each in specs if each is not None), None)
        if spec is None or spec.origin is None or type(spec.loader) not in FORGETTABLE:
            return None
        if is_standard(spec.origin) or has_compiled_parts(_top_folder(name, spec)):
            return None
        if type(spec.loader) is importlib.machinery.SourceFileLoader:
            spec.loader = SourceLoader(name, spec.origin, self._recording)
        self._recording.modules.add(name)
        return spec


def _is_ordinary(finder: object) -> bool:
    return not isinstance(finder, ProjectFinder | InstalledFinder | LastFinder) and hasattr(finder, "find_spec")


def _is_asked_by_kernels(frame: types.FrameType | None) -> bool:
    """Whether the module that imports something is one that a `SourceLoader` loaded; the first one is."""
    while frame is not None:
        loader = frame.f_globals.get("__loader__")
        if isinstance(loader, SourceLoader):
            return True
        file = frame.f_code.co_filename
        if file != __file__ and not file.startswith("<") and not is_standard(file):
            return frame.f_globals.get("__name__") == "precast.engines.triton.load"
        frame = frame.f_back
    return False


def is_standard(file: str) -> bool:
    """Whether a file is one of Python's own library."""
    return file.startswith(STANDARD_LIBRARY) and not is_installed(Path(file))


def _top_folder(name: str, spec: importlib.machinery.ModuleSpec) -> str:
    """The folder of the package that a module belongs to; empty for a module of no package."""
    depth = name.count(".") + (1 if spec.submodule_search_locations is not None else 0)
    return os.fspath(Path(spec.origin or "").parents[depth - 1]) if depth else ""


@cache
def has_compiled_parts(folder: str) -> bool:
    """Whether a package's folder holds a compiled module or a library."""
    return folder != "" and any(_is_extension(file) for _, _, files in os.walk(folder) for file in files)


def _is_extension(file: str) -> bool:
    return file.endswith((".so", *importlib.machinery.EXTENSION_SUFFIXES))


class LastFinder(importlib.abc.MetaPathFinder):
    """Asked when nobody else knows a module: a folder of the project without `__init__.py`, else a stand-in."""

    def __init__(self, roots: Sequence[str], seal: Seal, outermost: str) -> None:
        self.roots = tuple(roots)
        self.seal = seal
        self.outermost = outermost

    def find_spec(
        self, name: str, path: ImportPath = None, target: types.ModuleType | None = None
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

    def find_distributions(self, context: Any) -> Iterator[StandinDistribution]:
        """For `importlib.metadata`, which asks last here: the version of what is not installed."""
        frame = sys._getframe(1)
        if context.name is None or self.seal.closed or not _is_asked_by_kernels(frame):
            return
        if not is_expected_failure(frame, self.outermost):
            yield StandinDistribution(context.name)


def _namespace_spec(name: str, portions: list[str]) -> importlib.machinery.ModuleSpec:
    spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
    spec.submodule_search_locations = portions
    return spec


def is_installed(path: Path) -> bool:
    """Whether a file belongs to an installed package, be it inside the project's folder."""
    return not INSTALLED_FOLDERS.isdisjoint(path.parts)


class ImportSession:
    """The import system of one project, from construction to `close`. `outermost` is the file that starts imports."""

    def __init__(self, roots: Sequence[Path], recording: Recording, outermost: str) -> None:
        self.roots = tuple(dict.fromkeys(os.fspath(root) for root in roots))
        self.seal = Seal()
        self._recording = recording
        self._known = set(sys.modules)
        self._path = list(sys.path)
        self._first = (ProjectFinder(self.roots, recording), InstalledFinder(recording))
        self._last = LastFinder(self.roots, self.seal, outermost)
        sys.path[:0] = self.roots  # for code that reads it
        self._writes_bytecode, sys.dont_write_bytecode = not sys.dont_write_bytecode, True
        place = _place_before_path_finder()
        sys.meta_path[place:place] = self._first
        sys.meta_path.append(self._last)
        self._from_file, importlib.util.spec_from_file_location = importlib.util.spec_from_file_location, self._by_file

    def _by_file(self, name: str, *arguments: Any, **keywords: Any) -> importlib.machinery.ModuleSpec | None:
        """What kernels' modules hear of `importlib.util.spec_from_file_location`."""
        spec = self._from_file(name, *arguments, **keywords)
        plain = spec is not None and type(spec.loader) is importlib.machinery.SourceFileLoader
        if spec is not None and spec.origin and plain and _is_asked_by_kernels(sys._getframe(1)):
            spec.loader = SourceLoader(name, spec.origin, self._recording)
        return spec

    def note_packages(self) -> None:
        """Remembers which packages of others were imported or missed: their files are not read as kernels' are."""
        for name in self._recording.packages - self._recording.modules:
            self._recording.note_package(name)

    def close(self) -> None:
        """Forgets what was imported for the project and all stand-ins, and restores the import system."""
        for name in list(self._forgotten()):
            del sys.modules[name]
        ours = (*self._first, self._last)
        sys.meta_path[:] = [finder for finder in sys.meta_path if finder not in ours]
        importlib.util.spec_from_file_location = self._from_file
        sys.path[:] = self._path
        sys.dont_write_bytecode = not self._writes_bytecode
        linecache.clearcache()

    def _forgotten(self) -> Iterator[str]:
        for name, module in sys.modules.items():
            if name not in self._known and (
                name in self._recording.modules or is_standin(module) or self._is_made(name)
            ):
                yield name

    def _is_made(self, name: str) -> bool:
        """Whether a module has no file: a namespace, or one that code made itself, unless in a package that stays."""
        if name.partition(".")[0] in KEPT:  # a pass may be the first to import them, while a kernel's session is open
            return False
        contents = getattr(sys.modules[name], "__dict__", {})
        if contents.get("__file__") is not None or not ("__path__" in contents or contents.get("__spec__") is None):
            return False
        top = name.partition(".")[0]
        return top == name or top not in sys.modules or top in self._recording.modules or self._is_made(top)


def _place_before_path_finder() -> int:
    finders = [getattr(finder, "__name__", "") for finder in sys.meta_path]
    return finders.index("PathFinder") if "PathFinder" in finders else len(finders)
