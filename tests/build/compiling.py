"""Jobs for tests of workers and engines: from the projects in this repository, into a folder of the test's own."""

from __future__ import annotations

import dataclasses
import json
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from precast.codec import to_data
from precast.job import Job
from precast.plan import plan_project
from precast.project import read_project
from precast.target import Target

ROOT = Path(__file__).parents[2]
LOADING = ROOT / "tests" / "fixtures" / "loading"


def plan_jobs(project: Path, folder: Path, targets: Iterable[str], kernels: Iterable[str] = ("*",)) -> list[Job]:
    """The jobs of a project for `targets`, named by it or not, with store and outputs in `folder`."""
    if project == LOADING:  # planning writes its own files: not into this repository
        project = Path(shutil.copytree(project, folder / "loading", dirs_exist_ok=True))
    known = tuple(Target.parse(target) for target in targets)
    found = dataclasses.replace(read_project(project), targets=known)
    plan = plan_project(found, kernels=tuple(kernels))
    return [
        dataclasses.replace(plan.job(each.unit), store=str(folder / "store"), output=str(folder / each.folder))
        for each in plan.units
    ]


def first_of_each_kernel(jobs: Iterable[Job]) -> list[Job]:
    """One job for each kernel and target."""
    return list({(job.unit.kernel, job.unit.target): job for job in reversed(list(jobs))}.values())


def compile_with_triton(jobs: list[Job], folder: Path) -> dict[str, str]:
    """Digests of the images that `triton.compile` makes, by unit."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "jobs.json").write_text(json.dumps([to_data(job) for job in jobs]))
    command = [sys.executable, ROOT / "tests/build/reference.py", folder / "jobs.json", folder / "images.json"]
    subprocess.run(command, check=True, timeout=1200)
    return json.loads((folder / "images.json").read_text())
