"""`precast build --check`: samples of a build, built again from nothing, and held against what the build has.

In: a finished session. Out: an error for each sample that comes out otherwise, which names the stage where that begins
and the passes that act there. The samples run in other processes, with an empty store, and write elsewhere; nothing of
the build is touched.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from pathlib import Path

from precast.artifact import UnitResult
from precast.errors import CompileError, PrecastError
from precast.graph.making import read_result
from precast.graph.steps import UnitStep
from precast.job import Job
from precast.plan import make_job
from precast.project import Project
from precast.scratch import Scratch

TAKEN_HINT = "it was not made now but taken from the store or the cache, which holds what is not made here"
MINIMUM = 10  # samples, where there are so many


def choose_samples(units: Sequence[UnitStep], percent: float, reused: Set[str] = frozenset()) -> tuple[UnitStep, ...]:
    """`percent` of the units, at least `MINIMUM`: other ones whenever anything changes, the same for the same state.

    Half of them, where there are so many, are units whose image this build `reused`: taken from a store, not made.
    """
    count = int(min(len(units), max(MINIMUM, -(-len(units) * percent // 100))))
    order = sorted(units, key=lambda step: hashlib.sha256(f"{step.name} {step.given.key}".encode()).digest())
    first = [step for step in order if step.name in reused][: -(-count // 2)]
    return tuple((first + [step for step in order if step not in first])[:count])


def check_units(
    samples: Sequence[UnitStep], project: Project, workers: int, reused: Set[str] = frozenset()
) -> Iterator[tuple[UnitStep, PrecastError | None]]:
    """Builds each sample again; with it what is wrong, or None when it is what the build has. The project's folder is
    absolute.

    The images of those that are `reused` were taken from a store.
    """
    from precast.worker.pool import WorkerPool

    with Scratch() as place:
        jobs = [_apart(make_job(step.given, project), place / str(number)) for number, step in enumerate(samples)]
        with WorkerPool(workers, jobs_per_worker=1, reproducers=place) as pool:
            results = [pool.submit(job) for job in jobs]
            for step, result in zip(samples, results, strict=True):
                try:
                    again = result.result()
                except PrecastError as error:
                    yield step, error
                else:
                    difference = compare(step, read_result(project.folder, step.planned.unit), again)
                    if difference is not None and step.name in reused:
                        difference.hint = TAKEN_HINT
                    yield step, difference


def _apart(job: Job, place: Path) -> Job:
    return replace(job, store=str(place / "store"), output=str(place / "unit"), repeat_passes=bool(job.passes))


def compare(step: UnitStep, built: UnitResult, again: UnitResult) -> CompileError | None:
    """What differs between the unit as it was built and as it comes out now."""
    first = next((old for old, new in zip(built.stages, again.stages, strict=True) if old.digest != new.digest), None)
    if first is not None:
        acting = ", ".join(f"`{use.name}`" for use in step.planned.passes if use.stage == first.stage)
        acting = acting or ("the kernel's module" if first is built.stages[0] else "")
        hint = f"{acting} may use the time, chance, or what lies elsewhere" if acting else "the compiler is not at rest"
        return CompileError(
            f"built again from nothing, stage {first.stage} comes out otherwise",
            hint=hint,
            unit=step.name,
            stage=first.stage,
        )
    kept = (built.facts, built.passes, built.findings)
    if kept != (again.facts, again.passes, again.findings):
        return CompileError("built again from nothing, its facts or findings are others", unit=step.name)
    return None
