"""Which of Precast's own files decide what a part of it makes: its import closure, found with `ast`.

In: the names of modules where a part begins. Out: one digest over every module of ours that their imports reach,
wherever in a function these stand, and over the data beside them (templates, C sources, schemas). No list is kept by
hand: what is imported counts.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import precast
from precast.digest import FileDigests, digest_pairs
from precast.reads import Read, ReadKind, digest_names

_NOT_DATA = {".py", ".pyi", ".pyc", ".typed", ".o"}


def digest_own(starts: Iterable[str], digests: FileDigests) -> str:
    """Version and 12 hex digits over the closure of the modules `starts`, such as `precast.worker.walk`."""
    root = Path(precast.__file__).parent
    modules = reach_modules(starts, root, digests)
    files = {*modules, *(path for folder in {each.parent for each in modules} for path in _data_in(folder))}
    named = sorted((path.relative_to(root).as_posix(), path) for path in files)
    return f"{precast.__version__} {digest_pairs((name, digests.digest(path)) for name, path in named)[:12]}"


def look_at_own(digests: FileDigests) -> Iterator[Read]:
    """Every folder of Precast's own, with what it holds; every file there is looked at through `digests`."""
    for parent, folders, files in os.walk(Path(precast.__file__).parent):
        yield Read(ReadKind.DIRECTORY, parent, digest_names((*folders, *files)))
        folders[:] = [each for each in folders if each != "__pycache__"]
        for file in files:
            digests.digest(os.path.join(parent, file))


def reach_modules(starts: Iterable[str], root: Path, digests: FileDigests) -> frozenset[Path]:
    """The files of the modules `starts` and of all modules below `root`, the package's folder, that they import."""
    modules = _list_modules(root)
    names = list(dict.fromkeys(starts))
    asked = set(names)
    reached: set[Path] = set()
    for name in names:
        for path in _files_of(name, modules):
            if path not in reached:
                reached.add(path)
                new = set(digests.record("own-imports", path, read_own_imports)) - asked
                asked |= new
                names += new
    return frozenset(reached)


def _list_modules(root: Path) -> Mapping[str, list[Path]]:
    """The files of every module and package below `root` by its dotted name in it, "" for that of `root` itself."""
    found: dict[str, list[Path]] = {}
    for folder, _, files in os.walk(root):
        inside = [part for part in os.path.relpath(folder, root).split(os.sep) if part != "."]
        for file in files:
            word, suffix = os.path.splitext(file)
            if suffix == ".py":
                name = ".".join([*inside, *([] if word == "__init__" else [word])])
                found.setdefault(name, []).append(Path(folder, file))
    return found


def read_own_imports(source: bytes) -> list[Any]:
    """The dotted names of ours that a source may import: `from a import b` names `a` and `a.b`."""
    return sorted({name for node in ast.walk(ast.parse(source)) for name in _names_in(node)})


def _names_in(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name.partition(".")[0] == "precast")
    elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "precast":
        yield str(node.module)
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _files_of(name: str, modules: Mapping[str, list[Path]]) -> Iterator[Path]:
    """The files that importing `name` executes: its packages' `__init__`, and its own."""
    parts = name.split(".")[1:]
    for count in range(len(parts) + 1):
        yield from modules.get(".".join(parts[:count]), ())


def _data_in(folder: Path) -> Iterator[Path]:
    """What a package's modules may read beside them: files that are no Python, also in folders that are no package."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir() and entry.name != "__pycache__" and not os.path.exists(f"{entry.path}/__init__.py"):
                yield from _data_in(Path(entry.path))
            elif entry.is_file() and os.path.splitext(entry.name)[1] not in _NOT_DATA:
                yield Path(entry.path)
