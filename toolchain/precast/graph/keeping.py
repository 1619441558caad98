"""A finished build's snapshot: gathers what all of its steps rested on and left.

In: a session that has nothing left to do. Out: the snapshot's file, unless something has moved since it was looked at:
then there is none, and the next build looks for itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace

from precast import collector
from precast.digest import FileState
from precast.graph.index import READ
from precast.graph.kept import KeptKernels, KeptRelease, describe_kernels, keep_images, write_kept
from precast.graph.narrow import Narrow
from precast.graph.session import Session
from precast.graph.snapshot import FileTable, Snapshot, describe_asker, snapshot_path, write_snapshot
from precast.graph.steps import Step, UnitStep
from precast.layout import KEPT_PLAN, SCONSTRUCT
from precast.passes.registry import is_fresh
from precast.progress.events import Summary
from precast.reads import ABSENT, FILES, NO_PATHS, Looks, Read, ReadKind, digest_now, digest_place, parse_read
from precast.shell import find_ignored

_NO_PATHS = (ReadKind.GLOB, *NO_PATHS)


@collector.resting()
def keep_snapshot(session: Session, summary: Summary) -> None:
    """Writes the snapshot of a build that went well, and has a release to show for it."""
    if not summary.release:
        return
    gathering = _gather(session) if session.narrow is None else _gather_narrowly(session, session.narrow)
    if gathering is None or gathering.moved:
        return
    snapshot = Snapshot(
        describe_asker(session.folder, session.request),
        summary.units,
        os.path.relpath(summary.release, session.folder),
        gathering.outputs_table(),
        FileTable.of(gathering.sources),
        tuple(parse_read(place, digest) for place, digest in gathering.reads.items()),
        _keep_plan(session, gathering) if not session.request.part else "",
    )
    write_snapshot(session.folder / snapshot_path(session.request), snapshot)


def _gather(session: Session) -> _Gathering | None:
    """All of a build; None when a plugin has moved."""
    gathering = _Gathering(session)
    gathering.add_build_script()
    for step in session.steps.all:
        gathering.add_step(step)
    gathering.add_reads(session.plugin_globs)
    for probe in session.probes:
        gathering.add_reads(Read(ReadKind.DIRECTORY, each.path, each.digest) for each in probe.folders)
        gathering.add_reads(Read(ReadKind.PLACE, each, ABSENT) for each in probe.absent)
    gathering.add_looks(session.plan.looks)
    return gathering if all(is_fresh(probe, session.folder) for probe in session.probes) else None


def _gather_narrowly(session: Session, narrow: Narrow) -> _Gathering:
    """What an earlier build left and rested on, with what few kernels have come to since."""
    gathering, before = _Gathering(session), narrow.earlier.snapshot
    sources = before.sources.select({*before.sources.paths()} - {*narrow.earlier.moved})
    gathering.sources.update(sources)
    for step in session.steps.all:
        gathering.add_step(step)
    gathering.add_looks(session.plan.looks)
    gathering.reads = {**{each.place: each.digest for each in before.reads}, **gathering.reads}
    return gathering


def _keep_plan(session: Session, gathering: _Gathering) -> str:
    """Keeps the plan; its digest."""
    plan, steps, narrow = session.plan, session.steps, session.narrow
    files, images = _files_by_kernel(session), (*steps.packs, *steps.cpu_libraries)
    interface, digest = steps.launchers.given.interface, session.index.digest
    made = {step.given.place: keep_images(step.given, interface, digest) for step in images}
    if narrow is not None:
        owned = {file for kernel in narrow.kernels.kernels for file in kernel.files}
        shared = {*narrow.earlier.snapshot.sources.paths()} - owned
        anew = {kernel.name: kernel for kernel in describe_kernels(plan, images, files, shared)}
        kernels = replace(narrow.kernels, kernels=tuple(anew.get(each.name, each) for each in narrow.kernels.kernels))
        release = replace(narrow.release, images=tuple(made.get(each.place, each) for each in narrow.release.images))
    else:
        kernels = KeptKernels(describe_kernels(plan, images, files, _shared_files(session)), len(steps.units))
        ignored = {*find_ignored(os.environ, session.project.settings)}
        release = KeptRelease(
            steps.launchers.given,
            tuple(made.values()),
            steps.release.given.selection,
            steps.release.inputs,
            tuple(each for each in plan.warnings if each not in ignored),
        )
    return write_kept(session.folder / KEPT_PLAN, kernels, release)


def _shared_files(session: Session) -> set[str]:
    """The files that something rests on which is no kernel and no unit."""
    shared = {*map(session.name_from_here, session.plan.shared_files)}
    for step in session.steps.all:
        if not isinstance(step, UnitStep):
            record = session.index.step(step.name)
            shared.update(step.inputs, record.inputs if record else ())
    script = session.index.step(SCONSTRUCT)
    return shared.union(script.inputs if script else ())


def _files_by_kernel(session: Session) -> dict[str, tuple[str, ...]]:
    """For each kernel the files that its plan and its units read, the spec's first."""
    root = f"{session.folder}/"
    found = {name: dict.fromkeys(map(session.name_from_here, files)) for name, files in session.plan.files.items()}
    for step in session.steps.units:
        reads = (read.name for read in session.index.found(step.name) if read.kind in FILES)
        for name in (*step.planned.inputs, *reads):
            place = os.path.normpath(os.path.join(root, name))
            found[step.planned.unit.kernel][place.removeprefix(root)] = None
    return {name: tuple(files) for name, files in found.items()}


class _Gathering:
    """What a snapshot holds, while it is put together. `moved`: something is not as it was when it was looked at."""

    def __init__(self, session: Session) -> None:
        self.outputs: dict[str, FileState] = {}
        self.sources: dict[str, FileState] = {}
        self.reads: dict[str, str] = {}
        self.moved = False
        self._session = session
        self._root = session.folder
        self._index = session.index
        self._narrow = session.narrow
        self._others = frozenset(session.narrow.release.inputs) if session.narrow else frozenset[str]()

    def outputs_table(self) -> FileTable:
        """What this build made, and where it was a narrow one, what earlier ones did."""
        if self._narrow is None:
            return FileTable.of(self.outputs)
        return self._narrow.earlier.snapshot.outputs.replaced(self._session.made_before, self.outputs)

    def add_build_script(self) -> None:
        """What plugins that the SConstruct builds are made of, or that there is none."""
        self.add_reads([Read(ReadKind.PLACE, SCONSTRUCT, digest_place(self._root / SCONSTRUCT))])
        if (self._root / SCONSTRUCT).exists():
            self._add_record(SCONSTRUCT)

    def add_step(self, step: Step) -> None:
        """A step's record, and the files that are in its key and nobody makes."""
        self._add_record(step.name)
        sources = [path for path in step.inputs if path not in self.outputs and path not in self._others]
        for path in sources:
            self._add_file(path, self._index.digest(path) or "", self.sources)
        record = self._index.step(step.name)
        if sources or not self._index.is_new(step.name):  # else its key is of what steps made, as it is known here
            self.moved |= record is None or record.key != self._session.key_of(step)

    def _add_record(self, name: str) -> None:
        record = self._index.step(name)
        if record is None:
            self.moved = True
            return
        for path, digest in record.outputs.items():
            self._add_file(path, digest, self.outputs)
        for path, digest in record.inputs.items():
            if path.startswith(READ):
                self.add_reads([parse_read(path.removeprefix(READ), digest)])
            else:
                self._add_file(path, digest, self.sources)

    def _add_file(self, path: str, digest: str, table: dict[str, FileState]) -> None:
        """A file with the digest that the index knows it by."""
        state = self._index.state(path)
        if state is not None and state.digest == digest:
            table[path] = state
        elif os.path.islink(self._root / path) and self._index.digest(path) == digest:
            asked = [Read(kind, path, "") for kind in (ReadKind.LINK, ReadKind.DATA)]
            self.reads |= {each.place: digest_now(each, self._root, os.environ) for each in asked}
        else:
            self.moved = True

    def add_reads(self, reads: Iterable[Read]) -> None:
        """What was read, each with the digest that it had then."""
        for read in reads:
            state = self._state_of(read.name) if read.kind in FILES else None
            if state is None:
                self.moved |= self.reads.setdefault(read.place, read.digest) != read.digest
            else:
                self._add_source(read.name, state)
                self.moved |= state.digest != read.digest

    def _state_of(self, path: str) -> FileState | None:
        """The state of a file that is no link."""
        known = self.sources.get(path)
        if known is None and not os.path.islink(self._root / path):
            self._index.digest(path)
            known = self._index.state(path)
        return known

    def _add_source(self, path: str, state: FileState) -> None:
        self.moved |= self.sources.setdefault(path, state).digest != state.digest

    def add_looks(self, looks: Looks) -> None:
        """What a plan looked at, whose paths are seen from the folder in which it was made."""
        name = self._session.name_from_here
        for path, state in looks.files.items():
            self._add_source(name(path), state)
        self.add_reads(each if each.kind in _NO_PATHS else replace(each, name=name(each.name)) for each in looks.reads)
