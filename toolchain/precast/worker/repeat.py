"""Passes run twice on the same input, to find one that is no function of it: of a clock, chance, or an address.

In: a job and an engine. Out: the first pass whose two results differ. Nothing is published and nothing kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from precast.artifact import Finding
from precast.engines import Engine, StageInputs, StageOutput
from precast.job import Job
from precast.passes.selection import PassUse
from precast.store import digest_bytes
from precast.worker.walk import plan_stage


@dataclass(frozen=True)
class Unsteady:
    """A pass that made two things of one input in a stage of a unit."""

    unit: str
    stage: str
    pass_name: str

    def __str__(self) -> str:
        return f"pass `{self.pass_name}` makes different things of one input in stage {self.stage} of {self.unit}"


def find_unsteady(job: Job, engine: Engine) -> Unsteady | None:
    """The first pass of the job that is not a function of its input; None when all are, or none is Python.

    Hooks are left out: what they do in a stage may rest on an earlier one.
    """
    stages = [use.stage for use in job.passes if _can_be_repeated(use)]
    if not stages:
        return None
    output, project = engine.read_source(job).output, Path(job.project)
    for stage in job.unit.stages[: max(map(job.unit.stages.index, stages)) + 1]:
        inputs = plan_stage(job, stage, output.carry, digest_bytes(output.data))
        first = _trace(engine, inputs, output, project)
        repeatable = any(use.stage == stage and _can_be_repeated(use) for use in inputs.passes)
        if repeatable and not any(use.stateful for use in inputs.passes):
            ballast = _fill_memory()
            name = _first_difference(first, _trace(engine, inputs, output, project))
            del ballast
            if name:
                return Unsteady(str(job.unit), stage, name)
        output = first.output
    return None


def _can_be_repeated(use: PassUse) -> bool:
    return use.kind in ("python", "replace", "op")


@dataclass(frozen=True)
class _Trace:
    """One run of a stage: each outside pass with the text that it was given, and what the stage made."""

    given: tuple[tuple[str, str], ...]
    output: StageOutput


def _trace(engine: Engine, inputs: StageInputs, source: StageOutput, project: Path) -> _Trace:
    given: list[tuple[str, str]] = []

    def announce(name: str, text: str = "") -> None:
        if name:
            given.append((name, text))

    output = engine.run_stage(inputs, source.data, project, announce)
    return _Trace(tuple(given), output)


def _first_difference(first: _Trace, second: _Trace) -> str:
    """The pass before the first text that is not the same in both runs, or whose finding is not; "" for none."""
    for before, after in zip_longest(_findings(first.output), _findings(second.output)):
        if before != after and (before or after):
            return (before or after or Finding("", "")).pass_name
    blamed = ""
    for (name, text), (_, other) in zip(first.given, second.given, strict=False):
        if text != other:
            return blamed
        blamed = name
    return blamed if first.output.data != second.output.data else ""


def _findings(output: StageOutput) -> tuple[Finding, ...]:
    return output.findings


def _fill_memory() -> list[list[bytes]]:
    """Objects of every small size, so that those of the next run come to lie elsewhere."""
    return [[bytes(size) for _ in range(500)] for size in range(8, 1024, 16)]
