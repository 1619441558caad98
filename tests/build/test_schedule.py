"""When workers are started, and in which order units are compiled: never for nothing, and without a trace in outputs.

On the stand-in engine, which compiles nothing.
"""

import json
import sqlite3
import subprocess
import sys

import pytest
from test_trouble import make_tree

from precast.graph.index import Index
from precast.graph.order import Cost

# A build that tells how many workers it started, and how many threads had one when SCons was about to be imported.
WATCHED = """
import json, sys, threading
from precast.cli import main

workers, ready = [], []

def watch(event, arguments):
    if event == "subprocess.Popen" and "precast.worker" in arguments[1]:
        workers.append(arguments[1])
    elif event == "import" and arguments[0] == "SCons.Script" and not ready:
        ready.append(sum(thread.name == "precast-worker" for thread in threading.enumerate()))

sys.addaudithook(watch)
code = main(["build", *sys.argv[1:]])
print(json.dumps({"code": code, "workers": len(workers), "ready": ready}))
"""


@pytest.fixture(scope="module")
def primer(tmp_path_factory):
    tree = make_tree(tmp_path_factory.mktemp("primer") / "p", kernels=1)
    assert tree.build().code == 0
    return tree


@pytest.fixture
def tree(primer, tmp_path):
    tree = make_tree(tmp_path / "p")
    tree.prime(primer)
    return tree


def watched(tree, *words):
    command = [sys.executable, "-c", WATCHED, "--project", str(tree.folder), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def test_workers_are_started_for_what_is_stale_while_scons_is_loaded(tree):
    (tree.folder / "SConstruct").unlink()
    assert watched(tree, "-j2") == {"code": 0, "workers": 2, "ready": [2]}
    assert watched(tree, "-j2") == {"code": 0, "workers": 0, "ready": []}
    tree.edit("kernels/k1.py", "value + 1", "value + 2")
    assert watched(tree, "-j8") == {"code": 0, "workers": 1, "ready": []}  # so little is made without SCons
    (tree.folder / "generated/demo/current").unlink()  # only the release is stale
    assert watched(tree, "-j2") == {"code": 0, "workers": 0, "ready": [0]}


def test_a_worker_is_started_for_an_edit_while_scons_is_loaded(tree):
    assert watched(tree, "-j2")["code"] == 0
    tree.edit("kernels/k1.py", "value + 1", "value + 2")
    assert watched(tree, "-j8") == {"code": 0, "workers": 1, "ready": [1]}


def test_workers_wait_for_a_build_script_that_moved(tree):
    tree.edit("SConstruct", "import precast", "import precast  # and no more")
    assert watched(tree, "-j2") == {"code": 0, "workers": 2, "ready": [0]}
    assert watched(tree, "-j2") == {"code": 0, "workers": 0, "ready": []}


def compiled_order(build):
    return [
        event["step"].partition(":")[0]
        for event in build.events
        if event["event"] == "started" and "@" in event["step"]
    ]


def set_seconds(tree, seconds):
    """Writes how long units took, by kernel, into the tree's index."""
    index = Index(tree.folder / "build/index.sqlite", tree.folder)
    for name in index.steps:
        if (kernel := name.partition(":")[0]) in seconds:
            step = index.step(name)
            index.record(name, step.key, step.inputs, step.outputs, f"{seconds[kernel]} 0")
    index.close()


def test_what_took_longest_is_compiled_first_and_leaves_no_trace(tree):
    first = tree.build("-j1")
    assert compiled_order(first) == ["k1", "k2", "k0"]  # k0 is known to take no time
    with sqlite3.connect(tree.folder / "build/index.sqlite") as index:
        times = dict(index.execute("SELECT name, note FROM steps WHERE name LIKE 'k%'"))
        assert len(times) == 3 and all(Cost.parse(note).seconds >= 0 for note in times.values())
    set_seconds(tree, {f"k{number}": str(number + 1.5) for number in range(3)})
    for path in (tree.folder / "build/store/records").rglob("*"):
        path.unlink() if path.is_file() else None
    for path in (tree.folder / "build/units").rglob("facts.json"):
        path.unlink()
    second = tree.build("-j1")
    assert compiled_order(second) == ["k2", "k1", "k0"] and second.summary["built"] == 3
    assert second.release == first.release
    assert tree.build("-j1").steps == [] and tree.scons().steps == []


def test_time_of_a_unit_that_the_store_had_is_not_kept(tree):
    tree.build()
    set_seconds(tree, {"k0": "7.5"})
    tree.edit("kernels/k0.py", "import triton\n", "# a comment\nimport triton\n")
    assert tree.build().summary["reused"] == 3
    with sqlite3.connect(tree.folder / "build/index.sqlite") as index:
        assert index.execute("SELECT note FROM steps WHERE name LIKE 'k0:%'").fetchall() == [("7.5 0",)]


def test_what_was_compiled_of_c_is_not_compiled_again(tmp_path):
    tree = make_tree(tmp_path / "p", kernels=1)
    times = []
    for number in range(3):
        tree.edit("kernels/k0.py", "value + 1" + " + 1" * number, "value + 1" + " + 1" * (number + 1))
        build = tree.build()
        assert build.summary["built"] == 1 and ("library" in build.steps) == (number == 0)
        times.append({path: path.stat().st_mtime_ns for path in (tree.folder / "build/objects").rglob("*.o")})
    assert len(times[0]) > 5 and times[0] == times[1] == times[2]
