"""Units compiled by a cluster: an `Executor` that sends jobs to Dask's or Ray's workers.

In: jobs, from any thread. Out: futures; what a cluster made lies in the job's store and folder as if it had been made
here. Jobs travel in batches, as many as take about a second, with the files that they are made of; nothing but the
cluster's own connection is needed for that. A unit fails only by this machine's word: what a cluster could not
compile, or what had read there what would be read otherwise here, is compiled here. A worker with other tools gets no
more jobs. When the cluster is lost, the rest is compiled here.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from precast.artifact import UnitResult
from precast.codec import CodecError, from_json
from precast.errors import ToolError
from precast.job import Job
from precast.worker.batch import Answer, Answers, Message, checked, pack_batch, unpack_answer
from precast.worker.executor import Executor
from precast.worker.pool import STOPPED
from precast.worker.portable import is_movable

BATCH_SECONDS = 1.0
MOST_JOBS = 16  # of a batch
MOST_WAITING = 256  # jobs that are worth submitting at once
GATHER_SECONDS = 0.02  # in which more jobs may come for a batch


class ClusterLost(Exception):
    """Nothing can be asked of the cluster any more; the message is the end of a sentence."""


class WorkerGone(Exception):
    """A worker ended with a batch that it had."""


class Cluster(Protocol):
    """Machines behind one address. Safe for threads."""

    address: str
    slots: int  # batches that run at once

    def run(self, message: Message, avoid: frozenset[str]) -> tuple[str, Message]:
        """Has one of its workers, none of `avoid`, run a batch; that worker's name and its answers."""

    def close(self) -> None:
        """Drops what runs; whoever waits in `run` is told that the cluster is lost."""


def answers(ask: Callable[[], object], seconds: float) -> bool:
    """Whether a question to a cluster, which may never return, is answered in time. What it raises is an answer too:
    whoever waits for a batch hears of the same fault."""
    answered = threading.Event()

    def run() -> None:
        with suppress(Exception):
            ask()
        answered.set()

    threading.Thread(target=run, name="precast-cluster-question", daemon=True).start()
    return answered.wait(seconds)


@dataclass(frozen=True)
class _Task:
    job: Job
    future: Future[UnitResult]


class ClusterExecutor:
    """An `Executor` on a cluster; `start_local` makes the one that compiles here, once it is needed. Without
    `keep_going` a unit that fails takes those that wait or come later with it."""

    def __init__(
        self,
        cluster: Cluster,
        start_local: Callable[[Callable[[Job], None]], Executor],
        on_start: Callable[[Job], None],
        warn: Callable[[str], None],
        *,
        keep_going: bool,
    ) -> None:
        self._cluster = cluster
        self._start_local = start_local
        self._on_start = on_start
        self._warn = warn
        self._keep_going = keep_going
        self._changed = threading.Condition(threading.RLock())
        self._waiting: deque[_Task] = deque()
        self._local: Executor | None = None
        self._begun: set[str] = set()  # units that were said to have begun
        self._told: set[str] = set()
        self._avoided: frozenset[str] = frozenset()
        self._seconds = 0.0  # that a unit took, lately
        self._lost = self._closing = self._cancelled = self._failed = False
        self._threads = [  # two a slot: a worker has its next batch before the last one is unpacked
            threading.Thread(target=self._serve, name="precast-cluster", daemon=True) for _ in range(2 * cluster.slots)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def room(self) -> int:
        return min(MOST_WAITING, 2 * self._cluster.slots * MOST_JOBS)

    def prepare(self, jobs: Sequence[Job]) -> None:
        """Nothing: a cluster's workers are there already."""

    def submit(self, job: Job) -> Future[UnitResult]:
        """Queues a job; see `Executor.submit`."""
        task = _Task(job, Future())
        with self._changed:
            if self._cancelled:
                task.future.set_exception(ToolError(STOPPED.message))
            elif self._failed:
                task.future.cancel()
            elif self._lost or not is_movable(job):
                task.future.set_running_or_notify_cancel()
                self._compile_here(task)
            else:
                self._waiting.append(task)
                self._changed.notify_all()
        return task.future

    def close(self, *, cancel: bool = False) -> None:
        """Waits for all jobs, or with `cancel` drops them."""
        with self._changed:
            self._closing = True
            self._cancelled |= cancel
            if cancel:
                self._drop_waiting()
            self._changed.notify_all()
        if cancel:
            self._cluster.close()
        for thread in self._threads:
            thread.join()
        if self._local is not None:
            self._local.close(cancel=cancel)
        self._cluster.close()

    def _drop_waiting(self) -> None:
        with self._changed:
            while self._waiting:
                self._waiting.popleft().future.cancel()

    def _serve(self) -> None:
        """Sends batches until there are no more."""
        while taken := self._take():
            tasks = [task for task in taken if task.future.set_running_or_notify_cancel()]
            try:
                self._run(tasks)
            except BaseException as error:  # whatever happens here, nobody waits for ever
                for task in tasks:
                    self._fail(task, error)

    def _take(self) -> list[_Task]:
        """The next batch; none when there will be no more."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closing)
            most = batch_size(self._seconds)
            self._changed.wait_for(lambda: len(self._waiting) >= most or self._closing, GATHER_SECONDS)
            share = -(-len(self._waiting) // len(self._threads))  # smaller ones at the end, so that all end together
            return [self._waiting.popleft() for _ in range(min(most, share))]

    def _run(self, tasks: Sequence[_Task]) -> None:
        for task in tasks:
            self._begin(task.job)
        try:
            answers, blobs = self._ask(pack_batch([task.job for task in tasks]))
        except ClusterLost as lost:
            self._lose(lost)
            answers, blobs = Answers(), {}
        except WorkerGone:
            if len(tasks) > 1:
                for task in tasks:
                    self._run([task])
                return
            answers, blobs = Answers((Answer(failure="the worker that had it is gone"),)), {}
        missing = [Answer()] * (len(tasks) - len(answers.answers))
        for task, answer in zip(tasks, (*answers.answers, *missing), strict=False):
            self._settle(task, answer, blobs)
        seconds = [answer.unit.result.seconds for answer in answers.answers if answer.unit]
        if seconds:
            self._seconds = sum(seconds) / len(seconds)

    def _begin(self, job: Job) -> None:
        with self._changed:
            news = str(job.unit) not in self._begun
            self._begun.add(str(job.unit))
        if news:
            self._on_start(job)

    def _ask(self, message: Message) -> tuple[Answers, Mapping[str, bytes]]:
        """The answers of a worker that takes a batch."""
        while True:
            worker, (text, blobs) = self._cluster.run(message, self._avoided)
            try:
                answers = from_json(text, Answers)
            except CodecError:
                answers = Answers(refusal="it has another version of Precast")
            if not answers.refusal:
                return answers, checked(blobs)
            with self._changed:
                self._avoided |= {worker}
            self._tell(worker, f"{self._cluster.address}: worker {worker} gets no jobs: {answers.refusal}")

    def _tell(self, what: str, message: str) -> None:
        with self._changed:
            news = what not in self._told and not self._cancelled
            self._told.add(what)
        if news:
            self._warn(message)

    def _lose(self, lost: ClusterLost) -> None:
        with self._changed:
            self._lost = True
            waiting, self._waiting = [*self._waiting], deque()
        self._tell("lost", f"{self._cluster.address} is not used from here on: {lost}; the rest is compiled here")
        for task in waiting:
            if task.future.set_running_or_notify_cancel():
                self._compile_here(task)

    def _settle(self, task: _Task, answer: Answer, blobs: Mapping[str, bytes]) -> None:
        """Ends a task whose batch was answered, or has it compiled here."""
        if self._cancelled:
            self._fail(task, ToolError(STOPPED.message))
            return
        result, cause = unpack_answer(task.job, answer, blobs)
        if result is not None:
            task.future.set_result(result)
            return
        if cause:
            self._tell(
                "here", f"{task.job.unit} is compiled here, not at {self._cluster.address}, as all such are: {cause}"
            )
        self._compile_here(task)

    def _compile_here(self, task: _Task) -> None:
        with self._changed:
            if self._local is None:
                self._local = self._start_local(self._begin)
            future = self._local.submit(task.job)
        future.add_done_callback(partial(self._take_over, task))

    def _take_over(self, task: _Task, future: Future[UnitResult]) -> None:
        error = CancelledError() if future.cancelled() else future.exception()
        if error is not None:
            self._fail(task, error)
        else:
            task.future.set_result(future.result())

    def _fail(self, task: _Task, error: BaseException) -> None:
        if not self._keep_going:
            with self._changed:
                self._failed = True
                self._drop_waiting()
        if not task.future.done():
            task.future.set_exception(error)


def batch_size(seconds: float) -> int:
    """How many jobs that take so long travel together; one while that is not known."""
    return max(1, min(MOST_JOBS, int(BATCH_SECONDS / seconds))) if seconds else 1
