"""A program of several kernels and two processes is recorded under Triton's JIT, built, and served as it was."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import tomlkit

HERE = Path(__file__).parent
SETTINGS = '[tool.precast]\nname = "demo"\nversion = "1.0"\ntargets = ["cpu:x86-64-v3"]\npythonpath = ["program"]\n'


def run(folder: Path, *words: object, **more: str) -> subprocess.CompletedProcess[str]:
    """A command in a project, without what this process has set for Triton."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TRITON_", "PYTHONPATH"))}
    environment = {**kept, "TRITON_DEFAULT_BACKEND": "cpu", "TRITON_CACHE_DIR": str(folder / "cache"), **more}
    command = [sys.executable, *map(str, words)]
    return subprocess.run(command, cwd=folder, env=environment, text=True, capture_output=True, timeout=300)


def printed(ran: subprocess.CompletedProcess[str]) -> list[str]:
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout.splitlines()


def record(folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    return run(folder, "-m", "precast", "record", "--", sys.executable, "program/train.py", **more)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "pyproject.toml").write_text(SETTINGS)
    shutil.copytree(HERE / "program", folder / "program")
    return folder


@pytest.fixture(scope="module")
def recorded(project: Path) -> subprocess.CompletedProcess[str]:
    return record(project)


@pytest.fixture(scope="module")
def file(project: Path, recorded: subprocess.CompletedProcess[str]) -> Path:
    printed(recorded)
    return project / "kernels" / "recorded.toml"


def test_a_kernel_of_each_function(project, recorded, file):
    kernels = tomlkit.parse(file.read_text()).unwrap()["kernel"]
    print(file.read_text(), recorded.stderr)
    assert list(kernels) == ["add", "scale", "tuned", "parts", "tile"]


def test_a_second_run_changes_no_byte(project, file):
    before = file.read_bytes()
    ran = record(project, FASTEST="1")
    printed(ran)
    assert file.read_bytes() == before, file.read_text()
    print(ran.stderr)


def test_what_was_recorded_is_built_and_served_with_equal_numbers(project, recorded, file):
    printed(run(project, "-m", "precast", "build"))
    package = project / "generated" / "demo" / "current" / "python"
    served = run(project, "program/train.py", "demo", PYTHONPATH=str(package), TRITON_BACKENDS_IN_TREE="1")
    assert printed(served) == printed(recorded)
