"""A project that `precast init` makes: it builds, runs, is cleaned, and nothing is ever written over."""

import json
import os
import re
import subprocess
import sys

import pytest

from precast.cli import main
from precast.store import Store


def run(*words, cwd):
    keep = {name: value for name, value in os.environ.items() if not name.startswith("TRITON_")}
    return subprocess.run([sys.executable, *words], cwd=cwd, env=keep, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("init") / "first-kernels"
    assert main(["init", str(folder)]) == 0
    return folder


def test_new_project_builds_and_runs(project):
    build = run("-m", "precast", "build", cwd=project)
    assert build.returncode == 0, build.stderr
    assert "6 built, 0 reused, 0 failed; release " in build.stdout.splitlines()[-1]
    ran = run("run.py", cwd=project)
    assert (ran.returncode, ran.stderr) == (0, "") and ran.stdout.startswith("largest error ")
    again = run("-m", "SCons", cwd=project)
    assert again.returncode == 0 and "0 built, 6 reused, 0 failed" in again.stdout


def test_its_pass_leaves_findings_in_the_manifest(project):
    manifest = json.loads((project / "generated/first_kernels/current/manifest.json").read_text())
    gpu = [unit for unit in manifest["units"] if not unit["target"].startswith("cpu")]
    assert len(gpu) == 4
    for unit in gpu:
        (finding,) = unit["findings"]
        assert json.loads(finding["data"])["dialect"] == "arith"


def test_cleaning(project, capsys):
    release = (project / "generated/first_kernels/current").resolve()
    old = project / "build/units/cuda-90/renamed-0123456789ab"
    old.mkdir()
    store = Store(project / "build/store")
    useless = store.put(b"of no use")
    capsys.readouterr()
    assert main(["clean", "--project", str(project)]) == 0
    assert re.fullmatch(r"removed \d+ unused entries of the store\n", capsys.readouterr().out)
    assert release.is_dir() and not old.exists() and store.get(useless) is None
    again = run("-m", "precast", "build", "--json", cwd=project)
    assert json.loads(again.stdout)["reused"] == 6  # one line: nothing ran
    assert main(["clean", "--project", str(project), "--all"]) == 0
    assert not (project / "build").exists() and not release.exists()
    assert main(["clean", "--project", str(project)]) == 0


def test_nothing_is_written_over(project, capsys):
    assert main(["init", str(project)]) == 1
    assert capsys.readouterr().err == (
        f"error: {project}/pyproject.toml is there already\nhint: init writes over nothing: name a new folder\n"
    )
