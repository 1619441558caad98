"""Removing what belongs to no step any more: outputs of renamed kernels, dropped targets, old packs.

In: a session whose plan is the whole project's. Out: nothing but less. A build of a part of the project collects
nothing, for it does not know what the rest needs.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from precast.graph.session import Session
from precast.graph.steps import LIBRARIES, PACKS, PLUGINS, SCONSTRUCT, UNITS
from precast.store import telling_disk_faults


def collect_leftovers(session: Session) -> None:
    """Removes files below the folders of units, packs, libraries and probes that no step makes, and their records."""
    if not session.request.everything:
        return
    steps = session.steps.all
    session.index.forget(set(session.index.steps) - {step.name for step in steps} - {SCONSTRUCT})
    folders = {step.planned.folder for step in session.steps.units}
    files = {path for step in steps for path in step.outputs}
    for path in _leftovers(session.folder, folders, files):
        with telling_disk_faults(path):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    session.index.forget_absent_files()


def _leftovers(root: Path, folders: set[str], files: set[str]) -> Iterator[Path]:
    for target in _children(root / UNITS):
        for unit in _children(target):
            if unit.relative_to(root).as_posix() not in folders:
                yield unit
    for folder in (root / PACKS, root / LIBRARIES, root / PLUGINS):
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.relative_to(root).as_posix() not in files:
                yield path


def _children(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []
