"""Specs × targets × passes to a plan: units, outputs, keys.

In: a project. Out: a frozen `Plan`. Imports no compiler and no build tool, runs no code of the user's: kernels are
read with `ast`, plugins are described by probes that child processes write.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from operator import attrgetter
from pathlib import Path

from precast import collector
from precast.bounded import read_bounded
from precast.digest import FileDigests
from precast.errors import PlanError, PrecastError, SpecError, nearest_hint
from precast.identity import Identities, Tools, identity_memory, merge_tools
from precast.identity.tools import ENGINE_SETTING, MAKERS, STANDIN
from precast.layout import BUILD
from precast.passes.registry import SelectedUse, find_uses, read_probes, select_passes, warn_of_costs
from precast.passes.selection import PassUse
from precast.plan.evidence import (
    EvidenceReader,
    KernelSelection,
    check_rows,
    describe_problems,
    find_rules,
    keep_chosen,
)
from precast.plan.idle import find_idle_globs, find_idle_passes, find_idle_settings, find_idle_targets
from precast.plan.kernel_probes import read_imported, reads_of
from precast.plan.key import UnitInputs, UnitSurroundings
from precast.plan.model import Plan, PlannedUnit
from precast.plan.parts import FailedPart, Parts
from precast.project import Project, format_texts
from precast.reads import (
    FILES,
    NO_PATHS,
    Looks,
    Read,
    ReadKind,
    digest_found,
    digest_place,
    find_files,
    refuse_bytes,
    relative_path,
)
from precast.shell import find_ignored
from precast.spec.closure import INSTALLED, Closure, SourceFile
from precast.spec.expand import expand_kernel
from precast.spec.imported import ImportedKernel, ProbeRequest
from precast.spec.kernel import Surroundings, kernel_tables, read_kernel
from precast.spec.model import KernelSpec, Source, Spelled, Unit
from precast.spec.naming import modules_in
from precast.spec.problems import Problems
from precast.spec.sources import SourceReader
from precast.spec.toml import read_document
from precast.store import reason_of
from precast.target import Target
from precast.tuning.describing import digest_code

NOTHING_NAMED: frozenset[str] = frozenset()


def plan_again(project: Project, files: Sequence[str]) -> Plan:
    """The plan of the kernels of some spec files, named relative to the project. All of it was planned before: what is
    checked of all kernels together was checked then. Errors as of `plan_project`."""
    with collector.resting():
        return _Planner(project, keep_going=False, candidates=False, again=True).plan_again(files)


def plan_project(
    project: Project,
    *,
    kernels: Sequence[str] = ("*",),
    targets: Sequence[str] = ("*",),
    keep_going: bool = False,
    candidates: bool = False,
    without: Collection[str] = (),
) -> Plan:
    """The plan of the kernels and targets that the globs select; of `candidates`, with every config of tuned kernels,
    but for the units `without`.

    `SpecError` or `PlanError` when something is wrong, `PlanFailed` with all of it when several things are. With
    `keep_going`, what is wrong with one kernel or unit is left to `Plan.failed`.
    """
    with collector.resting():
        planner = _Planner(project, keep_going, candidates, without=without)
        return planner.plan(kernels, tuple(map(project.target_glob, targets)))


class _Planner:
    """One planning run: what it reads is read once."""

    def __init__(
        self,
        project: Project,
        keep_going: bool,
        candidates: bool,
        again: bool = False,
        without: Collection[str] = (),
    ) -> None:
        self._project = project
        self._candidates = candidates
        self._without = without
        self._problems = Problems()
        self._evidence = EvidenceReader(project.folder, self._problems)
        self._parts = Parts(self._problems, keep_going)
        self._digests = FileDigests(project.folder / BUILD / "digests.json", shared=again)
        self._installed = installed_folders(project.folder)
        self._sources = SourceReader(project.folder, project.search_path, self._installed)
        self._closure = Closure(project.folder, project.search_path, self._installed, self._digests)
        self._identities = Identities(FileDigests(identity_memory(project.folder / BUILD), shared=True))
        self._identities.look_around()
        self._reads = [*map(self._from_here, project.reads), *map(_read_place, filter(None, sys.path))]
        self._known_tools: dict[tuple[Target, bool], Tools] = {}
        self._around: dict[object, UnitSurroundings] = {}
        self._settings = replace(project.settings, ptxas="")
        self._passes: tuple[SelectedUse, ...] = ()
        self._idle: tuple[str, ...] = ()
        self._reached: dict[tuple[Source, frozenset[str]], tuple[SourceFile, ...]] = {}
        self._files: dict[str, tuple[str, ...]] = {}

    def plan(self, kernel_globs: Sequence[str], target_globs: Sequence[str]) -> Plan:
        specs = self._read_specs()
        targets = [each for each in self._project.targets if any(map(each.matches, target_globs))]
        self._check_globs(specs, kernel_globs, targets, target_globs)
        self._evidence.read()
        self._evidence.check_kernels([*(each.name for each in specs), *(each.kernel for each in self._parts.failed)])
        specs = tuple(each for each in specs if is_wanted(each.name, kernel_globs))
        if self._candidates:
            specs = tuple(each for each in specs if each.tuning.problems and each.tuning.axes)
        units, selection, problems = self._choose(specs, {spec.name: self._expand(spec, targets) for spec in specs})
        self._check_names(specs, units)
        self._problems.raise_any()
        planned = tuple(self._plan_units(units))
        self._problems.raise_any()
        if not planned and not self._parts.failed:
            names = ", ".join(map(str, targets))
            raise PlanError(f"nothing to build: no kernel is for {names}", hint="a spec's `only` says for which")
        warnings = self._warnings(specs, planned, (kernel_globs, target_globs))
        failed = (each for each in self._parts.failed if not each.kernel or is_wanted(each.kernel, kernel_globs))
        chosen = {each.kernel for each in selection}
        alone = (each.name for each in specs if each.name not in chosen and not self._evidence.files(each.name))
        return self._finish(specs, planned, targets, warnings, failed, selection, problems, alone)

    def plan_again(self, files: Sequence[str]) -> Plan:
        targets = self._project.targets
        specs: dict[str, KernelSpec] = {}
        for file in files:
            self._read_file(self._project.folder / file, specs)
        self._problems.raise_any()
        expanded = {name: self._expand(spec, targets) for name, spec in specs.items()}
        units = [unit for each in expanded.values() for unit in each]
        self._check_names(tuple(specs.values()), units)
        self._problems.raise_any()
        planned = tuple(self._plan_units(units))
        self._problems.raise_any()
        alone = (name for name, spec in specs.items() if not any(find_rules(spec, expanded[name], {})))
        return self._finish(tuple(specs.values()), planned, targets, alone=alone)

    def _finish(
        self,
        specs: tuple[KernelSpec, ...],
        planned: tuple[PlannedUnit, ...],
        targets: Sequence[Target],
        warnings: Iterable[str] = (),
        failed: Iterable[FailedPart] = (),
        selection: tuple[KernelSelection, ...] = (),
        problems: str = "",
        alone: Iterable[str] = (),
    ) -> Plan:
        makers = self._identities.own(*MAKERS)
        self._digests.save()
        self._identities.digests.save()
        tools = merge_tools({str(target): self._tools(target, ()) for target in targets})
        places = {each.use.name: each.where for each in self._passes}
        return Plan(
            self._project, specs, planned, tools, makers, tuple(warnings), tuple(failed), places, self._looks(),
            selection, problems, self._files, self._shared_files(), frozenset(alone),
        )  # fmt: skip

    def _choose(
        self, specs: Sequence[KernelSpec], expanded: Mapping[str, tuple[Unit, ...]]
    ) -> tuple[list[Unit], tuple[KernelSelection, ...], str]:
        """The units that evidence leaves, with their rules; for candidates all, with what there is to measure."""
        found = {
            spec.name: self._evidence.select(spec, expanded[spec.name], partial(self._digest_code, spec.source))
            for spec in specs
        }
        if self._candidates:
            every = [unit for units in expanded.values() for unit in units]
            built = [unit for unit in every if str(unit) not in self._without]
            sources = {spec.name: self._digest_code(spec.source) for spec in specs}
            with self._problems.collect():
                return built, (), describe_problems(specs, every, sources, found)
            return built, (), ""
        units = [unit for name, own in expanded.items() for unit in keep_chosen(own, found[name])]
        selection = []
        for spec in specs:
            rules = tuple(find_rules(spec, expanded[spec.name], found[spec.name]))
            with self._problems.collect():
                check_rows(spec, rules)
            if rules:
                selection.append(KernelSelection(spec.name, rules, self._evidence.files(spec.name)))
        return units, tuple(selection), ""

    def _digest_code(self, source: Source) -> str:
        """What a kernel's source says, and the files of the project that it imports."""
        names = [file.name for file in self._files_of(source, frozenset()) if not file.name.startswith(INSTALLED)]
        return digest_code(read_bounded(self._project.folder / name) for name in names)

    def _from_here(self, read: Read) -> Read:
        """A read of a file that is named from the project's folder."""
        if read.kind in NO_PATHS:
            return read
        return replace(read, name=str(self._project.folder / read.name))

    def _shared_files(self) -> frozenset[str]:
        reads = (*map(self._from_here, self._project.reads), *self._evidence.reads)
        return frozenset([*self._identities.looks.files, *(each.name for each in reads if each.kind in FILES)])

    def _looks(self) -> Looks:
        tools = self._identities.looks
        reads = (*self._reads, *self._evidence.reads, *self._sources.reads, *self._closure.reads, *tools.reads)
        return Looks({**self._digests.looked, **tools.files}, reads)

    def _read_specs(self) -> tuple[KernelSpec, ...]:
        """Every kernel of every spec file, in the order of the files' names."""
        folder = self._project.folder
        globs = self._project.kernels
        found = {glob: find_files(folder, glob) for glob in globs}
        self._reads += (Read(ReadKind.GLOB, glob, digest_found(folder, files)) for glob, files in found.items())
        files = sorted({file for each in found.values() for file in each}, key=attrgetter("parts"))
        self._idle = (*find_idle_settings(self._project), *find_idle_globs(self._project, found))
        if not files:
            message = f"no spec file matches {format_texts(self._project.kernels)}"
            place = self._project.places.get(("kernels", globs[0]))
            self._problems.add([PlanError(message, place, "a spec is a TOML file: kernels/NAME.toml")])
        specs: dict[str, KernelSpec] = {}
        for file in files:
            refuse_bytes(str(file))
            self._read_file(file, specs)
        return tuple(specs.values())

    def _read_file(self, file: Path, specs: dict[str, KernelSpec]) -> None:
        project = self._project
        around = Surroundings(self._sources, project.targets, project.defaults, self._import, project.max_units)
        with self._parts.part(relative_path(file, project.folder)) as problems:
            document = read_document(file, str(file))
            self._reads.append(Read(ReadKind.DATA, str(file), document.digest))
            for name, node in kernel_tables(document, problems):
                with self._parts.kernel(name), self._sources.noting() as visited:
                    spec = read_kernel(name, node, file.parent, around)
                    self._check_owner(specs.setdefault(spec.name, spec), spec)
                    self._files[name] = (str(file), *map(str, visited))

    def _import(self, source: Source, targets: Sequence[Target]) -> Mapping[str, ImportedKernel]:
        """What a kernel's module says when it is imported for each target."""
        project, settings = self._project, self._project.settings
        folder = project.folder.resolve()
        tools = {pair for target in targets for pair in self._tools(target, ())}
        request = ProbeRequest(
            source=source,
            targets=tuple(map(str, targets)),
            settings=settings,
            project=str(folder),
            python_path=tuple(os.path.normpath(folder / each) for each in project.python_path),
            sources=tuple((file.name, file.digest) for file in self._files_of(source, frozenset())),
            tools=tuple(sorted(pair for pair in tools if pair[0] in ("precast", "triton"))),
        )
        answer = read_imported(request, project.folder, project.folder / BUILD)
        reads = [*map(self._from_here, reads_of(answer))]
        self._reads += reads
        self._sources.visited.update(Path(each.name) for each in reads if each.kind in FILES)
        return {each.target: each.kernel for each in answer.targets}

    def _expand(self, spec: KernelSpec, targets: Sequence[Target]) -> tuple[Unit, ...]:
        with self._parts.kernel(spec.name) as problems:
            units = expand_kernel(spec, targets, problems)
        return () if problems.errors else units

    def _check_owner(self, first: KernelSpec, spec: KernelSpec) -> None:
        if first is not spec:
            message = f"kernel `{spec.name}` is there twice"
            self._problems.add([PlanError(message, spec.where, f"the other stands at {first.where}")])

    def _check_globs(
        self,
        specs: Sequence[KernelSpec],
        kernels: Sequence[str],
        targets: Sequence[Target],
        target_globs: Sequence[str],
    ) -> None:
        """A glob on the command line that selects nothing is a mistake."""
        names = [spec.name for spec in specs] + [part.kernel for part in self._parts.failed]
        for glob in kernels if not self._problems.errors and all(names) else ():
            if not any(fnmatchcase(name, glob) for name in names):
                hint = nearest_hint(glob, names, "kernels")
                if (kernel := glob.partition("@")[0].partition(":")[0]) in names:
                    hint = f"this takes kernels, and `--target` their targets: that unit is one of `{kernel}`"
                self._problems.add([SpecError(f"no kernel matches `{glob}`", hint=hint)])
        for glob in target_globs:
            if not any(target.matches(glob) for target in targets):
                known = map(str, self._project.targets)
                self._problems.add(
                    [SpecError(f"no target matches `{glob}`", hint=nearest_hint(glob, known, "targets"))]
                )

    def _check_names(self, specs: Sequence[KernelSpec], units: Sequence[Unit]) -> None:
        """Two units of one text would share an output; a kernel `a_grid` would share a function with kernel `a`."""
        names = {spec.name: spec for spec in specs}
        for name, suffix in ((name, suffix) for name in names for suffix in ("_grid", "_axes")):
            if name + suffix in names:
                hint = f"`{name}{suffix}` is already what a release calls a part of kernel `{name}`"
                message = f"`{name}{suffix}` cannot be a kernel's name beside `{name}`"
                self._problems.add([PlanError(message, names[name + suffix].where, hint)])
        for text, count in Counter(map(str, units)).items():
            if count > 1:
                self._problems.add([PlanError(f"{count} variants are called `{text}`", hint="two configs are equal")])

    def _plan_units(self, units: Sequence[Unit]) -> Iterator[PlannedUnit]:
        folder = self._project.folder
        probes = read_probes(folder, folder / BUILD) if self._project.passes else ()
        self._passes = find_uses(self._project.passes, probes, folder, self._problems)
        for unit in units:
            try:
                planned = self._plan_unit(unit)
            except PrecastError as error:
                with self._parts.part(str(unit), unit.kernel):
                    raise error
            else:
                yield planned

    def _plan_unit(self, unit: Unit) -> PlannedUnit:
        passes = select_passes(self._passes, unit) if self._passes else ()
        spelled = [each.value for each in unit.arguments if type(each.value) is Spelled]
        named = frozenset([name for value in spelled for name in modules_in(value)]) if spelled else NOTHING_NAMED
        kind = (unit.variant.kernel, named, unit.target.backend, unit.target.arch, passes)
        around = self._around.get(kind)
        if around is None:
            around = self._around[kind] = UnitSurroundings(
                sources=tuple((file.name, file.digest) for file in self._files_of(unit.source, named)),
                passes=passes,
                settings=self._settings,
                tools=self._tools(unit.target, passes),
            )
        return PlannedUnit(unit, UnitInputs(unit.compiled, around))

    def _tools(self, target: Target, passes: Sequence[PassUse]) -> Tools:
        python_pass = any(use.on_bindings for use in passes)
        known = self._known_tools.get((target, python_pass))
        if known is None:
            settings = self._project.settings
            known = self._known_tools[target, python_pass] = self._identities.tools(
                target,
                ptxas=settings.ptxas,
                python_pass=python_pass,
                standin=(ENGINE_SETTING, STANDIN) in settings.environment,
            )
        return known

    def _files_of(self, source: Source, named: frozenset[str]) -> tuple[SourceFile, ...]:
        """What the imports of a source reach, and of the modules that its constexprs name."""
        if (source, named) not in self._reached:
            try:
                start = self._sources.locate(source)
                starts = [start, *filter(None, (self._sources.find(name, start.root) for name in sorted(named)))]
                files = {file.name: file for each in starts for file in self._closure.files(each)}
                self._reached[source, named] = tuple(files[name] for name in sorted(files))
            except OSError as error:
                file = error.filename or source.file
                message = f"cannot read `{file}`: {reason_of(error)}"
                raise SpecError(message, hint=f"`{source.text}` imports it") from None
        return self._reached[source, named]

    def _warnings(
        self, specs: Sequence[KernelSpec], planned: Sequence[PlannedUnit], globs: tuple[Sequence[str], Sequence[str]]
    ) -> Iterator[str]:
        yield from find_ignored(os.environ, self._project.settings)
        yield from self._evidence.warnings
        yield from self._idle
        yield from (warning for spec in specs for warning in spec.warnings)
        with_passes = (each for each in planned if each.passes)
        yield from dict.fromkeys(warning for each in with_passes for warning in warn_of_costs(each.unit, each.passes))
        if all("*" in each for each in globs) and not self._candidates and not self._parts.failed:
            units = [each.unit for each in planned]
            yield from find_idle_targets(self._project, units)
            yield from find_idle_passes(self._project, units)


def _read_place(path: str) -> Read:
    return Read(ReadKind.PLACE, path, digest_place(path))


def is_wanted(kernel: str, globs: Sequence[str]) -> bool:
    return any(fnmatchcase(kernel, glob) for glob in globs)


def installed_folders(project: Path) -> tuple[Path, ...]:
    """The interpreter's folders of installed packages, as workers see them.

    Its path without the standard library, without `PYTHONPATH` (no worker has it: what a project needs stands in
    `pythonpath`), and without the folder that the command runs in.
    """
    other = {Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")}
    other |= {Path(each) for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each}
    other |= {Path(), Path.cwd(), project, project.resolve()}
    folders = [Path(each) for each in sys.path if each]
    kept = [each for each in folders if each.is_dir() and each not in other and each.name != "lib-dynload"]
    return tuple(dict.fromkeys(kept))
