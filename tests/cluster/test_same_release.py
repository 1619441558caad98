"""However a project is built, its release is the same, byte for byte."""

import contextlib
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "robust"))

from builds import make_tree, read_release
from clusters import DaskCluster, RayCluster
from tree import COMPILER, SHARED, Tree

import precast

UNREACHABLE = ("connection", "name resolution", "timed out", "proxyerror", "network is unreachable")
TARGETS = ("cuda:90", "hip:gfx942")
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
OTHER = {"user": 12345, "group": 12345, "extra_groups": ()}  # who owns nothing
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


@pytest.fixture
def others_python(tmp_path_factory) -> Iterator[str]:
    """This Python, with all that it has, as it can be run by another user, who may not enter this one's home."""
    if os.geteuid():
        pytest.skip("it takes root, who can be another user")
    name = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    for found in (sys._base_executable, *(f"{folder}/{name}" for folder in ("/usr/local/bin", "/usr/bin"))):
        with contextlib.suppress(OSError):
            if not subprocess.run([found, "-c", "import venv"], capture_output=True, check=False, **OTHER).returncode:
                break
    else:
        pytest.skip(f"another user can run no {name}")
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        subprocess.run([found, "-m", "venv", "--without-pip", f"{folder}/environment"], check=True, capture_output=True)
        (packages,) = Path(folder).glob("environment/lib/python3*/site-packages")
        (packages / "shared.pth").write_text(f"{Path(precast.__file__).parents[1]}\n{sysconfig.get_path('purelib')}\n")
        yield f"{folder}/environment/bin/python"


@pytest.mark.all
def test_by_another_user(wanted, others_python):
    folder = Path(others_python).parents[2]
    tree = make_tree(folder / "p", 3, "sleep 0.01", TARGETS)
    shutil.rmtree(tree.folder / "build")
    tree.edit("SConstruct", COMPILER, "cc")
    subprocess.run(["chown", "-R", f"{OTHER['user']}:{OTHER['group']}", tree.folder], check=True)
    environment = {**os.environ, "HOME": str(folder / "home"), "USER": "somebody", "TZ": "Asia/Tokyo"}
    command = [others_python, "-m", "precast", "build", "--json", "-j2"]
    done = subprocess.run(command, cwd=tree.folder, env=environment, capture_output=True, text=True, timeout=600,
                          check=False, umask=0o077, **OTHER)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["built"] == 6
    assert (tree.folder / "generated/demo/current").resolve().stat().st_uid == OTHER["user"]
    assert read_release(tree) == wanted


@pytest.mark.all
def test_by_scons(make, wanted):
    tree = make("scons")
    assert tree.scons("-j2").code == 0
    assert read_release(tree) == wanted


def find_other_python() -> str:
    """Another Python that Precast runs on, on the path or installed beside this one; "" where none is found."""
    ask = "import sys, venv; print(sys.version_info >= (3, 10), *sys.version_info[:2], sys.executable)"
    here = [str(each) for each in sys.version_info[:2]]
    beside = sorted(map(str, Path(sys.base_prefix).parent.glob("*/bin/python3")))
    for found in (*(shutil.which(f"python3.{minor}") for minor in range(10, 15)), *beside):
        done = found and subprocess.run([found, "-c", ask], capture_output=True, text=True, check=False)
        words = done.stdout.split(None, 3) if done and not done.returncode else []
        if words[:1] == ["True"] and words[1:3] != here:
            return words[3].strip()
    return ""


@pytest.fixture
def other_python(tmp_path) -> str:
    """Another Python's environment, which has what Precast needs and this very Precast."""
    python = find_other_python()
    if not python:
        pytest.skip("it takes another Python, 3.10 or later")
    folder = tmp_path / "environment"
    subprocess.run([python, "-m", "venv", folder], check=True, capture_output=True)
    needs = [each for each in importlib.metadata.requires("precast") or () if "extra ==" not in each]
    command = [folder / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *needs]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode and any(word in done.stderr.lower() for word in UNREACHABLE):
        pytest.skip("the package index cannot be reached, so the other Python has nothing to run Precast with")
    assert not done.returncode, done.stderr
    (packages,) = folder.glob("lib/python3*/site-packages")
    (packages / "precast.pth").write_text(f"{Path(precast.__file__).parents[1]}\n")
    return str(folder / "bin/python")


@pytest.mark.all
def test_by_another_python(make, wanted, other_python):
    tree = make("python")
    command = [other_python, "-m", "precast", "build", "--json", "-j2"]
    done = subprocess.run(command, cwd=tree.folder, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["built"] == 6
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


CLUSTERS = pytest.mark.parametrize("kind", [DaskCluster, RayCluster], ids=["dask", "ray"])


@pytest.fixture
def cluster(request, kind, tmp_path) -> Iterator[DaskCluster | RayCluster]:
    """A cluster of two processors."""
    request.getfixturevalue("dask" if kind is DaskCluster else "ray")
    made = kind(tmp_path)
    if isinstance(made, DaskCluster):
        made.add_worker(jobs=2)
    yield made
    made.stop()


@pytest.mark.all
@CLUSTERS
def test_by_a_cluster(make, wanted, cluster):
    check(make(type(cluster).__name__), wanted, "--executor", cluster.url)


@pytest.mark.soak
@CLUSTERS
def test_machine_code_by_a_cluster(tmp_path, cluster):
    """Of the compilers themselves, and with an import that travels."""
    trees = []
    for name in ("here", "there"):
        tree = Tree(tmp_path / name, targets=("cuda:90", "hip:gfx942", "cpu:x86-64-v3"))
        tree.write("kernels/shared.py", SHARED)
        tree.add_kernel("scale", "twice(value) + value", "from shared import twice", dtypes='["fp32", "fp16"]')
        tree.add_kernel("copy", "value")
        trees.append(tree)
    here, there = trees
    wanted = here.build()
    build = there.build("--executor", cluster.url)
    assert (build.code, build.compiled) == (0, wanted.compiled), build.err
    assert not [event for event in build.events if event["event"] == "warning"]
    assert read_release(there) == read_release(here)
