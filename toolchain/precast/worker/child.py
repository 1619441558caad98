"""The worker's process: one job at a time from a private pipe, its engine imported once, before the first job comes.

In: the name of an engine; `Request` lines on one descriptor. Out: `Event` lines on another, each with its request's
token; the last of a job says what the job has changed in the process. Standard output and error are a file that the
parent keeps: what a compiler prints, and its last words, are read there. Ends when its input does.
"""

from __future__ import annotations

import contextlib
import contextvars
import faulthandler
import gc
import os
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from precast.bounded import MOST_FILE_BYTES, read_bounded
from precast.codec import from_json, to_json
from precast.engines import Engine, StageFailure, StageOutput
from precast.engines.registry import Engines, engine_name
from precast.job import Job
from precast.store import digest_bytes
from precast.worker.failures import describe_failure
from precast.worker.messages import YES, Event, Request, Step
from precast.worker.repeat import find_unsteady
from precast.worker.state import NOWHERE, Home, ProcessState, read_state
from precast.worker.walk import plan_stage, run_job


class Voice:
    """The worker's end of the pipes to its parent. Nobody else speaks there: a fork of this process has no say."""

    def __init__(self, requests: int, events: int) -> None:
        self.lines = os.fdopen(requests, "rb")
        self._events = events
        self._pipe = os.fstat(events)
        self._process = os.getpid()
        os.register_at_fork(after_in_child=lambda: _close(requests, events))

    def say(self, event: Event) -> None:
        """Sends one event. Ends a process in which that cannot be: a fork, or one whose pipe was closed by others."""
        if os.getpid() != self._process or not self._is_open():
            os._exit(1)
        line = b"\n" + to_json(event).encode() + b"\n"  # what others wrote without an end is none of it
        while line:
            line = line[os.write(self._events, line) :]

    def ask(self, event: Event) -> bool:
        """Sends one event to which the parent answers yes or no."""
        self.say(event)
        return self.lines.readline().strip() == YES

    def _is_open(self) -> bool:
        with contextlib.suppress(OSError):
            return os.path.samestat(os.fstat(self._events), self._pipe)
        return False


def _close(*descriptors: int) -> None:
    for each in descriptors:
        with contextlib.suppress(OSError):
            os.close(each)


class Worker:
    """Runs requests with engines that it opens when they are first needed, or earlier."""

    def __init__(self, say: Callable[[Event], None], ask: Callable[[Event], bool], home: Home = NOWHERE) -> None:
        self._say = say
        self._ask = ask
        self._home = home
        self._engines = Engines()
        self._ready: set[str] = set()
        self._state: ProcessState | None = None  # as the last job left it

    def answer(self, request: Request) -> None:
        """Answers one request with its steps and then exactly one `done` or `failed`."""
        name = engine_name(request.job)
        if name not in self._ready:
            self.open(name)
        before = self._state or self._look(request, None)
        with warnings.catch_warnings():  # what modules silence, they do not silence for others
            try:
                # Context variables, such as the precision of decimals, are a job's own.
                event = contextvars.copy_context().run(self._run, request, self._engines.open(name))
            except Exception as error:
                event = Event("failed", failure=describe_failure(error))
            faulthandler.cancel_dump_traceback_later()  # it may end the process, and nobody can ask for it
            try:
                self._state = self._look(request, before)
                changed = before.changes_to(self._state)
            except Exception:  # what cannot be looked at is not as it was
                changed = ("unknown",)
        self._say(replace(event, token=request.token, changed=changed))

    def _run(self, request: Request, engine: Engine) -> Event:
        def announce(step: Step) -> None:
            self._say(Event("step", step=step, token=request.token))

        def fetch(key: str) -> bool:
            return request.asks and self._ask(Event("wanted", key=key, token=request.token))

        if not request.stage:
            result = run_job(request.job, engine, announce, fetch)
            if request.job.repeat_passes:
                refuse_unsteady(request.job, engine)
            return Event("done", result=result)
        announce(Step(request.stage))
        source = StageOutput(read_bounded(request.source, MOST_FILE_BYTES), request.carry)
        inputs = plan_stage(request.job, request.stage, source.carry, digest_bytes(source.data))
        project = Path(request.job.project)
        engine.run_stage(inputs, source.data, project, lambda name, text="": announce(Step(request.stage, name)))
        return Event("done")

    def _look(self, request: Request, earlier: ProcessState | None) -> ProcessState:
        return read_state((request.job.project, *request.job.python_path), earlier, self._home)

    def open(self, engine: str) -> None:
        """Imports an engine. When it cannot be, the job that needs it tries again and tells why."""
        with contextlib.suppress(Exception):
            self._engines.open(engine)
        gc.freeze()  # what an engine is made of stays: no collection looks at it again
        self._ready.add(engine)
        self._state = None


def refuse_unsteady(job: Job, engine: Engine) -> None:
    """`StageFailure` for a pass that is no function of its input."""
    unsteady = find_unsteady(job, engine)
    if unsteady is not None:
        hint = "a pass may use no time, chance, addresses or state: the same input must give the same bytes"
        raise StageFailure(f"run twice, {unsteady}", hint=hint, pass_name=unsteady.pass_name)


def serve(requests: int, events: int, engine: str) -> None:
    """Answers requests until there are no more; the first will want `engine`."""
    voice = Voice(requests, events)
    worker = Worker(voice.say, voice.ask, Home(os.getcwd(), os.getppid()))
    voice.say(Event("ready"))
    worker.open(engine)
    with voice.lines:
        while line := voice.lines.readline():
            worker.answer(from_json(line, Request))
