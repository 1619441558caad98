"""Removing what belongs to no step any more: outputs of renamed kernels, dropped targets, old packs, unused entries
of the store; and what was never finished.

In: a session whose plan is the whole project's. Out: nothing but less. A build of a part of the project collects
nothing, for it does not know what the rest needs, but what nobody finished. A build leaves the store alone: going back
to an earlier state of the sources then costs nothing. `precast clean` empties it of what no unit uses now.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from precast.artifact import StageFile
from precast.graph.making import read_result
from precast.graph.session import Session
from precast.graph.steps import UnitStep
from precast.graph.unfinished import begin_writing
from precast.layout import (
    CANDIDATES,
    GENERATED,
    LIBRARIES,
    PACKS,
    PARTS,
    PLUGINS,
    SCONSTRUCT,
    SELECTIONS,
    STORE,
    UNITS,
)
from precast.release.folder import drop_drafts
from precast.store import Store, remove, remove_drafts, telling_disk_faults


def remove_unfinished(folder: Path) -> None:
    """Removes what was to be renamed when it was complete, among the releases and, where a build was killed, below the
    build folder, and marks that another has begun to write there. For who holds the lock."""
    begin_writing(folder)
    for home in _names(folder / GENERATED):
        for place in (folder / GENERATED / home, folder / GENERATED / home / CANDIDATES):
            drop_drafts(place)


def collect_leftovers(session: Session) -> None:
    """Removes files below the folders of units, packs, libraries and probes that no step makes, and their records."""
    if not session.request.everything:
        return
    if session.narrow is not None:  # no step came or went
        for target in _names(session.folder / UNITS):
            remove_drafts(session.folder / UNITS / target, deep=False)
        return
    steps = session.steps.all
    session.index.forget(set(session.index.steps) - {step.name for step in steps} - {SCONSTRUCT})
    folders = {step.planned.folder for step in session.steps.units}
    files = {path for step in steps for path in step.outputs}
    for path in _leftovers(session.folder, folders, files):
        with telling_disk_faults(path):
            remove(path)
    session.index.forget_absent_files(keep=files)


def prune_store(session: Session) -> int:
    """Removes every entry of the store that no built unit of the plan came from; returns how many."""
    store = Store(session.folder / STORE)
    stages = [stage for step in session.steps.units for stage in _stages_of(session, step)]
    keep = {store.object_path(stage.digest) for stage in stages} | {store.record_path(stage.key) for stage in stages}
    removed = [path for path in store.root.rglob("*") if path.is_file() and path not in keep]
    for path in removed:
        with telling_disk_faults(path):
            path.unlink()
    return len(removed)


def _stages_of(session: Session, step: UnitStep) -> tuple[StageFile, ...]:
    """The stages of a unit that is built and fresh; none of another, which is to be compiled anyway."""
    if not session.is_fresh(step):
        return ()
    return read_result(session.folder, step.planned.unit).stages


def _leftovers(root: Path, folders: set[str], files: set[str]) -> Iterator[Path]:
    for target in _names(root / UNITS):
        for unit in _names(root / UNITS / target):
            if f"{UNITS}/{target}/{unit}" not in folders:
                yield root / UNITS / target / unit
    for folder in (PACKS, LIBRARIES, PLUGINS, PARTS, SELECTIONS):
        for parent, _, names in os.walk(root / folder):
            inside = os.path.relpath(parent, root)
            yield from (Path(parent, name) for name in sorted(names) if f"{inside}/{name}" not in files)


def _names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder)) if folder.is_dir() else []
