"""From a selected pass to the object that runs: import the plugin's module, find the definition, set its options.

In: a `PassUse` and the project's folder. Out: the definition, with options checked, and the namespace that its code
lives in. The bytes that are compared with the use's digest are those that run. Runs the plugin author's code, so only
probes and workers come here.
"""

from __future__ import annotations

import dataclasses
import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

from precast.errors import PassError, Place, PluginError
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
from precast.passes.digest import digest_contents, read_contents
from precast.passes.elementwise import ElementwiseOp
from precast.passes.faults import describe_error, find_line
from precast.passes.namespace import Namespace
from precast.passes.resources import name_resource, resolve_resource
from precast.passes.selection import PassUse

DEFINITION_VALUES = (NativePass, BuiltinPass, Replace, Drop, Override, HookFile, ElementwiseOp)


def load_definition(use: PassUse, project: Path) -> tuple[Any, Namespace]:
    """The definition that `use` names, with its options. `PluginError` when it is not what the plan saw."""
    for package in {file.partition(":")[0] for file in use.files if ":" in file}:
        if importlib.util.find_spec(package) is None:
            raise PluginError(f"pass `{use.name}` needs the package `{package}`, which workers do not find")
    namespace = Namespace(use.origin, project, read_verified(use, project))
    try:
        module = namespace.load()
        with namespace.inside():
            for definition in find_definitions(module):
                if plugin_name(definition) == use.name:
                    return with_options(definition, dict(use.options)), namespace
    except PluginError:
        raise
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException as error:  # the author's code may raise anything
        raise refusal(use, error, project) from error
    raise PluginError(f"`{use.origin}` holds no pass `{use.name}`")


def read_verified(use: PassUse, project: Path) -> dict[Path, bytes]:
    """The bytes of the pass's files, by path; `PluginError` when they are not those that its digest was made of."""
    contents = read_contents(project, use.files)
    if use.files and digest_contents(contents, use.outside) != use.digest:
        names = ", ".join(sorted(use.files)[:6])
        message = f"the files of pass `{use.name}` changed during the build: one of {names}"
        raise PluginError(message, hint="build again")
    return {resolve_resource(name, project): data for name, data in contents.items() if data is not None}


def refusal(use: PassUse, error: BaseException, project: Path) -> PassError:
    """What a plugin's own code raised while it was loaded, told as the pass's at the plugin's line."""
    files = {resolve_resource(name, project) for name in use.files}
    found = find_line(error, files)
    where = Place(name_resource(found[0], project), found[1]) if found else None
    told = PassError(f"pass `{use.name}` cannot be made: {describe_error(error)}", where)
    told.pass_name = use.name
    return told


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
