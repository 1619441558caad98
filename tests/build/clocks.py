"""Time limits of workers without waiting: their clock runs ahead once a unit is where a test wants it, not before."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from precast.worker.messages import Step
from precast.worker.process import WorkerProcess

LIMIT_S = 900.0
AHEAD_S = 10_000.0


def hear_steps(monkeypatch: pytest.MonkeyPatch) -> list[Step]:
    """The steps that workers of this process tell from now on, as their pool hears of them."""
    steps: list[Step] = []
    run = WorkerProcess.run

    def listen(process, request, on_step, fetch=None):
        def note(step: Step) -> None:
            on_step(step)
            steps.append(step)

        return run(process, request, note, fetch)

    monkeypatch.setattr(WorkerProcess, "run", listen)
    return steps


def run_ahead(monkeypatch: pytest.MonkeyPatch, once: Callable[[], bool]) -> None:
    """Has the clock by which time limits are watched run ahead of them, once something holds."""
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + AHEAD_S * once())
    monkeypatch.setattr("precast.worker.process.time", clock)
