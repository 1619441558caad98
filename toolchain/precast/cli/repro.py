"""`precast repro DIR`: runs a failed stage again, alone, from the folder that its failure left.

In: a reproducer's folder. Out: what the compiler printed, and the failure again (exit 1), or that there is none.
In its project's build folder, and with `--project`, passes run as they are now: an edit of one can be tried on the
very IR that it failed on. Elsewhere they run as they were, from the folder's own copy.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from precast.errors import SpecError
from precast.job import Job
from precast.passes.digest import digest_use
from precast.reads import digest_file
from precast.scratch import Scratch
from precast.spec.closure import INSTALLED
from precast.worker.blame import blame_pass
from precast.worker.failures import Failure, make_error
from precast.worker.messages import Event, Request, Step
from precast.worker.pool import lost_failure
from precast.worker.process import WorkerLost, WorkerProcess
from precast.worker.reproducer import read_reproducer

HELP = "Run a failed stage again from its reproducer."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, metavar="DIR", help="a folder in build/repro")
    parser.add_argument(
        "--project", dest="checkout", type=Path, metavar="DIR", help="a checkout whose sources and passes are to run"
    )
    parser.add_argument("--time-limit", type=float, metavar="SECONDS", help="instead of the limit that the job had")


def run(arguments: argparse.Namespace) -> int:
    if arguments.checkout and not arguments.checkout.is_dir():
        raise SpecError(f"there is no folder `{arguments.checkout}`")
    request = read_reproducer(arguments.folder, arguments.checkout)
    if arguments.time_limit is not None:
        request = replace(request, job=replace(request.job, time_limit_s=arguments.time_limit))
    request = replace(request, job=_with_files_of_today(request.job))
    with Scratch() as scratch:
        failure, step, printed = run_request(replace(request, job=_apart(request, scratch)))
    if printed.strip():
        print(printed.rstrip())
    if failure is not None:
        raise make_error(request.job, step.stage, step.pass_name, failure, "")
    print(f"{request.job.unit}: {f'stage {request.stage}' if request.stage else 'every stage'} runs without failure")
    return 0


def _with_files_of_today(job: Job) -> Job:
    """The job with the digests that its sources and its passes' files have now; says which have changed."""
    project = Path(job.project)
    sources = tuple((name, _digest_today(project, name) or digest) for name, digest in job.sources)
    for name, _ in set(job.sources).difference(sources):
        print(f"{name} has changed since the failure")
    today = tuple(replace(use, digest=digest_use(use, project)) for use in job.passes)
    for use, before in zip(today, job.passes, strict=True):
        if use != before:
            print(f"pass {use.name}: its files have changed since the failure")
    return replace(job, passes=today, sources=sources)


def _digest_today(project: Path, name: str) -> str:
    """The digest of one of the project's own files; "" for what is installed, or not there."""
    return "" if name.startswith(INSTALLED) else digest_file(project / name)


def _apart(request: Request, scratch: Path) -> Job:
    """The job with a store and a folder of its own: nothing found, nothing of the build's touched."""
    return replace(request.job, store=str(scratch / "store"), output=str(scratch / "unit"))


def run_request(request: Request) -> tuple[Failure | None, Step, str]:
    """Runs one request in a fresh worker: why it failed, at which step, and what the compiler printed."""
    step = Step(request.stage)

    def remember(current: Step) -> None:
        nonlocal step
        step = current

    worker = WorkerProcess(request.job)
    try:
        event = worker.run(request, remember)
    except WorkerLost as lost:
        failure = blame_pass(lost_failure(lost), lost.last_words, request.job, step.pass_name)
        event = Event("failed", failure=failure)
    try:
        return event.failure, step, worker.last_words()
    finally:
        worker.stop()
