"""The modules of one plugin, which nobody else sees: siblings by their plain names, made of bytes that were digested.

In: a plugin's origin and the bytes of its files. Out: its module, and an `inside` in which its code runs, so that an
import in it (at the top, relative, or as late as in `run`) finds the plugin's own files first and what those made
before. Outside, `sys.modules` and the import system are as they were: `plugins/common.py` never takes the place of
another folder's `common.py`.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from precast.bounded import MOST_FILE_BYTES, read_bounded
from precast.errors import Place, PluginError
from precast.passes.resources import name_resource
from precast.passes.watching import Watch, is_installed_code
from precast.reads import Read, places_of

# What these names mean never depends on a plugin's folder: a file `enum.py` there must not break the interpreter.
SHARED = frozenset({*sys.stdlib_module_names, "precast", "mlir", "triton"})


class _OwnLoader(importlib.machinery.SourceFileLoader):
    """Compiles the bytes that the namespace holds; bytecode files, keyed by whole seconds, are not looked at."""

    contents: dict[str, bytes]

    def path_stats(self, path: str) -> Mapping[str, int]:
        raise OSError("bytecode files are not used")

    def set_data(self, path: str, data: Any, *, _mode: int = 0o666) -> None:
        """No bytecode file is written."""

    def get_data(self, path: str) -> bytes:
        if path not in self.contents:
            self.contents[path] = read_bounded(path)
        return self.contents[path]


class Namespace(importlib.abc.MetaPathFinder):
    """Where a plugin's modules live. `contents` are the bytes of its files by path; others are read where they are.

    `origin` is a project-relative `.py` file (a package's `__init__.py` too), or the dotted name of an installed
    module. `watch` sees what the plugin's code reads.
    """

    def __init__(self, origin: str, project: Path, contents: Mapping[Path, bytes] | None = None) -> None:
        self.origin, self._project = origin, project
        self._contents = {str(path): data for path, data in (contents or {}).items()}
        self._declared = frozenset(self._contents)
        self._modules: dict[str, ModuleType] = {}
        self._depth = 0
        self._file = project / origin if origin.endswith(".py") else None
        self._folders, self.own = self._find_own()
        self.watch = Watch(project, self.own)
        self._loader = type("OwnLoader", (_OwnLoader,), {"contents": self._contents})

    def _find_own(self) -> tuple[tuple[str, ...], frozenset[str]]:
        """The folders that the plugin's plain names are looked up in, and these names."""
        if self._file is None:
            package = self.origin.partition(".")[0]
            spec = importlib.util.find_spec(package)
            found = spec.submodule_search_locations or [spec.origin or ""] if spec else ()
            return tuple(str(Path(each).parent) for each in found), frozenset({package} - SHARED)
        folders = [self._file.parent, *([self._file.parents[1]] if self._file.name == "__init__.py" else [])]
        names = {_module_name(each) for folder in folders if folder.is_dir() for each in os.scandir(folder)}
        return tuple(map(str, folders)), frozenset(names - SHARED - {""})

    def load(self) -> ModuleType:
        """The plugin's module, executed once."""
        with self.inside():
            return importlib.import_module(self.origin) if self._file is None else self._load_file(self._file)

    def _load_file(self, path: Path) -> ModuleType:
        name = path.parent.name if path.name == "__init__.py" else path.stem
        if name in SHARED or not name.isidentifier():
            name = f"precast_plugin_{''.join(each if each.isalnum() else '_' for each in name)}"
        return self.execute(path, name)

    def execute(self, path: Path, name: str) -> ModuleType:
        """Executes the file `path` as the module `name` of this namespace, unless that is there. Call it `inside`."""
        if name in sys.modules and getattr(sys.modules[name], "__file__", "") == str(path):
            return sys.modules[name]
        if not path.is_file():
            raise PluginError(f"there is no plugin file `{path.name}`", where=Place(str(path), 1))
        spec = importlib.util.spec_from_file_location(name, path, loader=self._loader(name, str(path)))
        assert spec is not None and spec.loader is not None
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except BaseException:
            sys.modules.pop(name, None)
            raise
        return module

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Runs the plugin's code: its modules stand in `sys.modules`, others of their names do not."""
        if self._depth:
            yield
            return
        hidden = {name: sys.modules.pop(name) for name in list(sys.modules) if self._is_own(name)}
        before, path, writes = set(sys.modules), list(sys.path), sys.dont_write_bytecode
        sys.modules.update(self._modules)
        sys.meta_path.insert(0, self)
        sys.dont_write_bytecode, self._depth = True, 1
        try:
            with self.watch.watching():
                yield
        finally:
            self._depth = 0
            sys.meta_path[:] = [each for each in sys.meta_path if each is not self]
            sys.path[:], sys.dont_write_bytecode = path, writes
            for name, module in list(sys.modules.items()):
                if name not in before and (self._is_own(name) or name in self._modules or _is_made_by_hand(module)):
                    self._modules[name] = sys.modules.pop(name)
            sys.modules.update(hidden)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not self._is_own(name):
            if path is None and name not in SHARED:
                self._see_absent(name)
            return None
        return self._find_in(self._folders if path is None else path, name)

    def _see_absent(self, name: str) -> None:
        """Remembers that a module is none of the plugin's own, which another file would change."""
        for folder in map(Path, self._folders if self._file else ()):
            for place in places_of(folder, name):
                self.watch.see_place(place)

    def _find_in(self, folders: Sequence[str], name: str) -> importlib.machinery.ModuleSpec | None:
        portions: list[str] = []
        for folder in folders:
            spec = importlib.machinery.FileFinder(folder, *self._kinds()).find_spec(name)
            if spec is not None and spec.loader is not None:
                return spec
            portions += spec.submodule_search_locations or () if spec else ()
        if not portions:
            return None
        spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = portions
        return spec

    def _kinds(self) -> tuple[tuple[type, list[str]], ...]:
        return (
            (importlib.machinery.ExtensionFileLoader, importlib.machinery.EXTENSION_SUFFIXES),
            (self._loader, importlib.machinery.SOURCE_SUFFIXES),
        )

    def _is_own(self, name: str) -> bool:
        return name.partition(".")[0] in self.own

    def read(self, path: Path) -> bytes:
        """The bytes of one of the plugin's files: those that were digested, if they were."""
        return self._contents[str(path)] if str(path) in self._contents else read_bounded(path, MOST_FILE_BYTES)

    def undeclared(self, knows_packages: bool) -> tuple[Read, ...]:
        """What the plugin's code has read so far beside the files it was given. With `knows_packages`, modules of
        other packages are known by another way."""
        paths = [(read, self._project / read.name) for read in self.watch.reads]
        return tuple(
            read
            for read, path in paths
            if str(path) not in self._declared and not (knows_packages and is_installed_code(path))
        )

    def name_file(self, path: Path) -> str:
        """How messages name one of the plugin's files."""
        return name_resource(path, self._project)

    @property
    def files(self) -> tuple[str, ...]:
        """The paths of the plugin's own files that were executed so far."""
        return tuple(sorted(self._contents))


def _module_name(entry: os.DirEntry[str]) -> str:
    """The plain name that an import can give to a folder's entry; "" for none."""
    stem, _, suffix = entry.name.partition(".")
    is_module = f".{suffix}" in (*importlib.machinery.SOURCE_SUFFIXES, *importlib.machinery.EXTENSION_SUFFIXES)
    return stem if stem.isidentifier() and stem != "__pycache__" and (is_module or entry.is_dir()) else ""


def _is_made_by_hand(module: ModuleType) -> bool:
    """Whether a module was made from a spec without a loader, to execute a text in it, as hook files do."""
    spec = getattr(module, "__spec__", None)
    return spec is not None and spec.loader is None and not hasattr(module, "__path__")
