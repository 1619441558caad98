"""Builds by clusters on this machine: the same release, and what is lost costs a warning and no unit."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "robust"))

from builds import build_clean, make_tree, read_release
from clusters import DaskCluster, RayCluster, free_port
from gate import PATIENCE_S, Gate

import precast
from precast.worker.descendants import tree_of

NO_BYTECODE = shutil.ignore_patterns("__pycache__")
TARGETS = ("cuda:90", "hip:gfx942")


def progress(events: list[dict]) -> Counter[tuple[str, str]]:
    """What was told of each step."""
    return Counter((event["event"], event.get("step", "")) for event in events)


def warnings(events: list[dict]) -> list[str]:
    return [event["message"] for event in events if event["event"] == "warning"]


@pytest.fixture
def dask_cluster(dask, tmp_path):
    cluster = DaskCluster(tmp_path)
    yield cluster
    cluster.stop()


@pytest.mark.all
def test_dask_makes_the_same_release_and_may_be_lost(dask_cluster, tmp_path):
    for _ in range(2):
        dask_cluster.add_worker()
    tree = make_tree(tmp_path / "p", 4, "", TARGETS)
    build = tree.build("--executor", dask_cluster.url)
    assert (build.code, len(build.compiled), warnings(build.events)) == (0, 8, []), build.err
    local = make_tree(tmp_path / "local", 4, "", TARGETS)
    assert progress(build.events) == progress(local.build().events)
    assert read_release(tree) == read_release(local)
    assert tree.build("--executor", dask_cluster.url).steps == []
    tree.edit("kernels/k0.py", "import triton\n", "# stand-in: crash ttgir\nimport triton\n")
    build = tree.build("-k", "--executor", dask_cluster.url)
    failed = {event["step"] for event in build.events if event["event"] == "failed"}
    assert build.code == 1 and len(failed) == 2 and all(step.startswith("k0:") for step in failed)
    tree.edit("kernels/k0.py", "# stand-in: crash ttgir\n", "")
    build = lose_scheduler(tree, dask_cluster, signal.SIGKILL)
    assert [each for each in warnings(build) if "not used" in each] == [
        f"{dask_cluster.url} is not used from here on: the connection to its scheduler is lost; "
        "the rest is compiled here"
    ]
    assert read_release(tree) == build_clean(tree, tmp_path / "clean2")


@pytest.mark.all
def test_a_scheduler_that_hangs_is_not_waited_for(dask_cluster, tmp_path):
    dask_cluster.add_worker()
    tree = make_tree(tmp_path / "p", 4)
    build = lose_scheduler(tree, dask_cluster, signal.SIGSTOP, DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT="3s")
    dask_cluster.scheduler.send_signal(signal.SIGCONT)
    assert warnings(build) == [
        f"{dask_cluster.url} is not used from here on: its scheduler has not answered for 3 s; "
        "the rest is compiled here"
    ]
    assert read_release(tree) == build_clean(tree, tmp_path / "clean")


def lose_scheduler(tree, cluster: DaskCluster, number: int, **variables: str) -> list[dict]:
    """The events of a build whose scheduler gets a signal while units are compiled there."""
    gate = make_gate(tree, 4)
    command = [sys.executable, "-m", "precast", "build", "--json", "--executor", cluster.url]
    environment = {**os.environ, **variables}
    with subprocess.Popen(command, cwd=tree.folder, stdout=subprocess.PIPE, text=True, env=environment) as process:
        gate.wait_until_reached()
        cluster.scheduler.send_signal(number)
        gate.open()
        out, _ = process.communicate()
    assert process.returncode == 0
    return list(map(json.loads, out.splitlines()))


def make_gate(tree, count: int) -> Gate:
    """A gate for all kernels of a tree, which goes with them to another machine."""
    kernels = [f"k{number}" for number in range(count)]
    gate = Gate(tree, *kernels)
    for kernel in kernels:  # what a kernel imports travels with it
        tree.edit(f"kernels/{kernel}.py", "import triton\n", "import triton\nimport gate\n")
    return gate


@pytest.mark.all
def test_a_build_that_is_interrupted_leaves_no_job_at_dask(dask_cluster, tmp_path):
    worker = dask_cluster.add_worker(jobs=2)
    interrupt_build(tmp_path, dask_cluster.url, worker.pid, signal.SIGINT)


@pytest.mark.soak
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_build_that_is_ended_leaves_no_job_at_dask(dask_cluster, tmp_path, number):
    worker = dask_cluster.add_worker(jobs=2)
    interrupt_build(tmp_path, dask_cluster.url, worker.pid, number)


@pytest.mark.soak
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_build_that_is_interrupted_leaves_no_job_at_ray(ray, tmp_path, number):
    cluster = RayCluster(tmp_path)
    try:
        interrupt_build(tmp_path, cluster.url, cluster.head.pid, number)
    finally:
        cluster.stop()


def interrupt_build(folder: Path, address: str, cluster: int, number: int) -> None:
    """Sends a build a signal while units are compiled by a cluster of this process and those below it; then no unit is
    any more, and the next build has the cluster to itself."""
    tree = make_tree(folder / "p", 4)
    gate = make_gate(tree, 4)
    command = [sys.executable, "-m", "precast", "build", "--executor", address]
    with subprocess.Popen(command, cwd=tree.folder, stderr=subprocess.PIPE, text=True) as process:
        gate.wait_until_reached()
        compiling = find_compiling(cluster)
        assert compiling
        process.send_signal(number)
        said = process.communicate(timeout=PATIENCE_S)[1]
    if number == signal.SIGKILL:
        assert process.returncode == -number
    else:  # SCons may be the one that hears it
        assert process.returncode in (130, 128 + number) and said == "interrupted\n"
    deadline = time.monotonic() + PATIENCE_S
    while left := compiling & find_compiling(cluster):
        assert time.monotonic() < deadline, left
        time.sleep(0.05)
    gate.open()
    build = tree.build("--executor", address)
    assert (build.code, len(build.compiled), warnings(build.events)) == (0, 4, []), build.err


def find_compiling(cluster: int) -> set[int]:
    """The worker processes below a process."""
    found = set()
    for each in tree_of(cluster):
        with contextlib.suppress(OSError):
            if b"precast.worker" in Path(f"/proc/{each}/cmdline").read_bytes():
                found.add(each)
    return found


@pytest.mark.soak
def test_dask_workers_come_and_go(dask_cluster, tmp_path):
    workers = [dask_cluster.add_worker() for _ in range(2)]
    tree = make_tree(tmp_path / "p", 20, "sleep 0.1", TARGETS)
    command = [sys.executable, "-m", "precast", "build", "--json", "--executor", dask_cluster.url]
    with subprocess.Popen(command, cwd=tree.folder, stdout=subprocess.PIPE, text=True) as process:
        ended = 0
        for line in process.stdout:
            ended += json.loads(line)["event"] == "ended"
            if ended == 3 and len(workers) == 2:
                workers.append(dask_cluster.add_worker())
                workers[0].send_signal(signal.SIGKILL)
    assert process.returncode == 0
    assert read_release(tree) == build_clean(tree, tmp_path / "clean")


@pytest.mark.soak
def test_workers_of_another_precast_get_no_jobs(dask_cluster, tmp_path):
    shutil.copytree(Path(precast.__file__).parent, tmp_path / "other/precast", ignore=NO_BYTECODE)
    with open(tmp_path / "other/precast/worker/walk.py", "a") as source:
        source.write("# another\n")
    other = {"PYTHONPATH": str(tmp_path / "other")}
    dask_cluster.add_worker(**other)
    tree, later = (make_tree(tmp_path / name / "p", 4, "", TARGETS) for name in ("one", "two"))
    build = tree.build("--executor", dask_cluster.url)
    assert (build.code, len(build.compiled)) == (0, 8), build.err
    refused, lost = warnings(build.events)
    assert re.fullmatch(
        f"{dask_cluster.url}: worker tcp://[0-9.:]+ gets no jobs: precast.* is .+ there and .+ here", refused
    )
    assert lost == (
        f"{dask_cluster.url} is not used from here on: none of its workers has the tools of this build; "
        "the rest is compiled here"
    )
    dask_cluster.add_worker()
    build = later.build("--executor", dask_cluster.url)
    assert (build.code, len(build.compiled)) == (0, 8), build.err
    assert len(warnings(build.events)) <= 1  # of the worker that has others, if it was asked
    assert read_release(tree) == read_release(later) == build_clean(tree, tmp_path / "clean")


@pytest.mark.all
def test_a_scheduler_that_is_not_there_is_said_in_a_sentence(dask, tmp_path):
    check_absent(tmp_path, f"dask://127.0.0.1:{free_port()}", "no scheduler answers there")


@pytest.mark.soak
def test_a_head_that_is_not_there_is_said_in_a_sentence(ray, tmp_path):
    check_absent(tmp_path, f"ray://127.0.0.1:{free_port()}", "no Ray head answers there (ConnectionError)")


def check_absent(tmp_path: Path, address: str, cause: str) -> None:
    build = make_tree(tmp_path / "p", 1).build("--executor", address)
    assert build.code == 1
    assert build.summary["message"] == f"{address} cannot be used: {cause}"
