"""What a pool and its workers tell each other: one JSON line a message. In and out: frozen values through `codec`."""

from __future__ import annotations

from dataclasses import dataclass

from precast.artifact import UnitResult
from precast.errors import BugError, CompileError, Place, PrecastError, ToolError
from precast.job import Job


@dataclass(frozen=True)
class Request:
    """To a worker: run a job; or, with `stage`, only that stage on the text in the file `source`."""

    job: Job
    stage: str = ""
    source: str = ""  # absolute path
    carry: str = "{}"


@dataclass(frozen=True)
class Step:
    """What a worker is about to do, told before it does it, so that a crash has a place.

    `stage` is empty while the kernel's module is loaded and its front end runs. `source` and `pass_source` are the
    digests in the store of what the stage, and the outside pass that is running in it, were given.
    """

    stage: str = ""
    pass_name: str = ""
    source: str = ""
    carry: str = "{}"
    pass_source: str = ""


@dataclass(frozen=True)
class Failure:
    """Why a job failed, as the worker saw it. `kind`: `compile`, `tool`, or `bug` with our own traceback."""

    kind: str
    message: str
    where: Place | None = None
    hint: str | None = None
    pass_name: str = ""


@dataclass(frozen=True)
class Event:
    """From a worker. `kind`: `ready`, `step`, `done` (a result, but for a single stage) or `failed`."""

    kind: str
    step: Step | None = None
    result: UnitResult | None = None
    failure: Failure | None = None


def make_error(job: Job, step: Step, failure: Failure, reproducer: str) -> PrecastError | BugError:
    """The exception that ends a job's future."""
    if failure.kind == "bug":
        return BugError(f"{job.unit}, stage {step.stage or 'front end'}: {failure.message}")
    if failure.kind == "tool":
        return ToolError(failure.message, failure.where, failure.hint)
    return CompileError(
        failure.message,
        failure.where,
        failure.hint,
        unit=str(job.unit),
        stage=step.stage,
        pass_name=failure.pass_name or step.pass_name,
        reproducer=reproducer,
    )
