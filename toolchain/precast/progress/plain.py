"""A build as lines for a log: one for each finished step. In: events. Out: lines on a stream."""

from __future__ import annotations

from typing import TextIO

from precast.errors import PrecastError, escape_controls
from precast.progress.events import SilentReporter, Summary


def write_line(line: str, stream: TextIO) -> None:
    stream.write(line + "\n")
    stream.flush()


class QuietReporter(SilentReporter):
    """Warnings alone."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def warned(self, message: str) -> None:
        self._write(f"warning: {message}")

    def said(self, line: str, stream: TextIO) -> None:
        write_line(line, stream)

    def _write(self, line: str) -> None:
        write_line(escape_controls(line), self._stream)


class PlainReporter(QuietReporter):
    """One line per finished step, and the summary."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._steps = self._done = 0

    def begin(self, steps: int) -> None:
        self._steps = steps

    def ended(self, step: str, seconds: float, reused: bool) -> None:
        self._say(step, "reused" if reused else f"{seconds:.1f} s")

    def failed(self, step: str, error: PrecastError) -> None:
        if step:
            self._say(step, "FAILED")

    def finish(self, summary: Summary) -> None:
        if summary.ended_by_itself:
            self._write(summary.text)

    def _say(self, step: str, how: str) -> None:
        from precast.spec.naming import shorten_unit_text  # specs, which a build with nothing to do never needs

        self._done += 1
        self._write(f"[{self._done}/{max(self._steps, self._done)}] {shorten_unit_text(step)}  {how}")
