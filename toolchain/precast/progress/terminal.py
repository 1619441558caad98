"""A build on a terminal: a bar with counts and time left, and the units that run. In: events. Out: a live display.

What is to stay (failures, warnings, the summary) stands above it, in whole lines that only the terminal itself breaks,
so that a path in them can be taken as it is. The display is never wider than the terminal, whatever a unit is called;
the bar and then the time left give way to the counts.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from typing import TextIO

from rich.console import Console, RenderableType
from rich.progress import Progress, Task
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from precast.errors import PrecastError, escape_controls
from precast.progress.events import Summary
from precast.progress.fitting import fit_text
from precast.progress.plain import write_line
from precast.spec.naming import shorten_unit_text

MARGIN = 3  # where a terminal shows ^C: it must not begin another line
RUNNING_SHOWN = 4
BAR_COLUMNS, BAR_LEAST = 40, 6


class TerminalReporter:
    """A display while the build runs, one line for each failure and warning, and the summary."""

    def __init__(self, stream: TextIO, *, every_step: bool = False) -> None:
        self._console = Console(file=stream, highlight=False)
        self._running: dict[str, float] = {}  # steps, with when they started
        self._lock = threading.Lock()
        self._display = _Display(self)
        self._task = self._display.add_task("", total=None)
        self._every_step = every_step

    def begin(self, steps: int) -> None:
        self._display.update(self._task, total=steps)
        self._display.start()

    def started(self, step: str) -> None:
        with self._lock:
            self._running[step] = time.monotonic()

    def ended(self, step: str, seconds: float, reused: bool) -> None:
        self._leave(step)
        if self._every_step:
            self._say(f"{shorten_unit_text(step)}  {'reused' if reused else f'{seconds:.1f} s'}")

    def failed(self, step: str, error: PrecastError) -> None:
        if step:
            self._leave(step)
            self._say(f"failed: {shorten_unit_text(step)}", "red")

    def warned(self, message: str) -> None:
        self._say(f"warning: {message}", "yellow")

    def said(self, line: str, stream: TextIO) -> None:
        if stream.isatty():  # this one, as far as anybody can tell: the display must make room
            self._console.print(Text.from_ansi(line), soft_wrap=True)
        else:
            write_line(line, stream)

    def finish(self, summary: Summary) -> None:
        self._display.stop()
        if summary.ended_by_itself:
            self._say(summary.text)

    def _leave(self, step: str) -> None:
        with self._lock:
            self._running.pop(step, None)
        self._display.advance(self._task)

    def _say(self, line: str, style: str = "") -> None:
        self._console.print(escape_controls(line), style=style or None, markup=False, soft_wrap=True)

    def draw(self, task: Task) -> Iterable[RenderableType]:
        """The display's lines as they are now, for the width that the terminal has now."""
        columns = max(self._console.width - MARGIN, 1)
        with self._lock:
            running = sorted(self._running.items(), key=lambda each: each[1])
        shown = max(0, min(RUNNING_SHOWN, self._console.height - 3))
        now = time.monotonic()
        for step, started in running[:shown]:
            yield Text(_running_line(escape_controls(shorten_unit_text(step)), now - started, columns), no_wrap=True)
        if len(running) > shown > 0:
            yield Text(fit_text(f"  and {len(running) - shown} more", columns), no_wrap=True)
        yield _head(task, columns)


class _Display(Progress):
    """rich's live display and its estimate of the time left, with lines of our own."""

    def __init__(self, reporter: TerminalReporter) -> None:
        self._reporter = reporter
        console = reporter._console
        super().__init__(console=console, transient=True, redirect_stdout=False, redirect_stderr=False)

    def get_renderables(self) -> Iterable[RenderableType]:
        for task in self.tasks:
            yield from self._reporter.draw(task)


def _running_line(step: str, seconds: float, columns: int) -> str:
    took = f"  {_duration(seconds)}" if seconds >= 1 else ""
    return f"  {fit_text(step, max(columns - 2 - len(took), 1))}{took}"[:columns]


def _head(task: Task, columns: int) -> RenderableType:
    """The bar, the counts and the time left, as far as there is room for them."""
    total = int(task.total or 0)
    counts = f"{int(task.completed)}/{max(total, int(task.completed))}"
    left = task.time_remaining
    told = f"{counts}  {_duration(left)} left" if left is not None and total else counts
    told = told if len(told) <= columns else counts
    room = min(columns - len(told) - 1, BAR_COLUMNS)
    if room < BAR_LEAST:
        return Text(fit_text(told, columns), no_wrap=True)
    line = Table.grid(padding=(0, 1, 0, 0))
    line.add_row(ProgressBar(total=total or 1, completed=task.completed, width=room), Text(told, no_wrap=True))
    return line


def _duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
