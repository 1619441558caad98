"""The worker's process: one job at a time from a private pipe, its engine imported once.

In: `Request` lines on one descriptor. Out: `Event` lines on another. Standard output and error are a file that the
parent keeps: what a compiler prints, and its last words, are read there. Ends when its input does.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from precast.codec import from_json, to_json
from precast.engines import Engine, StageOutput
from precast.job import Job
from precast.worker.failures import describe_failure
from precast.worker.messages import Event, Request, Step
from precast.worker.walk import run_job

Send = Callable[[Event], None]


class Worker:
    """Runs requests with engines that it opens when they are first needed."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._engines: dict[str, Engine] = {}

    def run(self, request: Request) -> None:
        """Answers one request with its steps and then exactly one `done` or `failed`."""
        try:
            engine = self._engine(request.job)
            if request.stage:
                self._run_stage(request, engine)
                self._send(Event("done"))
            else:
                self._send(Event("done", result=run_job(request.job, engine, self._announce)))
        except Exception as error:
            self._send(Event("failed", failure=describe_failure(error)))

    def _engine(self, job: Job) -> Engine:
        from precast.engines.registry import engine_name, open_engine

        name = engine_name(job)
        if name not in self._engines:
            self._engines[name] = open_engine(job)
        return self._engines[name]

    def _announce(self, step: Step) -> None:
        self._send(Event("step", step=step))

    def _run_stage(self, request: Request, engine: Engine) -> None:
        source = StageOutput(Path(request.source).read_bytes(), request.carry)
        self._announce(Step(request.stage))

        def announce_pass(name: str, text: str = "") -> None:
            self._announce(Step(request.stage, name))

        engine.run_stage(request.job, request.stage, source, announce_pass)


def serve(requests: BinaryIO, events: int) -> None:
    """Answers requests until there are no more."""

    def send(event: Event) -> None:
        line = to_json(event).encode() + b"\n"
        while line:
            line = line[os.write(events, line) :]

    worker = Worker(send)
    send(Event("ready"))
    for line in requests:
        worker.run(from_json(line, Request))
