"""Events handed on to several reporters while they can be written. In: events. Out: the same, or the reason why not."""

from __future__ import annotations

import _thread
from collections.abc import Callable
from typing import TextIO

from precast.errors import PrecastError, ToolError
from precast.progress.events import Reporter, Summary
from precast.store import reason_of


class CarefulReporter:
    """Hands events on until one cannot be written, because the reader is gone, the disk full or the terminal dead.

    Then it has the build stop, as ^C does, says no more there, and keeps the sentence for it in `fault`.
    """

    def __init__(self, *reporters: Reporter, stop: Callable[[], None] = _thread.interrupt_main) -> None:
        self._reporters = list(reporters)
        self._stop = stop
        self.fault: ToolError | None = None
        self.finished = False

    def begin(self, steps: int) -> None:
        self._tell(lambda reporter: reporter.begin(steps))

    def started(self, step: str) -> None:
        self._tell(lambda reporter: reporter.started(step))

    def ended(self, step: str, seconds: float, reused: bool) -> None:
        self._tell(lambda reporter: reporter.ended(step, seconds, reused))

    def failed(self, step: str, error: PrecastError) -> None:
        self._tell(lambda reporter: reporter.failed(step, error))

    def warned(self, message: str) -> None:
        self._tell(lambda reporter: reporter.warned(message))

    def said(self, line: str, stream: TextIO) -> None:
        self._tell(lambda reporter: reporter.said(line, stream))

    def finish(self, summary: Summary) -> None:
        self.finished = True
        self._tell(lambda reporter: reporter.finish(summary))

    def _tell(self, event: Callable[[Reporter], None]) -> None:
        for reporter in tuple(self._reporters):
            try:
                event(reporter)
            except ToolError as error:  # of a report's file, which is written last
                self.fault = self.fault or error
            except (OSError, ValueError) as error:  # `ValueError`: the stream was closed
                reason = reason_of(error) if isinstance(error, OSError) else str(error)
                self.fault = self.fault or ToolError(f"cannot write to standard output: {reason}")
                self._reporters.remove(reporter)
                if not self.finished:
                    self._stop()
