"""What a plugin imports from elsewhere: the installed modules behind it, by version and bytes.

In: a plugin's own files, in a process that has imported them. Out: one digest, and the files that it covers. The
standard library, the compilers and Precast itself are in keys by other ways.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.metadata
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from precast.bounded import digest_bounded, read_bounded
from precast.passes.digest import named_modules
from precast.passes.namespace import SHARED

_IMPORT = re.compile(rb"^[ \t]*(?:from|import)[ \t]+([A-Za-z_]\w*)", re.MULTILINE)


@dataclass(frozen=True)
class Outside:
    """The packages that a plugin rests on; `digest` is "" when there are none."""

    digest: str = ""
    files: tuple[Path, ...] = ()


def find_outside(own: Iterable[Path], skipped: frozenset[str]) -> Outside:
    """The packages that the files `own` import, and what these import in turn, as far as it is loaded.

    Imports inside functions count: what they name is imported now. Names of `skipped` are the plugin's own.
    """
    own = tuple(own)
    named = [name for name in named_modules(own) if _top(name) not in SHARED | skipped]
    for name in named:
        _import_if_there(name)
    packages = _close({_top(name) for name in named}, skipped)
    if not any(packages.values()):
        return Outside()
    total, files = hashlib.sha256(), []
    for package in sorted(packages):
        total.update(f"{package} {', '.join(_versions(package))}\n".encode())
        for name, path in sorted(packages[package].items()):
            total.update(f"{name}\0{digest_bounded(path)}\n".encode())
            files.append(path)
    return Outside(total.hexdigest(), tuple(sorted(files)))


def _import_if_there(name: str) -> None:
    try:
        importlib.import_module(name)
    except BaseException:  # another package's code may do anything, and the plugin may expect just that
        return


def _close(packages: set[str], skipped: frozenset[str]) -> dict[str, dict[str, Path]]:
    """The loaded modules' files of `packages` and of every package that they name, by package and module."""
    found: dict[str, dict[str, Path]] = {}
    waiting = list(packages)
    while waiting:
        package = waiting.pop()
        if package in found or package in SHARED | skipped:
            continue
        found[package] = dict(_loaded_files(package))
        waiting += {name for path in found[package].values() for name in _named_packages(path)}
    return {package: files for package, files in found.items() if files}


def _loaded_files(package: str) -> Iterator[tuple[str, Path]]:
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None) if _top(name) == package else None
        if isinstance(file, str) and Path(file).is_file():
            yield name, Path(file)


def _named_packages(path: Path) -> set[str]:
    return {name.decode() for name in _IMPORT.findall(read_bounded(path))} if path.suffix == ".py" else set()


def _versions(package: str) -> list[str]:
    return [f"{name} {importlib.metadata.version(name)}" for name in sorted(set(_distributions().get(package, ())))]


@functools.cache
def _distributions() -> Mapping[str, list[str]]:
    return importlib.metadata.packages_distributions()


def _top(name: str) -> str:
    return name.partition(".")[0]
