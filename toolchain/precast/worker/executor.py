"""The one interface to whatever runs jobs: the local pool, or a cluster. In: jobs. Out: futures of unit results."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Protocol

from precast.artifact import UnitResult
from precast.job import Job


class Executor(Protocol):
    """Runs jobs, several at once, in any order; safe to use from several threads."""

    @property
    def room(self) -> int:
        """How many jobs are worth submitting at once."""

    def prepare(self, jobs: Sequence[Job]) -> None:
        """Says which jobs will soon be submitted, so that no time is lost when they are."""

    def submit(self, job: Job) -> Future[UnitResult]:
        """Queues a job.

        The future is running as soon as a worker has the job. It ends with the unit's result, whose files are then
        in `job.output`, or with `CompileError` (this unit cannot be built), `ToolError` (no unit can be built here
        now, such as a full disk) or `BugError`. A cancelled future's job never starts.
        """

    def close(self, *, cancel: bool = False) -> None:
        """Waits for what was submitted; with `cancel`, drops what waits and ends what runs. Then nothing is left."""
