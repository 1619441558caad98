"""The progress bar on a terminal. In: events of the build. Out: the bar, and lines above it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from precast.errors import PrecastError, escape_controls
from precast.spec.naming import shorten_unit_text

if TYPE_CHECKING:
    from precast.graph.reporting import Summary


class TerminalReporter:
    """A progress bar with counts and time left; failures and warnings stand above it."""

    def __init__(self, stream: TextIO) -> None:
        self._console = Console(file=stream, highlight=False)
        self._progress = Progress(
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.description}", markup=False),
            console=self._console,
            transient=True,
        )
        self._running: dict[str, float] = {}
        self._task = self._progress.add_task("", total=None)

    def begin(self, steps: int) -> None:
        self._progress.update(self._task, total=steps)
        self._progress.start()

    def started(self, step: str) -> None:
        self._running[step] = time.monotonic()
        self._show()

    def ended(self, step: str, seconds: float, reused: bool) -> None:
        self._leave(step)

    def failed(self, step: str, error: PrecastError) -> None:
        self._leave(step)
        self._console.print(f"failed: {escape_controls(step)}", style="red", markup=False)

    def warned(self, message: str) -> None:
        self._console.print(f"warning: {escape_controls(message)}", style="yellow", markup=False)

    def finish(self, summary: Summary) -> None:
        self._progress.stop()
        self._console.print(summary.text, markup=False)

    def _leave(self, step: str) -> None:
        self._running.pop(step, None)
        self._progress.advance(self._task)
        self._show()

    def _show(self) -> None:
        oldest = min(self._running, key=self._running.__getitem__, default="")
        self._progress.update(self._task, description=escape_controls(shorten_unit_text(oldest)))
