"""Inert `mlir` and `triton` for a probe where these are not installed: plugin classes can be read all the same.

In: an interpreter that lacks one of them. Out: modules in their place whose every name is a class that does nothing.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

COMPILERS = ("mlir", "triton")


class _InertType(type):
    """A class that does nothing, and so does whatever is asked of it."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _InertType(name, (), {})

    def __getitem__(cls, item: object) -> Any:
        return cls


class _Inert(ModuleType):
    """Stands for a compiler package that is not installed: any name in it is an inert class."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _InertType(name, (), {})


class _InertSpec(importlib.machinery.ModuleSpec):
    """Where an `_Inert` module comes from."""


class _MissingCompilers(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `mlir` and `triton` last, that is, when nothing else has them."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname.partition(".")[0] not in COMPILERS:
            return None
        return _InertSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return _Inert(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """There is nothing to execute."""


def let_compilers_be_missing() -> None:
    """Puts stand-ins where a compiler is not installed."""
    if any(importlib.util.find_spec(name) is None for name in COMPILERS):
        sys.meta_path.append(_MissingCompilers())


def has_triton() -> bool:
    """Whether the real one is installed."""
    spec = importlib.util.find_spec("triton")
    return spec is not None and not isinstance(spec, _InertSpec)
