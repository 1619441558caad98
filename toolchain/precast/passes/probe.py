"""The probe of one plugin module: a child process, so that a plugin author's code cannot hurt a build.

In: `python -m precast.passes.probe ORIGIN --project DIR --out FILE`. Out: the file, a `Probe` in JSON, always written
whole; what is wrong with the module stands in it as faults. Needs no compiler: where MLIR or Triton is not installed,
an inert stand-in lets the classes be read.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import subprocess
import sys
import traceback
import typing
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

from precast.codec import to_json
from precast.errors import PassError, PrecastError, nearest_hint, relative_text
from precast.passes.anchors import parse_anchor
from precast.passes.definitions import HookFile, NativePass, Override, Replace, plugin_name
from precast.passes.digest import digest_files, find_module_file, reach_files
from precast.passes.loading import find_definitions, load_module
from precast.passes.places import find_anchor, find_definition
from precast.passes.probes import Fault, OptionSchema, PluginRecord, Probe, SeenFile, sealed
from precast.passes.resources import name_resource, resolve_resource
from precast.target import GLUON_STAGES, STAGES

OPTION_TYPES = {bool: "bool", int: "int", float: "float", str: "str"}
LIBRARY_TIME_LIMIT_S = 60.0


def probe_module(origin: str, project: Path, owner: str = "") -> Probe:
    """Imports the module `origin` and describes every plugin in it. Nothing that it raises comes out."""
    _let_compilers_be_missing()
    files = module_files(origin, project)
    owner = owner or origin
    try:
        module = load_module(origin, project)
        definitions = find_definitions(module)
    except Exception as error:  # the author's code may raise anything
        faults: tuple[Fault, ...] = (_fault_of(error, files, project),)
        return Probe(origin, owner, "", (), faults, _see(files, project))
    plugins, problems = [], []
    seen = set(files)
    file = name_resource(Path(module.__file__ or origin), project)
    for definition in definitions:
        spot = find_definition(module, definition)
        try:
            record = replace(describe(definition, files, project), spot=spot)
            plugins.append(record)
            seen.update(record.files)
        except PrecastError as error:
            line, column = find_anchor(module, definition) if isinstance(error, PassError) else spot
            problems.append(Fault(error.message, file, line, column, error.hint))
        except Exception as error:  # an author's property may raise, a type's name may not be there
            problems.append(Fault(f"{type(error).__name__}: {error}", file, *spot))
    return Probe(origin, owner, file, tuple(plugins), tuple(problems), _see(tuple(sorted(seen)), project))


def module_files(origin: str, project: Path) -> tuple[str, ...]:
    """The module's file and what it imports inside its own folder or package, project-relative where they can be."""
    if origin.endswith(".py"):
        start = project / origin
        root = start.parent
    else:
        found = find_module_file(origin)
        if found is None:
            return ()
        start, top = found, find_module_file(origin.partition(".")[0])
        root = top.parent if top else found.parent
    return tuple(name_resource(path, project) for path in reach_files(start, root))


def _see(files: tuple[str, ...], project: Path) -> tuple[SeenFile, ...]:
    paths = [_path_of(file, project) for file in files if ":" not in file or _has_triton()]
    return tuple(SeenFile(path, digest_files(project, (path,))) for path in paths)


def _path_of(file: str, project: Path) -> str:
    """Where a file is on this machine; project-relative where it can be."""
    path = resolve_resource(file, project)
    return path.relative_to(project).as_posix() if path.is_relative_to(project) else str(path)


def describe(definition: Any, module_files: tuple[str, ...], project: Path) -> PluginRecord:
    """One plugin of the module; `PluginError` when it cannot be used."""
    if not isinstance(definition.name, str):
        raise PrecastError(f"a plugin's name is a text, not `{definition.name!r}`")
    name = plugin_name(definition)
    check_stage(name, definition.stage)
    library, own = _own_files(definition, project)
    if library and _has_triton():
        _check_native_name(definition, check_library(resolve_resource(library, project)))
    files = tuple(sorted({*module_files, *own}))
    anchor = definition.at
    stage = definition.stage
    parse_anchor(str(anchor))
    document = (definition.__doc__ or "") if isinstance(definition, type) else _summarise(definition)
    summary = document.strip().split("\n")[0]
    options = describe_options(definition) if isinstance(definition, type) else ()
    digest = digest_files(project, files)
    return PluginRecord(name, definition.kind, stage, str(anchor), summary, options, files, digest, library)


def check_stage(name: str, stage: object) -> None:
    known = {stage for stages in (*STAGES.values(), *GLUON_STAGES.values()) for stage in stages}
    if stage not in known:
        raise PrecastError(f"`{name}` stands in stage `{stage}`", hint=nearest_hint(str(stage), known, "stages"))


def _check_native_name(definition: Any, passes: tuple[str, ...]) -> None:
    native: Any = definition.by if isinstance(definition, Replace) else definition
    if native.name not in passes:
        file, held = Path(native.library.rpartition(":")[2]).name, ", ".join(passes) or "none"
        raise PrecastError(f"plugin library `{file}` holds no pass `{native.name}`: it holds {held}")


def _summarise(definition: Any) -> str:
    fields = {each.name: getattr(definition, each.name) for each in dataclasses.fields(definition)}
    shown = [f"{name} {value}" for name, value in fields.items() if name in ("op", "library", "file") and value]
    return f"{definition.kind}: {', '.join(shown)}" if shown else str(definition.kind)


def _own_files(definition: Any, project: Path) -> tuple[str, tuple[str, ...]]:
    """The native library that a definition needs, and the files beside its module that decide what it does."""
    if isinstance(definition, Replace):
        return _own_files(definition.by, project)
    if isinstance(definition, NativePass):
        if not _has_triton():  # nothing can be compiled here: the plan needs no more than the name
            return definition.library, (definition.library,)
        library = name_resource(resolve_resource(definition.library, project), project)
        return library, (library,)
    if isinstance(definition, Override):
        return "", (_existing(definition.file, project),)
    if isinstance(definition, HookFile):
        return "", tuple(_existing(file, project) for file in (definition.file, *definition.reads))
    return "", ()


def _existing(name: str, project: Path) -> str:
    if not (project / name).is_file():
        raise PrecastError(f"there is no file `{name}`")
    return name


def describe_options(definition: type) -> tuple[OptionSchema, ...]:
    """The options of a `Pass` class: its dataclass fields, whose types must be bool, int, float or str."""
    if not dataclasses.is_dataclass(definition):
        if "__annotations__" in vars(definition):
            raise PrecastError(f"pass `{definition.__name__}` has fields but is no @dataclass(frozen=True)")
        return ()
    hints = typing.get_type_hints(definition)
    return tuple(_describe_option(definition, each, hints[each.name]) for each in dataclasses.fields(definition))


def _describe_option(definition: type, field: dataclasses.Field[Any], kind: Any) -> OptionSchema:
    if kind not in OPTION_TYPES:
        raise PrecastError(
            f"option `{field.name}` of `{definition.__name__}` has type {kind}: an option is bool, int, float or str"
        )
    if field.default is dataclasses.MISSING:
        return OptionSchema(field.name, OPTION_TYPES[kind], None, required=True)
    return OptionSchema(field.name, OPTION_TYPES[kind], field.default)


def _has_triton() -> bool:
    return not isinstance(importlib.util.find_spec("triton"), _InertSpec)


def check_library(path: Path) -> tuple[str, ...]:
    """Opens a native library in a process of its own: its passes, or `PrecastError` in one sentence."""
    command = [sys.executable, "-m", "precast.engines.triton.plugin_info", str(path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(each for each in sys.path if each)}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIBRARY_TIME_LIMIT_S, env=environment)
    except subprocess.TimeoutExpired:
        raise PrecastError(f"plugin library `{path.name}` does not load within {LIBRARY_TIME_LIMIT_S:.0f} s") from None
    if done.returncode < 0:
        raise PrecastError(f"plugin library `{path.name}` ends the process that loads it (signal {-done.returncode})")
    if done.returncode:
        raise PrecastError(json.loads(done.stdout)["message"] if done.stdout else done.stderr.strip()[-300:])
    return tuple(json.loads(done.stdout)["passes"])


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
        if fullname.partition(".")[0] not in ("mlir", "triton"):
            return None
        return _InertSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return _Inert(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """There is nothing to execute."""


def _let_compilers_be_missing() -> None:
    for name in ("mlir", "triton"):
        if importlib.util.find_spec(name) is None:
            sys.meta_path.append(_MissingCompilers())
            return


def _fault_of(error: Exception, files: tuple[str, ...], project: Path) -> Fault:
    """The error with the innermost line of the module's own files."""
    if isinstance(error, SyntaxError) and error.filename:
        file = name_resource(Path(error.filename), project)
        return Fault(f"SyntaxError: {error.msg}", file, error.lineno or 0, max(error.offset or 1, 1))
    message = f"{type(error).__name__}: {error}" if not isinstance(error, PrecastError) else error.message
    message = relative_text(message, project)
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        file = name_resource(Path(frame.filename), project)
        if file in files:
            return Fault(message, file, frame.lineno or 0)
    return Fault(message, files[0] if files else "")


def main() -> None:
    # Bytecode files are keyed by whole seconds and would hide a quick edit: none is read, none written.
    sys.pycache_prefix, sys.dont_write_bytecode = os.devnull, True
    parser = argparse.ArgumentParser(prog="python -m precast.passes.probe")
    parser.add_argument("origin")
    parser.add_argument("--project", type=Path, required=True)
    parser.add_argument("--owner", default="")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    probe = probe_module(arguments.origin, arguments.project.resolve(), arguments.owner)
    partial = arguments.out.with_name(f".{arguments.out.name}.{os.getpid()}")
    partial.write_text(to_json(sealed(probe), indent=1) + "\n")
    partial.replace(arguments.out)


if __name__ == "__main__":
    main()
