"""The worker's process: one job at a time from a private pipe, its engine imported once, before the first job comes.

In: the name of an engine; `Request` lines on one descriptor. Out: `Event` lines on another. Standard output and error
are a file that the parent keeps: what a compiler prints, and its last words, are read there. Ends when its input does.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from precast.codec import from_json, to_json
from precast.engines import Engine, StageOutput
from precast.engines.registry import Engines, engine_name
from precast.worker.failures import describe_failure
from precast.worker.messages import Event, Request, Step
from precast.worker.walk import run_job

Send = Callable[[Event], None]


class Worker:
    """Runs requests with engines that it opens when they are first needed, or earlier."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._engines = Engines()

    def run(self, request: Request) -> None:
        """Answers one request with its steps and then exactly one `done` or `failed`."""
        try:
            engine = self._engines.open(engine_name(request.job))
            if request.stage:
                self._run_stage(request, engine)
                self._send(Event("done"))
            else:
                self._send(Event("done", result=run_job(request.job, engine, self._announce)))
        except Exception as error:
            self._send(Event("failed", failure=describe_failure(error)))

    def open(self, engine: str) -> None:
        """Imports an engine. When it cannot be, the job that needs it tries again and tells why."""
        with contextlib.suppress(Exception):
            self._engines.open(engine)

    def _announce(self, step: Step) -> None:
        self._send(Event("step", step=step))

    def _run_stage(self, request: Request, engine: Engine) -> None:
        source = StageOutput(Path(request.source).read_bytes(), request.carry)
        self._announce(Step(request.stage))

        def announce_pass(name: str, text: str = "") -> None:
            self._announce(Step(request.stage, name))

        engine.run_stage(request.job, request.stage, source, announce_pass)


def serve(requests: BinaryIO, events: int, engine: str) -> None:
    """Answers requests until there are no more; the first will want `engine`."""

    def send(event: Event) -> None:
        line = to_json(event).encode() + b"\n"
        while line:
            line = line[os.write(events, line) :]

    worker = Worker(send)
    send(Event("ready"))
    worker.open(engine)
    for line in requests:
        worker.run(from_json(line, Request))
