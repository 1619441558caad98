"""The local pool: several worker processes, each with a thread here that feeds it one job at a time.

In: jobs, from any thread. Out: futures. A worker that crashes, hangs or grows too large takes only its own job with
it; the next job gets a fresh one. Workers are started for one set of compile settings and plugins, because both
stay in a process for good; waiting jobs of the same kind are taken first. A worker that a job has left otherwise than
it was is not used again. A pool that was told which jobs will come starts its workers before they do, and never more
workers than jobs.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from precast.artifact import UnitResult
from precast.engines.triton.capture import first_error
from precast.errors import BugError, PrecastError, ToolError
from precast.job import Job
from precast.layout import REPRODUCERS
from precast.passes.selection import plugin_set
from precast.worker.blame import blame_pass
from precast.worker.failures import Failure, make_error
from precast.worker.memory import WORKER_BYTES, available_bytes, default_worker_count
from precast.worker.messages import Request, Step
from precast.worker.process import WorkerLost, WorkerProcess
from precast.worker.reproducer import write_reproducer

JOBS_PER_WORKER = 500  # of a small kernel each leaves about 0.1 MB behind; a new process takes half a second
STOPPED = Failure("tool", "the build was stopped before this unit was done")


@dataclass(frozen=True)
class _Task:
    job: Job
    future: Future[UnitResult]

    @property
    def kind(self) -> object:
        return worker_kind(self.job)


def worker_kind(job: Job) -> object:
    """What a worker must have been started for to run `job`: settings, and the plugins, of any kind, with their bytes.

    Code from outside stays in a process once it was loaded, so a process serves one set of it.
    """
    return job.settings, plugin_set(job.passes)


def expected_bytes(job: Job) -> int:
    """The memory that a job is expected to take."""
    return job.expected_bytes or WORKER_BYTES


class WorkerPool:
    """An `Executor` on this machine. `count` 0: as many workers as cores and memory allow.

    Reproducers of failed stages go to `reproducers`, by default `build/repro` in the job's project. `on_start` is
    called in a worker's thread when its job starts; `fetch` brings a stage by its key into the job's store. Without
    `keep_going` a job that fails takes those that wait or come later with it: they are cancelled. Jobs that run at once
    are expected to fit into `memory` bytes, by default what is there now; one that alone does not fit runs alone.
    """

    def __init__(
        self,
        count: int = 0,
        on_start: Callable[[Job], None] | None = None,
        *,
        jobs_per_worker: int = JOBS_PER_WORKER,
        reproducers: Path | None = None,
        keep_going: bool = True,
        memory: int = 0,
        fetch: Callable[[str], bool] | None = None,
    ) -> None:
        self.count = count or default_worker_count()
        self._memory = memory or available_bytes()
        self._held = 0  # bytes that the jobs that run are expected to take
        self._jobs_per_worker = jobs_per_worker
        self._reproducers = reproducers
        self._on_start = on_start
        self._keep_going = keep_going
        self.fetch = fetch
        self._tasks: deque[_Task] = deque()
        self._changed = threading.Condition()
        self._running: dict[_Seat, _Task] = {}
        self._dropped: set[Future[UnitResult]] = set()  # of those, whose jobs nobody waits for any more
        self._closing = False
        self._cancelled = False
        self._failed = False  # a job did, and nothing is to be started after it
        self._seats = [_Seat(self) for _ in range(self.count)]
        self._threads: list[threading.Thread] = []

    @property
    def room(self) -> int:
        """One more than its workers: each has its next job before the last one is recorded."""
        return self.count + 1 if self.count > 1 else 1

    def prepare(self, jobs: Sequence[Job]) -> None:
        """Starts workers for the first of `jobs`; see `Executor.prepare`."""
        with self._changed:
            for job in jobs[len(self._threads) : self.count]:
                self._fill_seat(job)

    def _fill_seat(self, expected: Job | None = None) -> None:
        seat = self._seats[len(self._threads)]
        thread = threading.Thread(target=seat.serve, args=(expected,), name="precast-worker", daemon=True)
        self._threads.append(thread)
        thread.start()

    def submit(self, job: Job) -> Future[UnitResult]:
        """Queues a job; see `Executor.submit`."""
        future: Future[UnitResult] = Future()
        with self._changed:
            if self._cancelled:  # a signal may come between any two lines of the build
                future.set_exception(ToolError(STOPPED.message))
                return future
            if self._closing:
                raise RuntimeError("the pool is closed")
            if self._failed:
                future.cancel()
                return future
            self._tasks.append(_Task(job, future))
            self._changed.notify()
            if len(self._tasks) > len(self._threads) - len(self._running) and len(self._threads) < len(self._seats):
                self._fill_seat()
        return future

    def _drop_waiting(self) -> None:
        while self._tasks:
            self._tasks.popleft().future.cancel()

    def drop(self, futures: Collection[Future[UnitResult]]) -> None:
        """Drops those of the jobs that wait, and ends those that run."""
        with self._changed:
            for task in [each for each in self._tasks if each.future in futures]:
                self._tasks.remove(task)
                task.future.cancel()
            for seat, task in self._running.items():
                if task.future in futures:
                    self._dropped.add(task.future)
                    seat.kill()

    def close(self, *, cancel: bool = False) -> None:
        """Waits for all jobs, or with `cancel` drops and ends them; then every worker is gone."""
        with self._changed:
            self._closing = True
            if cancel:
                self._cancelled = True
                self._drop_waiting()
            self._changed.notify_all()
        if cancel:
            for seat in self._seats:
                seat.kill()
        for thread in self._threads:
            thread.join()

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close(cancel=kind is not None)

    def take(self, seat: _Seat, kind: object) -> _Task | None:
        """The next task, of `kind` if there is one; None when the pool is closed and nothing waits."""
        with self._changed:
            self._changed.wait_for(lambda: self._find_fitting(kind) or (self._closing and not self._tasks))
            chosen = self._find_fitting(kind)
            if chosen is not None:
                self._tasks.remove(chosen)
                self._running[seat] = chosen
                self._held += expected_bytes(chosen.job)
            return chosen

    def _find_fitting(self, kind: object) -> _Task | None:
        """The first task for which there is memory, of `kind` if there is one."""
        left = self._memory - self._held if self._running else None
        fitting = [task for task in self._tasks if left is None or expected_bytes(task.job) <= left]
        return next((task for task in fitting if task.kind == kind), fitting[0] if fitting else None)

    def started(self, job: Job) -> None:
        if self._on_start is not None:
            self._on_start(job)

    def ended(self, seat: _Seat, *, well: bool) -> None:
        with self._changed:
            task = self._running.pop(seat)
            self._dropped.discard(task.future)
            self._held -= expected_bytes(task.job)
            if not well and not self._keep_going:
                self._failed = True
                self._drop_waiting()
            self._changed.notify_all()  # what did not fit beside it may now

    def reproducer_folder(self, job: Job) -> Path:
        return self._reproducers or Path(job.project) / REPRODUCERS

    @property
    def jobs_per_worker(self) -> int:
        return self._jobs_per_worker

    def is_dropped(self, seat: _Seat) -> bool:
        """Whether nobody waits for what the seat does."""
        task = self._running.get(seat)
        return self._cancelled or (task is not None and task.future in self._dropped)


class _Seat:
    """One place at which a worker sits, and the thread that serves it."""

    def __init__(self, pool: WorkerPool) -> None:
        self._pool = pool
        self._worker: WorkerProcess | None = None
        self._kind: object = None

    def serve(self, expected: Job | None) -> None:
        """Runs tasks until the pool has no more; has a worker ready for `expected` before there are any."""
        try:
            if expected is not None:
                with suppress(Exception):  # tried again for the first task, which tells it
                    self._ready_worker(expected)
            while (task := self._pool.take(self, self._kind)) is not None:
                if task.future.set_running_or_notify_cancel():
                    self._run(task)
                else:
                    self._pool.ended(self, well=True)
        finally:
            self._dismiss()

    def kill(self) -> None:
        worker = self._worker
        if worker is not None:
            worker.kill()

    def _run(self, task: _Task) -> None:
        """Ends the task's future, whatever happens here."""
        try:
            self._pool.started(task.job)
            result = self._result_of(task.job)
        except BaseException as error:
            self._pool.ended(self, well=False)
            task.future.set_exception(error)
        else:
            self._pool.ended(self, well=True)
            task.future.set_result(result)

    def _result_of(self, job: Job) -> UnitResult:
        step = Step()

        def remember(current: Step) -> None:
            nonlocal step
            step = current

        try:
            event = self._ready_worker(job).run(Request(job), remember, self._pool.fetch)
        except WorkerLost as lost:
            self._dismiss()
            failure = blame_pass(lost_failure(lost), lost.last_words, job, step.pass_name)
            failure = STOPPED if self._pool.is_dropped(self) else failure
            raise self._explain(job, step, failure, lost=True) from None
        except BaseException:
            self._dismiss()
            raise
        if event.changed:
            self._dismiss()
        if event.failure is not None:
            raise self._explain(job, step, event.failure)
        if event.result is None:
            raise BugError(f"{job.unit}: a worker was done without a result")
        return event.result

    def _ready_worker(self, job: Job) -> WorkerProcess:
        worker, kind = self._worker, worker_kind(job)
        if worker is not None and (self._kind != kind or worker.jobs_run >= self._pool.jobs_per_worker):
            self._dismiss()
        if self._worker is None:
            self._worker, self._kind = WorkerProcess(job), kind
        if self._pool.is_dropped(self):
            self._worker.kill()
        return self._worker

    def _dismiss(self) -> None:
        worker, self._worker, self._kind = self._worker, None, None
        if worker is not None:
            worker.stop()

    def _explain(self, job: Job, step: Step, failure: Failure, *, lost: bool = False) -> PrecastError | BugError:
        reproducer = ""
        if failure.kind == "compile" and (step.stage or lost) and not self._pool.is_dropped(self):
            reproducer = write_reproducer(self._pool.reproducer_folder(job), job, step, failure.message)
        return make_error(job, step.stage, step.pass_name, failure, reproducer)


def lost_failure(lost: WorkerLost) -> Failure:
    """How a worker was lost, with the compiler's own last words where it had any."""
    words = first_error(lost.last_words)
    return Failure("compile", f"{lost.message}: {words}" if words else lost.message)
