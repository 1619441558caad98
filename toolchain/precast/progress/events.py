"""The events of a build, and how it ended. In: what a session tells. Out: what reporters are made to take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TextIO

from precast.errors import BuildFailed, PrecastError, ToolError

COMPLETE = "complete"  # all that was asked for is there
FAILED = "failed"  # steps failed
ERROR = "error"  # the project, the command line or the machine did not let it begin, or go on
INTERRUPTED = "interrupted"  # a signal ended it
FAULT = "fault"  # Precast's own


@dataclass(frozen=True)
class Summary:
    """How a build ended: why, counts of units, and the release's folder ("" when there is none).

    `built` counts new images; `reused` units whose image was there already, in place or in the store; `message` is a
    sentence on why there is no release, "" for a build that is complete.
    """

    built: int = 0
    reused: int = 0
    failed: int = 0
    units: int = 0
    release: str = ""
    checked: int = 0  # units that were built again from nothing
    reason: str = COMPLETE
    message: str = ""

    @property
    def text(self) -> str:
        counts = f"{self.built} built, {self.reused} reused, {self.failed} failed"
        counts += f", {self.checked} checked" if self.checked else ""
        return f"{counts}; release {self.release}" if self.release else counts

    @property
    def ended_by_itself(self) -> bool:
        """Whether the counts say how it ended; else the error does, which others print."""
        return self.reason in (COMPLETE, FAILED)


class Reporter(Protocol):
    """Takes a build's events; `step` is a step's name, which for units is the unit's text."""

    def begin(self, steps: int) -> None:
        """The build has this many stale steps."""

    def started(self, step: str) -> None: ...

    def ended(self, step: str, seconds: float, reused: bool) -> None: ...

    def failed(self, step: str, error: PrecastError) -> None:
        """A step failed; without a step, something was wrong before any ran."""

    def warned(self, message: str) -> None: ...

    def said(self, line: str, stream: TextIO) -> None:
        """A program that the build runs printed a line, which belongs on `stream`."""

    def finish(self, summary: Summary) -> None:
        """The last event, however the build ended."""


class SilentReporter:
    """Says nothing."""

    def begin(self, steps: int) -> None:
        pass

    def started(self, step: str) -> None:
        pass

    def ended(self, step: str, seconds: float, reused: bool) -> None:
        pass

    def failed(self, step: str, error: PrecastError) -> None:
        pass

    def warned(self, message: str) -> None:
        pass

    def said(self, line: str, stream: TextIO) -> None:
        pass

    def finish(self, summary: Summary) -> None:
        pass


def tell_end(
    reporter: Reporter, error: BaseException, told: Sequence[PrecastError] = (), counts: Summary = Summary()
) -> None:
    """Reports an end that `error` made: its failures, but for those that were `told`, and the summary."""
    for failure in _failures_of(error):
        if not any(failure is each for each in told):
            reporter.failed("", failure)
    reporter.finish(replace(counts, release="", reason=_reason_of(error), message=_sentence_of(error)))


def _failures_of(error: BaseException) -> Iterator[PrecastError]:
    if isinstance(error, BuildFailed):
        for each in error.failures:
            yield from _failures_of(each)
    elif isinstance(error, PrecastError):
        yield error
    elif isinstance(error, OSError):
        yield ToolError(str(error))


def _reason_of(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    return ERROR if isinstance(error, (PrecastError, OSError)) else FAULT


def _sentence_of(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    if isinstance(error, PrecastError):
        return error.message
    return f"{type(error).__name__}: {error}"
