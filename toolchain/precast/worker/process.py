"""A pool's hold on one worker process. In: a request. Out: its event at the end, or how the process was lost.

The limits are watched from outside: time by a clock, memory by the resident size of the worker and of the programs it
started. (A limit on address space would count the gigabyte that libtriton maps and never touches, and would fail
inside the compiler at a place that varies.)
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace

from precast.codec import CodecError, from_json, to_json
from precast.engines.registry import engine_name
from precast.engines.triton.environment import worker_environment
from precast.errors import ToolError
from precast.job import Job
from precast.scratch import Scratch
from precast.worker.descendants import children_of, is_running
from precast.worker.memory import tree_bytes
from precast.worker.messages import NO, YES, Event, Request, Step

POLL_SECONDS = 0.05
START_SECONDS = 60.0  # until a new process answers; what its engine's import still takes is part of its first job
LAST_WORDS_BYTES = 8192
CLOSED_SECONDS = 1.0  # from the end of a worker's pipe until it counts as closed by a worker that lives on
END_SECONDS = 60.0  # that a worker's keeper may take to end all that the worker started
STAGE_KEY = re.compile("[0-9a-f]{64}")
LINE_BYTES = 1 << 28  # what no event is as long as


class WorkerLost(Exception):
    """The process is gone before its job was done; the message says how, `last_words` what it printed."""

    def __init__(self, message: str, last_words: str) -> None:
        super().__init__(message)
        self.message = message
        self.last_words = last_words


class WorkerProcess:
    """One `python -m precast.worker`, alive from construction to `stop`.

    It is started as the job `first` needs it, and imports that job's engine while it waits for a request. What is held
    here is the worker's keeper, which ends as the worker does, with all that the worker started.
    """

    def __init__(self, first: Job) -> None:
        self.jobs_run = 0
        self._token = ""
        self._fetch: Callable[[str], bool] | None = None
        self._scratch = Scratch()
        # Appending: after a cut, the worker goes on at the end. It lives as long as this object.
        self._output = tempfile.TemporaryFile(mode="a+b")  # noqa: SIM115
        theirs_in, ours_in = os.pipe()
        ours_out, theirs_out = os.pipe()
        numbers = [str(each) for each in (theirs_in, theirs_out, os.getpid())]
        command = [sys.executable, "-m", "precast.worker", *numbers, engine_name(first)]
        self._process = subprocess.Popen(
            command,
            cwd=self._scratch.name,
            env=worker_environment(first.settings, os.environ, self._scratch.name),
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=self._output,
            pass_fds=(theirs_in, theirs_out),
            start_new_session=True,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._requests, self._events = ours_in, ours_out
        self._buffer = b""
        self._stopped = False
        self._workers: list[int] = []
        self._await_start()
        self._workers = children_of(self._process.pid)  # one: nobody has left its keeper orphans yet

    def run(
        self, request: Request, on_step: Callable[[Step], None], fetch: Callable[[str], bool] | None = None
    ) -> Event:
        """Runs one request to its `done` or `failed` event; `WorkerLost` when the process ends or had to be ended.

        `fetch` is asked for stages that the job's store lacks; what it takes is none of the job's time.
        """
        self.jobs_run += 1
        self._fetch = fetch
        request = replace(request, asks=fetch is not None)
        self._output.truncate(0)
        job, self._token = request.job, secrets.token_hex(16)
        try:
            _write_all(self._requests, to_json(replace(request, token=self._token)).encode() + b"\n")
            return self._wait(time.monotonic() + job.time_limit_s, job.memory_limit_mb << 20, on_step)
        except BrokenPipeError:
            raise self._lost(self._exit_text()) from None

    def _await_start(self) -> None:
        try:
            self._wait(time.monotonic() + START_SECONDS, 0, lambda step: None)
        except WorkerLost as lost:
            self.stop()
            words = lost.last_words.strip().rpartition("\n")[2] or "it said nothing"
            raise ToolError(f"a worker does not start: {words}", hint=f"try `{sys.executable} -m precast`") from None

    def stop(self) -> None:
        """Ends the process and what it started, at once, and removes its files. Safe to call twice, and from afar."""
        if self._stopped:
            return
        self._stopped = True
        self._kill()
        os.close(self._requests)
        os.close(self._events)
        self._output.close()
        self._scratch.remove()

    def kill(self) -> None:
        """Ends the process from another thread: the thread in `run` then finds it lost."""
        self._process.terminate()

    def _kill(self) -> None:
        self.kill()
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def _wait(self, deadline: float, memory_limit: int, on_step: Callable[[Step], None]) -> Event:
        started = looked = time.monotonic()
        while True:
            event = self._next_event()
            if event is not None and event.token == self._token:  # else of a process that had the pipe
                if event.kind == "wanted" and self._fetch is not None:
                    deadline += self._answer(self._fetch, event.key)
                elif event.kind != "step" or event.step is None:
                    return event
                else:
                    on_step(event.step)
            if time.monotonic() - looked >= POLL_SECONDS:  # whatever comes, or does not
                looked = time.monotonic()
                self._check_limits(started, deadline, memory_limit)

    def _answer(self, fetch: Callable[[str], bool], key: str) -> float:
        """Fetches what a worker wants and says whether it is there; the seconds that it took."""
        started = time.monotonic()
        found = bool(STAGE_KEY.fullmatch(key)) and fetch(key)
        _write_all(self._requests, (YES if found else NO) + b"\n")
        return time.monotonic() - started

    def _check_limits(self, started: float, deadline: float, memory_limit: int) -> None:
        if time.monotonic() > deadline:
            raise self._lost(f"the compiler did not end within {deadline - started:.0f} s")
        if memory_limit and tree_bytes(self._process.pid) > memory_limit:
            raise self._lost(f"the compiler needed more than its {memory_limit >> 20} MB of memory")

    def _next_event(self) -> Event | None:
        """The next event; None when there is none within a short while, or when what came is none, or half of one."""
        if b"\n" not in self._buffer:
            self._read_more()
        line, separator, rest = self._buffer.partition(b"\n")
        if not separator:
            return None
        self._buffer = rest.lstrip(b"\n")
        try:
            return from_json(line, Event)
        except CodecError:
            return None

    def _read_more(self) -> None:
        if len(self._buffer) > LINE_BYTES:
            raise self._lost("the process flooded the pipe to its build")
        readable, _, _ = select.select([self._events], [], [], POLL_SECONDS)
        if readable:
            data = os.read(self._events, 1 << 16)
            if not data:
                raise self._lost(self._exit_text())
            self._buffer = (self._buffer + data).lstrip(b"\n")

    def _exit_text(self) -> str:
        try:
            code = self._wait_for_end()
        except subprocess.TimeoutExpired:
            return "the process closed the pipe to its build"
        if code >= 0:
            return f"the compiler ended the process with code {code}"
        name = signal.Signals(-code).name
        if code == -signal.SIGKILL:
            return f"the compiler was killed ({name}), most likely because the machine ran out of memory"
        return f"the compiler crashed ({name})"

    def _wait_for_end(self) -> int:
        """The exit code; `TimeoutExpired` when the worker lives on. Its keeper may take a while to end after it."""
        try:
            return self._process.wait(CLOSED_SECONDS)
        except subprocess.TimeoutExpired:
            if any(map(is_running, self._workers)):
                raise
        return self._process.wait(END_SECONDS)

    def _lost(self, message: str) -> WorkerLost:
        self._kill()
        return WorkerLost(message, self.last_words())

    def last_words(self) -> str:
        """The end of what the process printed during its last job."""
        size = os.fstat(self._output.fileno()).st_size
        data = os.pread(self._output.fileno(), LAST_WORDS_BYTES, max(0, size - LAST_WORDS_BYTES))
        return data.decode(errors="replace")


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
