"""A step of the session, run: its maker is called with what the step is given, and what came of it is recorded.

In: a session and a step, from a task thread. Out: the step's files and its record in the index, under the key that it
had when it began. What moved while it was used reaches no record: the step fails, and says what moved.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from precast.artifact import UnitResult
from precast.errors import PrecastError, ToolError
from precast.graph import making
from precast.graph.collect import collect_leftovers
from precast.graph.moved import find_moved, tell_moved
from precast.graph.order import Cost
from precast.graph.session import Session
from precast.graph.steps import (
    FailedStep,
    ImagesStep,
    LaunchersStep,
    ProbeStep,
    ReleaseStep,
    SelectionStep,
    Step,
    UnitStep,
)
from precast.job import Job
from precast.layout import stage_paths
from precast.plan import make_job
from precast.plan.key import KEY_FILE, write_key
from precast.reads import FILES, Read, lasting
from precast.release.budget import BudgetError
from precast.spec.closure import INSTALLED
from precast.worker.walk import LUCK_WARNING


def run_step(session: Session, step: Step) -> None:
    """Makes a step and records it."""
    if isinstance(step, UnitStep):
        _run_unit(session, step)
    elif isinstance(step, FailedStep):
        raise step.error
    elif isinstance(step, ReleaseStep):
        _run_release(session, step)
    else:
        begun = session.key_of(step)
        note_made(session, step, begun, _make(step, session.folder))


def _make(step: Step, folder: Path) -> Sequence[str]:
    (output,) = step.outputs
    if isinstance(step, ProbeStep):
        return making.make_probe(step.given, folder, output)
    if isinstance(step, ImagesStep):
        return making.make_pack(step.given, folder, output)
    if isinstance(step, SelectionStep):
        return making.make_selection(step.given, folder, output)
    assert isinstance(step, LaunchersStep)
    return making.make_launchers(step.given, folder, output)


def note_made(
    session: Session,
    step: Step,
    begun: str,
    outputs: Iterable[str],
    tools: Iterable[str] = (),
    made: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Records a step that began with the key `begun`; `ToolError` when its inputs are not what they were then.

    `tools` are files beyond its inputs that it was made with, `made` the digests of outputs that need not be read.
    """
    if session.key_of(step) != begun:
        raise ToolError(f"{', '.join(step.inputs[:3])} changed while {step.name} was made", hint="build again")
    session.index.record(step.name, begun, session.index.digests(tools), outputs, made=made)


def _run_release(session: Session, step: ReleaseStep) -> None:
    """Makes the release; `ToolError` when something moved since it was planned."""
    if moved := find_moved(session):
        message = f"{tell_moved(moved)} changed during the build, so there is no release of it"
        raise ToolError(message, hint="build again")
    # A narrow build has just looked at all files of the others, and of what it made: what moves, `note_made` finds.
    begun = step.full_key(session.index.last_digest) if session.narrow else session.key_of(step)
    try:
        kept = session.narrow.parts if session.narrow else None
        outputs, made, manifest = making.make_release(
            step.given, session.folder, step.outputs[0], session.index.digest, kept or {}
        )
    except BudgetError as error:
        error.where = session.project.places.get(("release_bytes", ""))
        raise
    note_made(session, step, begun, outputs, made=made)
    if not manifest.reproducible:
        session.warn(LUCK_WARNING)
    collect_leftovers(session)


def take_shared(session: Session) -> None:
    """Takes what the shared cache has of the stale units, many at once: they are no jobs any more."""
    if session.sharing is None or session.sharing.cache.reads is False:
        return
    with session.index.together():
        for step, result in session.sharing.take(session.stale_units):
            session.taken.add(step.name)
            session.start(step.name)
            with session.running(step):
                _note_unit(session, step, result)


def _run_unit(session: Session, step: UnitStep) -> None:
    """Takes or compiles one unit; `CompileError` when it cannot be, and then nothing of it is left."""
    result = session.sharing.find(step) if session.sharing else None
    if result is not None:
        session.start(step.name)
        _note_unit(session, step, result)
        return
    try:
        result = session.executor.submit(_make_job(session, step)).result()
        _refuse_moved(session, step)
    except PrecastError:
        shutil.rmtree(session.folder / step.planned.folder, ignore_errors=True)
        session.index.forget([step.name])
        raise
    _note_unit(session, step, result)
    if session.sharing:
        session.sharing.give(step, result)


def _note_unit(session: Session, step: UnitStep, result: UnitResult) -> None:
    """Records a unit whose folder is there."""
    folder = session.folder / step.planned.folder
    key = write_key(folder, step.planned.ingredients)
    reads = lasting(result.reads)
    _tell_new(session, step, reads)
    for warning in result.warnings:
        if warning != LUCK_WARNING:  # said once, of the release
            session.warn(f"{step.name}: {warning}")
    outputs = [f"{step.planned.folder}/{name}" for name in os.listdir(folder)]
    known = dict(zip(stage_paths(step.planned.unit), (each.digest for each in result.stages), strict=True))
    known[f"{step.planned.folder}/{KEY_FILE}"] = key
    made = {path: known[path] for path in outputs if path in known}
    cost = _cost_to_note(session, step, result)
    session.index.record(step.name, session.key_of(step), {}, outputs, str(cost or ""), reads, made)
    session.count(step, "reused" if result.stages and result.stages[-1].reused else "built")


def _tell_new(session: Session, step: UnitStep, reads: Sequence[Read]) -> None:
    """Says once which files of the project count from now on, though nobody declared them and no import shows them."""
    inside = sorted({each.name for each in reads if not os.path.isabs(each.name) and each.kind in FILES})
    new = [name for name in inside if session.is_news(name)]
    if new:
        session.warn(f"{step.name} also uses {', '.join(new)}, which its imports do not show; noted for next time")


def _refuse_moved(session: Session, step: UnitStep) -> None:
    """`ToolError` for sources that are not what the plan saw: nobody knows which state of them was compiled."""
    sources = [each for each in step.given.around.sources if not each[0].startswith(INSTALLED)]
    moved = [name for name, digest in sources if session.index.digest_content(name) != digest]
    if moved:
        raise ToolError(f"{', '.join(moved)} changed while {step.name} was built", hint="build again")


def _make_job(session: Session, step: UnitStep) -> Job:
    """The unit's job, with what is known of it from earlier builds."""
    cost = session.last_cost(step)
    return replace(make_job(step.given, session.placed), expected_bytes=cost.peak_bytes if cost else 0)


def _cost_to_note(session: Session, step: UnitStep, result: UnitResult) -> Cost | None:
    """What compiling all of the unit takes, for later builds; what was known when the store helped."""
    if any(each.reused for each in result.stages):
        return session.last_cost(step)
    return Cost(result.seconds, result.peak_bytes)
