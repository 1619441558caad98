"""A real release serves a program under this Triton and, in the second tier, under each other that it is for."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from digested_kernels import digest_all

from precast.engines.source_digest import digest_source

HERE = Path(__file__).parent
SETTINGS = '[project]\nname = "demo"\nversion = "1.0"\n\n[tool.precast]\ntargets = ["cpu:native"]\n'


def run(*words: object, **environment: str) -> str:
    """What a Python program prints that must succeed."""
    keep = {name: value for name, value in os.environ.items() if not name.startswith("TRITON_")}
    command = [sys.executable, *map(str, words)]
    done = subprocess.run(command, env={**keep, **environment}, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build(folder: Path) -> Path:
    """The folder of the built package."""
    run("-m", "precast", "build", "--project", folder)
    return folder / "generated" / "demo" / "current" / "python"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, sconstruct: str) -> Path:
    """A project of the program's kernels, built."""
    sys.path.insert(0, str(HERE))
    from served_program import SPEC

    folder = tmp_path_factory.mktemp("project")
    (folder / "kernels").mkdir()
    (folder / "pyproject.toml").write_text(SETTINGS)
    (folder / "SConstruct").write_text(sconstruct)
    (folder / "kernels" / "served.toml").write_text(SPEC)
    shutil.copy(HERE / "served_program.py", folder / "kernels")
    build(folder)
    return folder


def check_program(folder: Path, package: Path, version: str, **environment: str) -> str:
    """Runs the program, served; what it says of its last call."""
    found, _, said = run(folder / "kernels" / "served_program.py", package, **environment).partition(" ")
    assert found == version
    return said.strip()


def test_program_is_served_and_a_refused_call_says_how_to_be(project, tmp_path):
    import triton

    folder = tmp_path / "project"
    shutil.copytree(project, folder, symlinks=True)
    package = folder / "generated" / "demo" / "current" / "python"
    said = check_program(folder, package, triton.__version__)
    assert 'no variant has BLOCK=64, MODE="halved"; this would make it:\n[kernel.plain_2]\n' in said
    (folder / "kernels" / "missing.toml").write_text(said.partition("make it:\n")[2])
    assert check_program(folder, build(folder), triton.__version__) == "halved True"


@pytest.mark.all
def test_program_is_served_under_each_triton(project, other_triton, tmp_path):
    version, folder = other_triton
    package = project / "generated" / "demo" / "current" / "python"
    said = check_program(project, package, version, PYTHONPATH=str(folder))
    assert "this would make it:\n" in said
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    own = digest_all(tmp_path / "here", digest_source)
    printed = run(HERE / "digested_kernels.py", tmp_path / "there", package, "demo", PYTHONPATH=str(folder))
    assert json.loads(printed) == own and all(own.values())
