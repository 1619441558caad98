"""Which plugins a project has, and which passes a unit gets.

In: `plugins/`, installed packages of the entry-point group, and the selections of pyproject.toml. Out: probes (made
by child processes, kept in `build/plugins/`) and the ordered `PassUse` values of each unit. Imports no plugin.
"""

from __future__ import annotations

import concurrent.futures
import importlib.metadata
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from precast.bounded import read_bounded
from precast.codec import CodecError, from_json
from precast.errors import PassError, Place, PluginError, nearest_hint, relative_text
from precast.passes.anchors import parse_anchor
from precast.passes.children import Finished, run_child
from precast.passes.digest import digest_files
from precast.passes.options import check_options
from precast.passes.probes import FORMAT, PluginRecord, Probe, SeenFile, sealed, stamp_of
from precast.passes.selection import PassUse
from precast.reads import digest_directory, refuse_bytes
from precast.scratch import Scratch
from precast.spec.model import Unit
from precast.spec.problems import Problems
from precast.spec.selection import PassSelection
from precast.store import telling_disk_faults

ENTRY_POINTS = "precast.passes"
FOLDER = "plugins"
GLOBS = (f"{FOLDER}/*.py", f"{FOLDER}/*/__init__.py")
PROBE = "precast.passes.probe"
PROBE_TIME_LIMIT_S = 120.0


@dataclass(frozen=True)
class Origin:
    """A plugin module: `name` is its project-relative file or dotted module name, `owner` how messages name it."""

    name: str
    owner: str

    @property
    def probe_file(self) -> str:
        return f"{self.name.removesuffix('.py').replace('/', '.')}.json"


@dataclass(frozen=True)
class SelectedUse:
    """A selection and the pass that it names. `where` says where the pass stands: the selection's `at`, else the
    plugin's definition."""

    selection: PassSelection
    use: PassUse
    where: Place | None


def find_origins(project: Path) -> tuple[Origin, ...]:
    """The plugin modules of a project: each `plugins/*.py` and `plugins/*/__init__.py`, then installed packages."""
    folder = project / FOLDER
    files = sorted(path for pattern in GLOBS for path in project.glob(pattern) if path.is_file())
    for path in files:
        refuse_bytes(str(path))
    found = [
        path.relative_to(project).as_posix() for path in files if not path.name.startswith("_") or path.parent != folder
    ]
    origins = [Origin(name, name) for name in found]
    for entry in sorted(importlib.metadata.entry_points(group=ENTRY_POINTS), key=lambda each: each.value):
        package = entry.dist.name if entry.dist else entry.name
        origins.append(Origin(entry.value, f"package {package}"))
    return tuple(origins)


def list_probes(project: Path, build: Path) -> tuple[tuple[Origin, Probe], ...]:
    """The probe of every plugin module of the project, from `build`/plugins where nothing that it saw has changed.

    Others are made by child processes, as many at once as there are cores.
    """
    origins = find_origins(project)
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        probes = pool.map(lambda origin: read_probe(origin, project, build), origins)
        return tuple(zip(origins, probes, strict=True))


def read_probes(project: Path, build: Path) -> tuple[Probe, ...]:
    """The probes of a project whose plugins are all good.

    `PluginError` when two plugins share a name, or a module has a fault.
    """
    probes = tuple(probe for _, probe in list_probes(project, build))
    problems = Problems()
    problems.add(probe_errors(probes, project))
    problems.raise_any()
    return probes


def read_probe(origin: Origin, project: Path, build: Path) -> Probe:
    """One module's probe, made anew unless it is there, fresh and without fault."""
    file = build / "plugins" / origin.probe_file
    kept = _read_kept(file)
    if kept and not kept.faults and kept.owner == origin.owner and is_fresh(kept, project):
        return kept
    return run_probe(origin, project, file)


def _read_kept(file: Path) -> Probe | None:
    try:
        probe = from_json(read_bounded(file), Probe)
    except Exception:  # absent, or written by another version: made anew
        return None
    return probe if probe.format == FORMAT and probe == sealed(probe) else None


def is_fresh(probe: Probe, project: Path) -> bool:
    """Whether every file and folder that the probe saw is as it saw it."""
    folders = all(digest_directory(project / each.path) == each.digest for each in probe.folders)
    absent = not any(os.path.lexists(project / each) for each in probe.absent)
    return folders and absent and not any(find_changed(probe, project))


def find_changed(probe: Probe, project: Path) -> Iterator[str]:
    """The files that are not as the probe saw them."""
    return (seen.path for seen in probe.files if not _is_same(seen, project))


def _is_same(seen: SeenFile, project: Path) -> bool:
    known = seen.stamp and stamp_of(project / seen.path) == seen.stamp
    return bool(known) or digest_files(project, (seen.path,)) == seen.digest


def run_probe(origin: Origin, project: Path, file: Path) -> Probe:
    """Runs the probe's child process; `PluginError` when that itself dies."""
    with telling_disk_faults(file.parent):
        file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    done = run_child(PROBE, [*_probe_words(origin.name, project, file), "--owner", origin.owner], PROBE_TIME_LIMIT_S)
    if not file.is_file():
        raise _lost(origin.owner, done, project)
    try:
        return from_json(read_bounded(file), Probe)
    except CodecError:
        raise _garbled(origin.owner) from None


def _probe_words(origin: str, project: Path, out: Path) -> list[str]:
    return [origin, "--project", str(project.resolve()), "--out", str(out.resolve())]


def _lost(owner: str, done: Finished, project: Path) -> PluginError:
    """A child that ended, or had to be ended, before it answered."""
    words = relative_text(done.words, project.resolve()).splitlines()
    printed = f"it printed: {words[-1]}" if words else None
    if done.code is None:
        message = f"plugin module `{owner}` does not load within {PROBE_TIME_LIMIT_S:.0f} s"
    else:
        message = f"plugin module `{owner}` ends the process that loads it: {done.ending}"
    return PluginError(message, hint=printed)


def _garbled(owner: str) -> PluginError:
    """A child whose answer says nothing."""
    message = f"plugin module `{owner}` spoils what the process that loads it writes"
    return PluginError(message, hint="it may replace a function of Python's library, such as `json.dumps`")


def probe_errors(probes: Iterable[Probe], project: Path) -> Iterator[PluginError]:
    """An error for each fault, and for each name that two plugins share, which names both owners."""
    owners: dict[str, tuple[Probe, PluginRecord]] = {}
    for probe in probes:
        for fault in probe.faults:
            where = Place(_show(fault.file, project), fault.line, fault.column) if fault.line else None
            yield PluginError(f"plugin module `{probe.owner}`: {fault.message}", where, fault.hint)
        for plugin in probe.plugins:
            first, other = owners.setdefault(plugin.name, (probe, plugin))
            if other is not plugin:
                message = f"two plugins are named `{plugin.name}`: one in {first.owner}, one in {probe.owner}"
                there = place_of(first, other, project)
                hint = "rename one of them, or uninstall its package"
                yield PluginError(message, place_of(probe, plugin, project), f"the other: {there}; {hint}")


def place_of(probe: Probe, plugin: PluginRecord, project: Path) -> Place | None:
    """Where a plugin is defined; None when that was not found."""
    line, column = plugin.spot
    return Place(_show(probe.file, project), line, column) if line else None


def _show(file: str, project: Path) -> str:
    """A probe's file as the user reaches it; one of an installed package by its package."""
    return file if ":" in file else str(project / file)


def find_uses(
    selections: Iterable[PassSelection], probes: Sequence[Probe], project: Path, problems: Problems
) -> tuple[SelectedUse, ...]:
    """Each selection with the pass that it names; what is wrong with one goes to `problems`, at its place."""
    known = {plugin.name: (probe, plugin) for probe in probes for plugin in probe.plugins}
    found = []
    for selection in selections:
        with problems.collect():
            if selection.use not in known:
                hint = nearest_hint(selection.use, known, "plugins")
                raise PassError(f"there is no pass `{selection.use}`", where=selection.where, hint=hint)
            probe, plugin = known[selection.use]
            where = selection.places.at or place_of(probe, plugin, project)
            found.append(SelectedUse(selection, make_use(selection, probe, plugin), where))
    check_instances(found, probes, project, problems)
    return tuple(found)


def select_passes(selected: Iterable[SelectedUse], unit: Unit) -> tuple[PassUse, ...]:
    """The passes of `unit`, in the order of the selections. `PassError` when one cannot be the unit's."""
    uses: list[PassUse] = []
    for each in selected:
        if each.selection.enabled and matches(each.selection, unit):
            _check_stage(each.use, each.selection, unit, uses)
            uses.append(each.use)
    return tuple(uses)


def matches(selection: PassSelection, unit: Unit) -> bool:
    """Whether the selection's globs take in the unit."""
    variant = str(unit.variant).partition(":")[2]
    return (
        any(fnmatchcase(unit.kernel, glob) for glob in selection.kernels)
        and any(fnmatchcase(variant, glob) for glob in selection.variants)
        and any(unit.target.matches(glob) for glob in selection.targets)
    )


def warn_of_costs(unit: Unit, uses: Iterable[PassUse]) -> Iterator[str]:
    """A sentence for each pass that makes compiling `unit` much slower because of where it stands."""
    for use in uses:
        if use.kind == "python" and use.stage == "llir" and use.anchor.kind != "start" and unit.target.backend != "cpu":
            yield (
                f"pass `{use.name}` is Python and stands inside llir, at {use.anchor}: "
                "the way there and back takes up to seconds for each unit; `start` is cheap"
            )


def _check_stage(use: PassUse, selection: PassSelection, unit: Unit, before: list[PassUse]) -> None:
    if use.stage not in unit.stages:
        raise PassError(
            f"pass `{use.name}` stands in stage `{use.stage}`, which `{unit.kernel}` does not have on {unit.target}",
            where=selection.where,
            hint=f"its stages are {', '.join(unit.stages)}; narrow `kernels` or `targets`",
        )
    if any(each.name == use.name for each in before):
        raise PassError(f"pass `{use.name}` is selected twice for `{unit.kernel}`", where=selection.where)


def make_use(selection: PassSelection, probe: Probe, plugin: PluginRecord) -> PassUse:
    """The pass as selected, with its options checked and its defaults filled in."""
    options = check_options(plugin, dict(selection.options), selection.places)
    try:
        anchor = parse_anchor(selection.at or plugin.anchor)
    except PassError as error:
        raise PassError(error.message, selection.places.at, error.hint) from None
    return PassUse(
        plugin.name,
        plugin.kind,
        plugin.stage,
        anchor,
        options,
        probe.origin,
        plugin.digest,
        plugin.files,
        plugin.library,
        plugin.outside,
    )


def check_instances(
    selected: Iterable[SelectedUse], probes: Sequence[Probe], project: Path, problems: Problems
) -> None:
    """Has the author's own checks look at the options of passes that have such checks, in a child process.

    What they refuse goes to `problems`, at the option's place where one is to blame.
    """
    checking = {plugin.name: probe for probe in probes for plugin in probe.plugins if plugin.checks_options}
    groups: dict[str, list[SelectedUse]] = {}
    for each in selected:
        if each.use.name in checking:
            groups.setdefault(each.use.origin, []).append(each)
    for origin, group in groups.items():
        with problems.collect():
            reasons = refused_options(origin, checking[group[0].use.name].owner, [each.use for each in group], project)
            problems.add(
                PassError(f"pass `{each.use.name}` refuses its options: {reason}", _place_of_option(each, reason))
                for each, reason in zip(group, reasons, strict=True)
                if reason
            )


def refused_options(origin: str, owner: str, uses: Sequence[PassUse], project: Path) -> list[str]:
    """Why the author's own code refuses to make each of `uses`; "" where it does not."""
    asked = [{"name": use.name, "options": dict(use.options)} for use in uses]
    with Scratch() as folder:
        question, answer = folder / "asked.json", folder / "answer.json"
        question.write_text(json.dumps(asked), encoding="utf-8")
        words = [*_probe_words(origin, project, answer), "--options", str(question)]
        done = run_child(PROBE, words, PROBE_TIME_LIMIT_S)
        if not answer.is_file():
            raise _lost(owner, done, project)
        try:
            reasons = [str(each) for each in json.loads(read_bounded(answer))]
        except (ValueError, TypeError):
            reasons = []
        if len(reasons) != len(uses):
            raise _garbled(owner)
        return reasons


def _place_of_option(each: SelectedUse, reason: str) -> Place | None:
    """The value of the option that `reason` speaks of, or of the only one that was given; else the selection."""
    given = each.selection.places.options
    named = [name for name in given if re.search(rf"\b{re.escape(name)}\b", reason)] or list(given)
    return given[named[0]][1] if len(named) == 1 else each.selection.where
