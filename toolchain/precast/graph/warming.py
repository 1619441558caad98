"""`precast cache warm`: afterwards the build folder and the shared cache have what either of them had.

In: a project and its cache. Out: units published here, entries there, counts. Nothing is compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from precast.cache.settings import CacheWish
from precast.errors import BugError, SpecError
from precast.graph.collect import remove_unfinished
from precast.graph.lock import locked
from precast.graph.making import read_result
from precast.graph.request import Request
from precast.graph.running import take_shared
from precast.graph.session import Begin, Fetch, Session, Warn
from precast.graph.sharing import Sharing
from precast.graph.steps import UnitStep
from precast.graph.unfinished import end_writing
from precast.layout import BUILD
from precast.progress.events import SilentReporter
from precast.project import Project
from precast.worker.executor import Executor


@dataclass(frozen=True)
class Warmed:
    """Units that were taken from the cache, that it was given, and that nobody has."""

    taken: int
    given: int
    absent: int


class _Listener(SilentReporter):
    def __init__(self, warn: Callable[[str], None]) -> None:
        self._warn = warn

    def warned(self, message: str) -> None:
        self._warn(message)


def warm_cache(project: Project, wish: CacheWish, warn: Callable[[str], None]) -> Warmed:
    """Takes and gives; `SpecError` when there is no cache."""
    with locked(project.folder / BUILD):
        remove_unfinished(project.folder)
        session = Session(project, Request(cache=wish), _Listener(warn), _refuse)
        try:
            sharing = session.sharing
            if sharing is None:
                hint = "write `url` in [tool.precast.cache], or give --cache"
                raise SpecError("the project has no shared cache", hint=hint)
            stale = {step.name for step in session.stale_units}
            fresh = [step for step in session.steps.units if step.name not in stale]
            take_shared(session)
            given = _give(session, sharing, fresh)
            session.share()
            absent = len(session.stale_units)
            end_writing(session.folder)
            return Warmed(len(stale) - absent, given if sharing.cache.writes else 0, absent)
        finally:
            session.close()


def _give(session: Session, sharing: Sharing, steps: list[UnitStep]) -> int:
    """Gives the units that the cache does not have; how many."""
    known = dict(sharing.known(steps))
    missing = [step for step in steps if not known.get(step.name)]
    for step in missing:
        result = read_result(session.folder, step.planned.unit)
        stages = tuple(replace(stage, reused=False) for stage in result.stages)
        sharing.give(step, replace(result, stages=stages, reads=session.index.found(step.name)))
    return len(missing)


def _refuse(request: Request, on_start: Begin, fetch: Fetch | None, warn: Warn) -> Executor:
    raise BugError("warming compiled a unit")
