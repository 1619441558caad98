"""Failures as values, so that they cross processes. In: exceptions. Out: a `Failure`, and exceptions again."""

from __future__ import annotations

import traceback
from dataclasses import dataclass, replace
from typing import NoReturn

from precast.engines import StageFailure
from precast.errors import BugError, CompileError, Place, PrecastError, ToolError, relative_text
from precast.job import Job

MESSAGE_LETTERS = 1_000_000  # of what outside code can raise; more is nobody's to read


@dataclass(frozen=True)
class Failure:
    """Why a job failed, as the worker saw it. `kind`: `compile`, `tool`, or `bug` with our own traceback."""

    kind: str
    message: str
    where: Place | None = None
    hint: str | None = None
    pass_name: str = ""


def describe_failure(error: Exception) -> Failure:
    """What went wrong, as a value: the user's, the machine's, or ours with its traceback. Fit to cross a pipe."""
    failure = _describe(error)
    message = failure.message.encode("utf-8", "backslashreplace").decode()
    if len(message) > MESSAGE_LETTERS:
        message = f"{message[:MESSAGE_LETTERS]} … ({len(message)} characters)"
    return replace(failure, message=message)


def _describe(error: Exception) -> Failure:
    if isinstance(error, StageFailure):
        return Failure("compile", error.message, error.where, error.hint, error.pass_name)
    if isinstance(error, ToolError):
        return Failure("tool", error.message, error.where, error.hint)
    if isinstance(error, PrecastError):
        return Failure("compile", error.message, error.where, error.hint, getattr(error, "pass_name", ""))
    if isinstance(error, OSError):
        what = error.strerror or str(error)
        return Failure("tool", f"{what}: {error.filename}" if error.filename else what)
    if isinstance(error, MemoryError):
        return Failure("compile", "the compiler ran out of memory")
    return Failure("bug", "".join(traceback.format_exception(error)).strip())


def raise_failure(failure: Failure) -> NoReturn:
    """Raises in this process what another one met while it ran a stage for it."""
    if failure.kind == "bug":
        raise BugError(failure.message)
    if failure.kind == "tool":
        raise ToolError(failure.message, failure.where, failure.hint)
    raise StageFailure(failure.message, failure.where, failure.hint, pass_name=failure.pass_name)


def make_error(job: Job, stage: str, pass_name: str, failure: Failure, reproducer: str) -> PrecastError | BugError:
    """The exception that ends a job's future. The front end belongs to the first stage, whose text it begins."""
    stage = stage or job.unit.stages[0]
    if failure.kind == "bug":
        return BugError(f"{job.unit}, stage {stage}: {failure.message}")
    if failure.kind == "tool":
        return ToolError(relative_text(failure.message, job.project), failure.where, failure.hint)
    return CompileError(
        relative_text(failure.message, job.project),
        failure.where,
        failure.hint,
        unit=str(job.unit),
        stage=stage,
        pass_name=failure.pass_name or pass_name,
        reproducer=reproducer,
    )
