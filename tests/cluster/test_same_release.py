"""However a project is built, its release is the same, byte for byte."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "robust"))

from builds import make_tree, read_release
from clusters import DaskCluster, RayCluster
from tree import Tree

TARGETS = ("cuda:90", "hip:gfx942")
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
Make = Callable[[str], Tree]


@pytest.fixture(scope="module")
def make(tmp_path_factory) -> Make:
    """A folder with the project's sources, by its name; its C is compiled already, though of another project."""
    root = tmp_path_factory.mktemp("same")

    def make_project(name: str) -> Tree:
        return make_tree(root / name / "p", 3, "sleep 0.01", TARGETS)

    return make_project


@pytest.fixture(scope="module")
def wanted(make) -> dict[str, str]:
    """The release that one job at a time makes of nothing, C included."""
    tree = make("first")
    shutil.rmtree(tree.folder / "build")
    assert tree.build("-j1", PYTHONHASHSEED="1").code == 0
    return read_release(tree)


def check(tree: Tree, wanted: dict[str, str], *words: str, compiled: int = 6, **environment: str) -> None:
    build = tree.build(*words, **environment)
    assert (build.code, len(build.compiled)) == (0, compiled), build.err
    assert read_release(tree) == wanted


@pytest.mark.all
def test_by_many_jobs_elsewhere(make, wanted):
    tree = make("elsewhere/a deeper place ü")
    shutil.rmtree(tree.folder / "build")
    check(tree, wanted, "-j8", PYTHONHASHSEED="77", TZ="Asia/Tokyo", USER="somebody")


@pytest.mark.all
def test_in_another_locale(make, wanted):
    check(make("locale"), wanted, **ASCII)


@pytest.mark.all
def test_by_scons(make, wanted):
    tree = make("scons")
    assert tree.scons("-j2").code == 0
    assert read_release(tree) == wanted


@pytest.mark.all
def test_out_of_a_cache(make, wanted, tmp_path):
    check(make("giver"), wanted, "--cache", str(tmp_path))
    check(make("taker"), wanted, "--cache", str(tmp_path), compiled=0)


@pytest.mark.all
def test_after_edits_that_were_taken_back(make, wanted):
    tree = make("edited")
    check(tree, wanted)
    tree.edit("kernels/k1.py", "value + 1", "value + 2")
    assert tree.build().code == 0 and read_release(tree) != wanted
    tree.edit("kernels/k1.py", "value + 2", "value + 1")
    check(tree, wanted, compiled=0)


@pytest.mark.all
def test_merged_from_parts(make, wanted, tmp_path):
    parts = [make(f"part{number}").build("--target", target).release for number, target in enumerate(TARGETS)]
    command = [sys.executable, "-m", "precast", "merge", *map(str, parts)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    merged = Tree.__new__(Tree)
    merged.folder = tmp_path
    assert read_release(merged) == wanted


@pytest.mark.all
@pytest.mark.parametrize("kind", [DaskCluster, RayCluster], ids=["dask", "ray"])
def test_by_a_cluster(request, make, wanted, tmp_path, kind):
    request.getfixturevalue("dask" if kind is DaskCluster else "ray")
    cluster = kind(tmp_path)
    try:
        if isinstance(cluster, DaskCluster):
            cluster.add_worker(jobs=2)
        check(make(kind.__name__), wanted, "--executor", cluster.url)
    finally:
        cluster.stop()
