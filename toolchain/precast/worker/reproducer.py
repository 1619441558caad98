"""A failed stage in a folder that runs alone, on any machine that has the tools: `precast repro DIR`.

In: the request that failed and the text it failed on. Out: `build/repro/<slug>-<n>/` with `job.json`, the input, the
kernel's sources and the files of its passes, what was said and a README; and back. No path in it is absolute but for
files that lie outside of the project.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

from precast.bounded import read_bounded
from precast.codec import CodecError, from_json, to_json
from precast.diagnostic import MESSAGE_FILE, is_long
from precast.engines import input_stage
from precast.errors import ReleaseError, ToolError, printable
from precast.job import Job
from precast.layout import REPRODUCERS, SETTINGS
from precast.passes.digest import read_contents
from precast.store import Store, write_file
from precast.worker.messages import Request, Step
from precast.worker.portable import movable_job, placed_job, project_files

JOB_FILE = "job.json"
FILES = "files"  # the project's, as they were


def write_reproducer(folder: Path, job: Job, step: Step, message: str) -> str:
    """Makes a folder for what failed and returns its path, relative to the project where it can be.

    Empty when no folder can be written: the failure itself is what the user must hear of.
    """
    try:
        place = _free_folder(folder, job)
        request = Request(movable_job(job), step.stage, "", step.carry)
        if step.stage:
            text = Store(job.store).get(step.source) or b""
            request = replace(request, source=f"input.{input_stage(job.unit.stages, step.stage)}")
            write_file(place / request.source, text)
        if step.pass_source:
            before = f"before-{step.pass_name.replace('/', '_')}.mlir"
            write_file(place / before, Store(job.store).get(step.pass_source) or b"")
        write_file(place / JOB_FILE, to_json(request, indent=1).encode() + b"\n")
        _copy_files(place / FILES, job)
        if is_long(message):
            write_file(place / MESSAGE_FILE, message.encode("utf-8", "backslashreplace") + b"\n")
        write_file(place / "README", _readme(job, step, message).encode("utf-8", "backslashreplace"))
    except (OSError, ToolError):
        return ""
    project = Path(job.project)
    return place.relative_to(project).as_posix() if place.is_relative_to(project) else str(place)


def _copy_files(folder: Path, job: Job) -> None:
    for name, data in read_contents(Path(job.project), sorted(set(project_files(job)))).items():
        if data is not None:
            write_file(folder / name, data)


def _free_folder(folder: Path, job: Job) -> Path:
    for number in itertools.count(1):
        place = folder / f"{job.unit.slug}-{number}"
        if not place.exists():
            place.mkdir(parents=True)
            return place
    raise AssertionError("counting ends")


def _readme(job: Job, step: Step, message: str) -> str:
    what = f"stage {step.stage}" if step.stage else "the front end"
    passing = f", pass {step.pass_name}" if step.pass_name else ""
    said = printable(message.partition("\n")[0])
    return (
        f"{job.unit}, {what}{passing}: {said}\n\n"
        "`precast repro DIR` runs it again, where DIR is this folder, wherever it lies. In the project's build folder\n"
        f"the project's passes and sources are used as they are now, elsewhere those in {FILES}/, as they were; those\n"
        "of a checkout with `precast repro DIR --project CHECKOUT`.\n"
    )


def read_reproducer(folder: Path, project: Path | None = None) -> Request:
    """The request in a folder that `write_reproducer` made; `ReleaseError` when it is not one. Its job is placed in
    `project`, by default the one in whose build folder it lies, else in the folder's own copy of what it needs."""
    try:
        request = from_json(read_bounded(folder / JOB_FILE), Request)
    except FileNotFoundError:
        raise ReleaseError(f"{folder} is no reproducer: it has no {JOB_FILE}") from None
    except CodecError as error:
        raise ReleaseError(f"{folder / JOB_FILE} is damaged or from another version of Precast") from error
    place = folder.resolve()
    job = placed_job(request.job, project.resolve() if project else _home_of(place))
    return replace(request, job=job, source=str(place / request.source) if request.source else "")


def _home_of(place: Path) -> Path:
    inside = place.parent.as_posix().endswith(f"/{REPRODUCERS}")
    return place.parents[2] if inside and (place.parents[2] / SETTINGS).is_file() else place / FILES
