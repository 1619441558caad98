"""One plugin of a loaded module, described: its options, its files, what is wrong with it.

In: a definition. Out: a `PluginRecord`, or a `PrecastError` in one sentence. Native libraries are opened in a process
of their own.
"""

from __future__ import annotations

import dataclasses
import json
import tempfile
import typing
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from precast.errors import PrecastError, nearest_hint
from precast.passes.anchors import parse_anchor
from precast.passes.children import Finished, run_child
from precast.passes.definitions import HookFile, NativePass, Override, Replace, plugin_name
from precast.passes.digest import digest_files, reach_files
from precast.passes.probes import OptionSchema, PluginRecord
from precast.passes.resources import find_resources, name_resource, resolve_resource
from precast.passes.standins import has_triton
from precast.target import GLUON_STAGES, STAGES

OPTION_TYPES = {bool: "bool", int: "int", float: "float", str: "str"}
LIBRARY_TIME_LIMIT_S = 60.0


def describe(definition: Any, module_files: Iterable[str], outside: str, project: Path) -> PluginRecord:
    """One plugin of the module; `PluginError` when it cannot be used."""
    if not isinstance(definition.name, str):
        raise PrecastError(f"a plugin's name is a text, not `{definition.name!r}`")
    name = plugin_name(definition)
    check_stage(name, definition.stage)
    library, own = _own_files(definition, project)
    files = tuple(sorted({*module_files, *own, *_declared(definition, project)}))
    parse_anchor(str(definition.at))
    document = (definition.__doc__ or "") if isinstance(definition, type) else _summarise(definition)
    return PluginRecord(
        name,
        definition.kind,
        definition.stage,
        str(definition.at),
        document.strip().split("\n")[0],
        describe_options(definition) if isinstance(definition, type) else (),
        files,
        digest_files(project, files, outside),
        library,
        outside=outside,
        checks_options=isinstance(definition, type) and _has_checks(definition),
    )


def check_stage(name: str, stage: object) -> None:
    known = {stage for stages in (*STAGES.values(), *GLUON_STAGES.values()) for stage in stages}
    if stage not in known:
        raise PrecastError(f"`{name}` stands in stage `{stage}`", hint=nearest_hint(str(stage), known, "stages"))


def _has_checks(definition: type) -> bool:
    """Whether making an instance runs code of the author's, which may refuse an option."""
    own = [each for each in definition.__mro__ if each.__module__ not in ("builtins", "precast.passes.definitions")]
    generated = dataclasses.is_dataclass(definition)
    return any(
        name in vars(each) and not (name == "__init__" and generated)
        for each in own
        for name in ("__post_init__", "__init__", "__new__")
    )


def _summarise(definition: Any) -> str:
    fields = vars(definition)
    shown = [f"{name} {value}" for name, value in fields.items() if name in ("op", "library", "file") and value]
    return f"{definition.kind}: {', '.join(shown)}" if shown else str(definition.kind)


def _declared(definition: Any, project: Path) -> tuple[str, ...]:
    """The files of `reads`."""
    reads = definition.reads
    if isinstance(reads, str) or not all(isinstance(each, str) for each in reads):
        raise PrecastError(f"`reads` is a tuple of paths, not `{reads!r}`", hint='write reads = ("table.json",)')
    more = _declared(definition.by, project) if isinstance(definition, Replace) else ()
    return (*more, *(name for pattern in reads for name in find_resources(pattern, project)))


def _own_files(definition: Any, project: Path) -> tuple[str, tuple[str, ...]]:
    """The native library that a definition needs, and the files beside its module that decide what it does."""
    if isinstance(definition, Replace):
        return _own_files(definition.by, project)
    if isinstance(definition, NativePass):
        return _library_files(definition.library, definition.name, project)
    if isinstance(definition, Override):
        return "", (_existing(definition.file, project),)
    if isinstance(definition, HookFile):
        library, files = _library_files(definition.library, "", project) if definition.library else ("", ())
        hook = project / _existing(definition.file, project)
        own = (name_resource(path, project) for path in reach_files(hook, hook.parent))
        return library, (*own, *files)
    return "", ()


def _library_files(text: str, pass_name: str, project: Path) -> tuple[str, tuple[str, ...]]:
    """A native library's name, and it with the libraries beside the system's that are loaded with it."""
    if not has_triton():  # nothing can be compiled here: the plan needs no more than the name
        return text, (text,)
    path = resolve_resource(text, project)
    found = check_library(path)
    if pass_name and pass_name not in found.passes:
        hint = f"it holds {', '.join(found.passes) or 'none'}"
        raise PrecastError(f"plugin library `{path.name}` holds no pass `{pass_name}`: {hint}")
    library = name_resource(path, project)
    return library, (library, *(name_resource(Path(each), project) for each in found.needs))


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
    fields = [each for each in dataclasses.fields(definition) if each.init]
    return tuple(_describe_option(definition, each, hints[each.name]) for each in fields)


def _describe_option(definition: type, field: dataclasses.Field[Any], kind: Any) -> OptionSchema:
    if kind not in OPTION_TYPES:
        raise PrecastError(
            f"option `{field.name}` of `{definition.__name__}` has type {kind}: an option is bool, int, float or str"
        )
    default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
    if default is dataclasses.MISSING:
        return OptionSchema(field.name, OPTION_TYPES[kind], None, required=True)
    if type(default) is not kind and not (kind is float and type(default) is int):
        raise PrecastError(f"option `{field.name}` of `{definition.__name__}` is {kind.__name__}, not `{default!r}`")
    return OptionSchema(field.name, OPTION_TYPES[kind], kind(default))


@dataclasses.dataclass(frozen=True)
class LibraryContents:
    """What opening a native library showed: its passes, and the other libraries that came with it."""

    passes: tuple[str, ...]
    needs: tuple[str, ...]


def check_library(path: Path) -> LibraryContents:
    """Opens a native library in a process of its own; `PrecastError` in one sentence when that cannot be done."""
    with tempfile.TemporaryDirectory(prefix="precast-library-") as folder:
        answer = Path(folder) / "answer.json"
        module = "precast.engines.triton.plugin_info"
        done = run_child(module, [str(path), str(answer)], LIBRARY_TIME_LIMIT_S)
        told = json.loads(answer.read_bytes()) if answer.is_file() else {}
    if "message" in told:
        raise PrecastError(told["message"], hint=_printed(done))
    if "passes" not in told:
        what = f"ends the process that loads it ({done.ending})"
        if done.code is None:
            what = f"does not load within {LIBRARY_TIME_LIMIT_S:.0f} s"
        raise PrecastError(f"plugin library `{path.name}` {what}", hint=_printed(done))
    return LibraryContents(tuple(told["passes"]), tuple(told["needs"]))


def _printed(done: Finished) -> str | None:
    return f"it printed: {done.words.splitlines()[-1]}" if done.words else None
