"""What a build says while it runs: a progress bar on a terminal, plain lines in a log, JSON lines for programs.

In: events of the build, from several threads, one at a time. Out: text on the stream that the caller gave.
"""

from __future__ import annotations

import _thread
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Protocol, TextIO

from precast.diagnostic import format_error
from precast.errors import CompileError, PrecastError, ToolError, escape_controls
from precast.store import reason_of


@dataclass(frozen=True)
class Summary:
    """How a build ended: counts of units, and the release's folder ("" when there is none).

    `built` counts new images; `reused` units whose image was there already, in place or in the store.
    """

    built: int
    reused: int
    failed: int
    units: int
    release: str
    checked: int = 0  # units that were built again from nothing

    @property
    def text(self) -> str:
        counts = f"{self.built} built, {self.reused} reused, {self.failed} failed"
        counts += f", {self.checked} checked" if self.checked else ""
        return f"{counts}; release {self.release}" if self.release else counts


class Reporter(Protocol):
    """Takes a build's events; `step` is a step's name, which for units is the unit's text."""

    def begin(self, steps: int) -> None:
        """The build has this many stale steps."""

    def started(self, step: str) -> None: ...

    def ended(self, step: str, seconds: float, reused: bool) -> None: ...

    def failed(self, step: str, error: PrecastError) -> None: ...

    def warned(self, message: str) -> None: ...

    def finish(self, summary: Summary) -> None:
        """The last event."""


class CarefulReporter:
    """Hands events on until one cannot be written, because the reader is gone, the disk full or the terminal dead.

    Then it has the build stop, as ^C does, says no more, and keeps the sentence for it in `fault`.
    """

    def __init__(self, reporter: Reporter, stop: Callable[[], None] = _thread.interrupt_main) -> None:
        self._reporter = reporter
        self._stop = stop
        self.fault: ToolError | None = None

    def begin(self, steps: int) -> None:
        self._tell(lambda: self._reporter.begin(steps))

    def started(self, step: str) -> None:
        self._tell(lambda: self._reporter.started(step))

    def ended(self, step: str, seconds: float, reused: bool) -> None:
        self._tell(lambda: self._reporter.ended(step, seconds, reused))

    def failed(self, step: str, error: PrecastError) -> None:
        self._tell(lambda: self._reporter.failed(step, error))

    def warned(self, message: str) -> None:
        self._tell(lambda: self._reporter.warned(message))

    def finish(self, summary: Summary) -> None:
        self._tell(lambda: self._reporter.finish(summary), last=True)

    def _tell(self, event: Callable[[], None], *, last: bool = False) -> None:
        if self.fault is not None:
            return
        try:
            event()
        except (OSError, ValueError) as error:  # `ValueError`: the stream was closed
            reason = reason_of(error) if isinstance(error, OSError) else str(error)
            self.fault = ToolError(f"cannot write to standard output: {reason}")
            if not last:
                self._stop()


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

    def finish(self, summary: Summary) -> None:
        pass


class PlainReporter(SilentReporter):
    """One line per finished step."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._steps = self._done = 0

    def begin(self, steps: int) -> None:
        self._steps = steps

    def ended(self, step: str, seconds: float, reused: bool) -> None:
        self._say(step, "reused" if reused else f"{seconds:.1f} s")

    def failed(self, step: str, error: PrecastError) -> None:
        self._say(step, "FAILED")

    def warned(self, message: str) -> None:
        self._write(f"warning: {message}")

    def finish(self, summary: Summary) -> None:
        self._write(summary.text)

    def _say(self, step: str, how: str) -> None:
        from precast.spec.naming import shorten_unit_text  # specs, which a build with nothing to do never needs

        self._done += 1
        self._write(f"[{self._done}/{max(self._steps, self._done)}] {shorten_unit_text(step)}  {how}")

    def _write(self, line: str) -> None:
        self._stream.write(escape_controls(line) + "\n")
        self._stream.flush()


class JsonReporter:
    """One JSON object per line; the last is the summary."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def begin(self, steps: int) -> None:
        self._write("begin", steps=steps)

    def started(self, step: str) -> None:
        self._write("started", step=step)

    def ended(self, step: str, seconds: float, reused: bool) -> None:
        self._write("ended", step=step, seconds=round(seconds, 4), reused=reused)

    def failed(self, step: str, error: PrecastError) -> None:
        stage = error.stage if isinstance(error, CompileError) else ""
        self._write("failed", step=step, stage=stage, message=error.message, text=format_error(error))

    def warned(self, message: str) -> None:
        self._write("warning", message=message)

    def finish(self, summary: Summary) -> None:
        values = asdict(summary)
        if not summary.checked:
            del values["checked"]
        self._write("summary", **values)

    def _write(self, event: str, **values: object) -> None:
        self._stream.write(json.dumps({"event": event, **values}, ensure_ascii=False) + "\n")
        self._stream.flush()


def choose_reporter(stream: TextIO, style: str = "") -> Reporter:
    """The reporter for `style` (`json`, `plain`, `bar`), or the one that suits the stream."""
    if style == "json":
        return JsonReporter(stream)
    if style == "plain" or (not style and not stream.isatty()):
        return PlainReporter(stream)
    from precast.graph.terminal import TerminalReporter  # rich, which a build with nothing to do never needs

    return TerminalReporter(stream)
