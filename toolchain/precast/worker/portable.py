"""A job without its places, so that it runs in another folder or on another machine.

In: a job of this machine. Out: the same with paths relative to the project, and back in another folder; the files of
the project that it is made of. What is installed is no part of that: it is a tool, and has an identity.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from precast.job import Job
from precast.spec.closure import INSTALLED


def movable_job(job: Job) -> Job:
    """The job with its paths relative to the project, and without those that a run elsewhere has its own of."""
    project = Path(job.project)
    ptxas = Path(job.settings.ptxas)
    if ptxas.is_relative_to(project):
        job = replace(job, settings=replace(job.settings, ptxas=os.path.relpath(ptxas, project)))
    found = tuple(os.path.relpath(each, project) for each in job.python_path)
    return replace(job, project="", python_path=found, store="", output="")


def placed_job(job: Job, project: Path) -> Job:
    """The job in a project's folder: `movable_job` undone."""
    settings = replace(job.settings, ptxas=str(project / job.settings.ptxas)) if job.settings.ptxas else job.settings
    found = tuple(os.path.normpath(project / each) for each in job.python_path)
    return replace(job, project=str(project), python_path=found, settings=settings)


def project_files(job: Job) -> Iterator[str]:
    """Every file inside the project that the kernel or one of its passes is made of."""
    yield from (name for name in _named_files(job) if _is_inside(name))


def is_movable(job: Job) -> bool:
    """Whether all that the job needs lies in its project or is a tool that another machine can have."""
    folders = (os.path.relpath(each, job.project) for each in job.python_path)
    outside = any(use.outside for use in job.passes)
    return not job.settings.ptxas and not outside and all(map(_is_inside, (*_named_files(job), *folders)))


def _named_files(job: Job) -> Iterator[str]:
    yield from (name for name, _ in job.sources if not name.startswith(INSTALLED))
    yield from (file for use in job.passes for file in use.files if ":" not in file)


def _is_inside(name: str) -> bool:
    return not os.path.isabs(name) and ".." not in Path(name).parts
