"""What moved while a build was at work: asked before a release is made of it, which would be of no state that ever was.

In: a session whose units are built. Out: the names of files that are not what the plan, a plugin's probe or a unit saw.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from precast.digest import look_at
from precast.graph.session import Session
from precast.graph.steps import UnitStep
from precast.passes.registry import find_changed
from precast.reads import FILES, parse_read

MOST_NAMES = 3


def find_moved(session: Session) -> list[str]:
    """The files, sorted. One that was edited and put back has not moved, unless a unit read it in between."""
    seen = {*_read_of_plan(session), *_read_by_units(session)}
    moved = {name for name, digest in seen if session.index.digest_content(name) != digest}
    moved.update(_looked_at_by_plan(session))
    if session.narrow is not None:
        moved.update(session.narrow.moved_since(session.folder))
    for probe in session.probes:
        moved |= set(find_changed(probe, session.folder))
    return sorted(moved)


def _looked_at_by_plan(session: Session) -> Iterator[str]:
    """Those of the files that the plan remembers as they were: most need not be read again, Triton's library least. Of
    the assembler, nobody knows what was run while another one lay in its place: that one has moved."""
    ptxas = session.project.settings.ptxas
    for path, state in session.plan.looks.files.items():
        try:
            now = look_at(os.path.join(session.origin, path), state)
        except OSError:
            yield session.name_from_here(path)
            continue
        if now.digest != state.digest or (path == ptxas and (now.inode, now.ctime) != (state.inode, state.ctime)):
            yield session.name_from_here(path)


def _read_of_plan(session: Session) -> Iterator[tuple[str, str]]:
    for read in session.plan.looks.reads:
        if read.kind in FILES:
            yield session.name_from_here(read.name), read.digest


def _read_by_units(session: Session) -> Iterator[tuple[str, str]]:
    for step in session.steps.all:
        if isinstance(step, UnitStep):
            for place, digest in session.index.reads(step.name).items():
                read = parse_read(place, digest)
                if read.kind in FILES:
                    yield read.name, read.digest


def tell_moved(names: list[str]) -> str:
    """The first of them, in a sentence's subject."""
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
