"""A failed stage in a folder that runs alone: `precast repro DIR`.

In: the request that failed and the text it failed on. Out: `build/repro/<slug>-<n>/` with `job.json`, the input,
what was said and a README; and back.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

from precast.codec import CodecError, from_json, to_json
from precast.diagnostic import MESSAGE_FILE, is_long
from precast.engines import input_stage
from precast.errors import ReleaseError, ToolError, printable
from precast.job import Job
from precast.store import Store, write_file
from precast.worker.messages import Request, Step

JOB_FILE = "job.json"


def write_reproducer(folder: Path, job: Job, step: Step, message: str) -> str:
    """Makes a folder for what failed and returns its path, relative to the project where it can be.

    Empty when no folder can be written: the failure itself is what the user must hear of.
    """
    try:
        place = _free_folder(folder, job)
        request = Request(job, step.stage, "", step.carry)
        if step.stage:
            text = Store(job.store).get(step.source) or b""
            request = replace(request, source=f"input.{input_stage(job.unit.stages, step.stage)}")
            write_file(place / request.source, text)
        if step.pass_source:
            before = f"before-{step.pass_name.replace('/', '_')}.mlir"
            write_file(place / before, Store(job.store).get(step.pass_source) or b"")
        write_file(place / JOB_FILE, to_json(request, indent=1).encode() + b"\n")
        if is_long(message):
            write_file(place / MESSAGE_FILE, message.encode("utf-8", "backslashreplace") + b"\n")
        write_file(place / "README", _readme(place, job, step, message).encode("utf-8", "backslashreplace"))
    except (OSError, ToolError):
        return ""
    project = Path(job.project)
    return place.relative_to(project).as_posix() if place.is_relative_to(project) else str(place)


def _free_folder(folder: Path, job: Job) -> Path:
    for number in itertools.count(1):
        place = folder / f"{job.unit.slug}-{number}"
        if not place.exists():
            place.mkdir(parents=True)
            return place
    raise AssertionError("counting ends")


def _readme(place: Path, job: Job, step: Step, message: str) -> str:
    what = f"stage {step.stage}" if step.stage else "the front end"
    passing = f", pass {step.pass_name}" if step.pass_name else ""
    said = printable(message.partition("\n")[0])
    return f"`precast repro {place}` runs again: {job.unit}, {what}{passing}: {said}\n"


def read_reproducer(folder: Path) -> Request:
    """The request in a folder that `write_reproducer` made; `ReleaseError` when it is not one."""
    try:
        request = from_json((folder / JOB_FILE).read_bytes(), Request)
    except FileNotFoundError:
        raise ReleaseError(f"{folder} is no reproducer: it has no {JOB_FILE}") from None
    except CodecError as error:
        raise ReleaseError(f"{folder / JOB_FILE} is damaged or from another version of Precast") from error
    return replace(request, source=str((folder / request.source).resolve()) if request.source else "")
