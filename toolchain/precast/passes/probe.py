"""The probe of one plugin module: a child process, so that a plugin author's code cannot hurt a build.

In: `python -m precast.passes.probe ORIGIN --project DIR --out FILE`. Out: the file, a `Probe` in JSON, always written
whole; what is wrong with the module stands in it as faults. With `--options FILE` it makes instances instead, and
says which options the author's own checks refuse. Needs no compiler: where MLIR or Triton is not installed, an inert
stand-in lets the classes be read.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from precast.codec import to_json
from precast.digest import SETTLING_NS, digest_pairs
from precast.errors import PassError, PrecastError, relative_text
from precast.passes.definitions import plugin_name
from precast.passes.describing import describe
from precast.passes.digest import digest_files, find_module_file, reach_files
from precast.passes.faults import describe_error, find_line
from precast.passes.loading import find_definitions, with_options
from precast.passes.namespace import Namespace
from precast.passes.outside import find_outside
from precast.passes.places import find_anchor, find_definition
from precast.passes.probes import Fault, PluginRecord, Probe, SeenFile, sealed, stamp_of
from precast.passes.resources import glob_folders, name_resource, resolve_resource
from precast.passes.standins import has_triton, let_compilers_be_missing
from precast.passes.watching import is_installed_code
from precast.reads import ABSENT, Read, ReadKind, digest_directory
from precast.store import write_file


def probe_module(origin: str, project: Path, owner: str = "") -> Probe:
    """Imports the module `origin` and describes every plugin in it. Nothing that it raises comes out."""
    let_compilers_be_missing()
    owner, files = owner or origin, module_files(origin, project)
    namespace = Namespace(origin, project)
    try:
        module = namespace.load()
        with namespace.inside():
            definitions = find_definitions(module)
    except BaseException as error:  # the author's code may raise anything
        seen = _Seen.of(namespace, files, project)
        return Probe(origin, owner, "", (), (_fault_of(error, seen.own, project),), seen.all(project, ()))
    seen = _Seen.of(namespace, files, project)
    plugins, problems, folders = [], [], set(seen.folders)
    file = name_resource(Path(module.__file__ or origin), project)
    for definition in definitions:
        spot = find_definition(module, definition)
        try:
            with namespace.inside():
                plugins.append(replace(describe(definition, seen.own, seen.outside_digest, project), spot=spot))
                folders |= {each for pattern in definition.reads for each in glob_folders(pattern, project)}
        except PrecastError as error:
            line, column = find_anchor(module, definition) if isinstance(error, PassError) else spot
            problems.append(Fault(error.message, file, line, column, error.hint))
        except BaseException as error:  # an author's property may raise, a type's name may not be there
            problems.append(Fault(describe_error(error), file, *spot))
    listed = tuple(SeenFile(_path_of(str(each), project), digest_directory(each)) for each in sorted(folders))
    return Probe(origin, owner, file, tuple(plugins), tuple(problems), seen.all(project, plugins), listed, seen.absent)


@dataclass(frozen=True)
class _Seen:
    """What loading a module rested on: its own files and those it read, named; folders; other packages."""

    own: tuple[str, ...]
    folders: tuple[Path, ...]
    outside_digest: str
    outside_files: tuple[Path, ...]
    absent: tuple[str, ...]  # where modules were looked for, or what was asked about, and not found

    @staticmethod
    def of(namespace: Namespace, files: Iterable[str], project: Path) -> _Seen:
        named = {*files, *(name_resource(Path(each), project) for each in namespace.files)}
        code = [path for name in named if (path := _resolve(name, project)).suffix == ".py"]
        outside = find_outside(code, namespace.own)
        reads = namespace.watch.reads
        listed = tuple(project / each.name for each in reads if _is_folder(each))
        opened = [project / each.name for each in reads if each.kind is ReadKind.DATA]
        named |= {name_resource(path, project) for path in opened if not is_installed_code(path)}
        digests = [(name_resource(each, project), digest_directory(each)) for each in listed]
        both = [each for each in (outside.digest, digest_pairs(digests) if digests else "") if each]
        absent = tuple(each.name for each in reads if each.kind is ReadKind.PLACE and each.digest == ABSENT)
        return _Seen(tuple(sorted(named)), listed, "+".join(both), outside.files, absent)

    def all(self, project: Path, plugins: Iterable[PluginRecord]) -> tuple[SeenFile, ...]:
        """Every file, by its path on this machine, with its digest."""
        names = sorted({*self.own, *(file for each in plugins for file in each.files)})
        paths = [_path_of(name, project) for name in names if ":" not in name or has_triton()]
        own = [SeenFile(path, digest_files(project, (path,))) for path in dict.fromkeys(paths)]
        return (*own, *(_see_installed(path) for path in self.outside_files if str(path) not in paths))


def _is_folder(read: Read) -> bool:
    """Whether a folder was listed, or asked about and is there."""
    return read.kind is ReadKind.DIRECTORY or (read.kind is ReadKind.PLACE and read.digest != ABSENT)


def _see_installed(path: Path) -> SeenFile:
    """A file of another package. What the file system says of it is enough to believe that it is as it was."""
    settled = time.time_ns() - path.stat().st_mtime_ns > SETTLING_NS
    return SeenFile(str(path), digest_files(path.parent, (str(path),)), stamp_of(path) if settled else "")


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


def _resolve(name: str, project: Path) -> Path:
    return resolve_resource(name, project)


def _path_of(file: str, project: Path) -> str:
    """Where a file is on this machine; project-relative where it can be."""
    path = resolve_resource(file, project)
    return path.relative_to(project).as_posix() if path.is_relative_to(project) else str(path)


def _fault_of(error: BaseException, files: tuple[str, ...], project: Path) -> Fault:
    """The error with the innermost line of the module's own files."""
    if isinstance(error, SyntaxError) and error.filename:
        file = name_resource(Path(error.filename), project)
        return Fault(describe_error(error), file, error.lineno or 0, max(error.offset or 1, 1))
    message = error.message if isinstance(error, PrecastError) else describe_error(error)
    message = relative_text(message, project)
    found = find_line(error, {_resolve(file, project) for file in files})
    if found:
        return Fault(message, name_resource(found[0], project), found[1])
    return Fault(message, files[0] if files else "")


def refused_options(origin: str, project: Path, asked: Iterable[dict[str, Any]]) -> list[str]:
    """For each `{"name": …, "options": …}` why the author's code refuses to make that pass; "" where it does not."""
    let_compilers_be_missing()
    namespace = Namespace(origin, project)
    module = namespace.load()
    found = []
    with namespace.inside():
        known = {plugin_name(each): each for each in find_definitions(module)}
        for each in asked:
            try:
                with_options(known[each["name"]], each["options"])
                found.append("")
            except BaseException as error:  # the author's code may raise anything
                found.append(describe_error(error))
    return found


def main() -> None:
    # Bytecode files are keyed by whole seconds and would hide a quick edit: none is read, none written.
    sys.pycache_prefix, sys.dont_write_bytecode = os.devnull, True
    parser = argparse.ArgumentParser(prog="python -m precast.passes.probe")
    parser.add_argument("origin")
    parser.add_argument("--project", type=Path, required=True)
    parser.add_argument("--owner", default="")
    parser.add_argument("--options", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    project = arguments.project.resolve()
    if arguments.options:
        text = json.dumps(refused_options(arguments.origin, project, json.loads(arguments.options.read_bytes())))
    else:
        text = to_json(sealed(probe_module(arguments.origin, project, arguments.owner)), indent=1)
    write_file(arguments.out, f"{text}\n".encode())


if __name__ == "__main__":
    main()
