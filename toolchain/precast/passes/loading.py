"""From a selected pass to the object that runs: import the plugin's module, find the definition, set its options.

In: a `PassUse` and the project's folder. Out: the definition, with options checked. Runs the plugin author's code, so
only probes and workers come here.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from precast.errors import Place, PluginError
from precast.passes.definitions import (
    BuiltinPass,
    Drop,
    HookFile,
    NativePass,
    Override,
    Pass,
    Replace,
    plugin_name,
)
from precast.passes.digest import digest_files
from precast.passes.elementwise import ElementwiseOp
from precast.passes.selection import PassUse

DEFINITION_VALUES = (NativePass, BuiltinPass, Replace, Drop, Override, HookFile, ElementwiseOp)


def load_definition(use: PassUse, project: Path) -> Any:
    """The definition that `use` names, with its options. `PluginError` when it is not what the plan saw."""
    for package in {file.partition(":")[0] for file in use.files if ":" in file}:
        if importlib.util.find_spec(package) is None:
            raise PluginError(f"pass `{use.name}` needs the package `{package}`, which workers do not find")
    if use.files and digest_files(project, use.files) != use.digest:
        raise PluginError(f"the files of pass `{use.name}` changed during the build", hint="build again")
    module = _load_module(use.origin, str(project), use.digest)
    for definition in find_definitions(module):
        if plugin_name(definition) == use.name:
            return with_options(definition, dict(use.options))
    raise PluginError(f"`{use.origin}` holds no pass `{use.name}`")


def load_module(origin: str, project: Path) -> ModuleType:
    """The plugin module `origin`: a project-relative `.py` file or package folder, or an installed module's name."""
    if not origin.endswith(".py"):
        return importlib.import_module(origin)
    return execute_file(project / origin)


@functools.cache
def _load_module(origin: str, project: str, digest: str) -> ModuleType:
    """`load_module`, once for each state of the files."""
    return load_module(origin, Path(project))


def execute_file(path: Path) -> ModuleType:
    """Executes a file as a module of its own name's making; its siblings can be imported by their plain names."""
    folder = str(path.parent)
    if folder not in sys.path:
        sys.path.append(folder)
    importlib.invalidate_caches()
    name = f"precast_plugin_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise PluginError(f"there is no plugin file `{path.name}`", where=Place(str(path), 1))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    _forget_siblings(path.parent, keep=name)
    return module


def _forget_siblings(folder: Path, keep: str) -> None:
    """Lets the next plugin state import its siblings anew: in a long-lived process they may have changed."""
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file and name != keep and not name.startswith("precast_plugin_") and Path(file).parent == folder:
            del sys.modules[name]


def find_definitions(module: ModuleType) -> list[Any]:
    """The plugins that a module defines, in its order: `Pass` classes of its own, and values of the other kinds."""
    found: list[Any] = []
    for value in vars(module).values():
        if _is_definition(value, module.__name__) and not any(value is each for each in found):
            found.append(value)
    return found


def _is_definition(value: Any, module_name: str) -> bool:
    if isinstance(value, type):
        return issubclass(value, Pass) and bool(value.name) and value.__module__ == module_name
    return isinstance(value, DEFINITION_VALUES)


def with_options(definition: Any, options: dict[str, Any]) -> Any:
    """An instance of a `Pass` class with `options`, or any other definition with its `args` and the like replaced."""
    if isinstance(definition, type):
        return definition(**options)
    return dataclasses.replace(definition, **options) if options else definition
