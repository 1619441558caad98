"""Runs stale steps one after another, units at once: for a build of so little that SCons would take longer to begin,
and for candidates, which need not all compile.

In: a session, for the former with no script that adds to the graph and nothing for a C compiler. Out: what a graph of
the same steps would leave, and tell.
"""

from __future__ import annotations

from precast.graph.images import make_step, make_units
from precast.graph.running import take_shared
from precast.graph.session import Session
from precast.layout import SCONSTRUCT


def needs_no_graph(session: Session) -> bool:
    """Whether the stale steps are units, packs and a release, of which the first failure ends the build."""
    if session.narrow is None or session.request.keep_going or (session.folder / SCONSTRUCT).exists():
        return False
    compiled = {session.steps.launchers.name, session.steps.library.name}
    return compiled.isdisjoint(step.name for step in session.stale)


def run_directly(session: Session) -> None:
    """Makes what is stale."""
    session.begin()
    take_shared(session)
    session.prepare()
    make_units(session)
    for step in (*session.steps.packs, session.steps.release):
        if session.is_declared(step):
            make_step(session, step)


def compile_candidates(session: Session) -> None:
    """Compiles the stale candidates before there is a graph, for those that do not compile are not in it.

    `SystemExit`, as of a failed graph, where a kernel has none left."""
    make_units(session)
    if session.left_out and not session.interrupted:
        session.leave_out()
    if session.failures or session.interrupted:
        raise SystemExit(1)
