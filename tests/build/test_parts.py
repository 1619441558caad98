"""Builds of a part of a project, the current release, and what decides nothing in a build."""

import json
import subprocess
import sys

import pytest
from tree import Tree

from precast.release.manifest import read_manifest

pytestmark = pytest.mark.all

STANDIN = '[tool.precast.triton]\nPRECAST_ENGINE = "stand-in"\n'


@pytest.fixture
def tree(tmp_path):
    made = Tree(tmp_path, more=STANDIN)
    made.add_kernel("one", "value")
    made.add_kernel("two", "value")
    return made


def current(tree):
    return (tree.folder / "generated/demo/current").resolve()


def test_a_part_becomes_the_current_release_only_where_nothing_is_lost(tree):
    part = tree.build("--kernel", "one")
    assert current(tree) == part.release  # there was none
    pointer = json.loads((tree.folder / "generated/demo/release.json").read_text())
    assert pointer["version"] == part.release.name
    whole = tree.build()
    assert current(tree) == whole.release != part.release
    other = tree.build("--target", "cuda:*")
    assert {each.target for each in read_manifest(other.release).units} == {"cuda:90"}
    assert other.release not in (whole.release, part.release)
    assert current(tree) == whole.release
    assert json.loads((tree.folder / "generated/demo/release.json").read_text())["version"] == whole.release.name
    tree.edit("kernels/one.py", "value, mask", "value + 2, mask")
    assert current(tree) == whole.release and tree.build("--kernel", "one").release != whole.release
    assert current(tree) == whole.release
    assert current(tree) != tree.build().release == current(tree)


def test_a_part_that_holds_all_of_the_current_release_becomes_it(tree):
    tree.build("--kernel", "one")
    both = tree.build("--kernel", "one", "--kernel", "two")
    assert current(tree) == both.release


def test_a_part_is_built_once(tree):
    tree.build()
    first = tree.build("--kernel", "one")
    again = tree.build("--kernel", "one")
    assert (again.steps, again.release) == ([], first.release)


def test_flags_of_scons_in_the_environment_decide_nothing(tree):
    build = tree.build(SCONSFLAGS="-n --no-such-option")
    assert build.release.is_dir()
    assert [each["message"] for each in build.events if each["event"] == "warning"] == [
        "SCONSFLAGS in the environment: ignored; only plain `scons` hears it"
    ]


def test_a_grid_reaches_the_release_and_compiles_nothing(tree):
    first = tree.build()
    tree.edit("kernels/one.toml", 'grid = ["cdiv(n, BLOCK)"', 'grid = ["2 * cdiv(n, BLOCK)"')
    second = tree.build()
    assert second.compiled == [] and second.release != first.release
    index = (second.release / "index.bin").read_bytes()
    assert index != (first.release / "index.bin").read_bytes()


def test_a_renamed_project_builds(tmp_path):
    tree = Tree(tmp_path, targets=("cpu:x86-64-v3",))
    tree.add_kernel("one", "value")
    tree.build()
    tree.edit("pyproject.toml", 'name = "demo"', 'name = "other"')
    assert tree.build().release.parent.name == "other"
    assert tree.build().steps == []


@pytest.mark.parametrize("words", ["echo no version here", "exit 3"])
def test_an_assembler_that_triton_cannot_use_is_an_error(tmp_path, words):
    tree = Tree(tmp_path, targets=("cuda:90",), more='[tool.precast.tools]\nptxas = "tools/ptxas"\n')
    tree.add_kernel("one", "value")
    tree.write("tools/ptxas", f"#!/bin/sh\n{words}\n")
    (tmp_path / "tools/ptxas").chmod(0o755)
    build = tree.build()
    assert build.code == 1
    (failed,) = (each for each in build.events if each["event"] == "failed")
    assert "is no assembler that Triton can use" in failed["message"], failed


def test_a_project_is_found_by_a_relative_path(tmp_path):
    tree = Tree(tmp_path / "shop", more=STANDIN)
    tree.add_kernel("one", "value")
    command = [sys.executable, "-m", "precast", "build", "--project", "shop", "--check=100"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(each.name for each in tmp_path.iterdir()) == ["shop"] and not (tree.folder / "shop").exists()
    assert tree.build().steps == []
