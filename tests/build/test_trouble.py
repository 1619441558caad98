"""What can go wrong around a build: units that fail, builds that are killed, disks that are full, two at once.

Most of it runs on the stand-in engine, which compiles nothing and fails when told to.
"""

import json
import os
import resource
import signal
import subprocess
import sys
import time

import pytest
from gate import Gate
from tiers import tiers
from tree import Tree, run

from precast.release.verify import find_faults
from precast.worker.descendants import is_running, tree_of

STAND_IN = """
[tool.precast.triton]
PRECAST_ENGINE = "stand-in"
"""


def make_tree(folder, kernels=3, orders=None):
    """A project on the stand-in engine; `orders` maps a kernel's number to what it must do."""
    tree = Tree(folder, targets=("cuda:90",), more=STAND_IN)
    for number in range(kernels):
        order = (orders or {}).get(number, "")
        tree.add_kernel(f"k{number}", imports=f"# stand-in: {order}" if order else "")
    return tree


@pytest.fixture(scope="module")
def primer(tmp_path_factory):
    tree = make_tree(tmp_path_factory.mktemp("primer") / "p", kernels=1)
    assert tree.build().code == 0
    return tree


@pytest.fixture
def make(primer, tmp_path):
    """Makes such a project, with the library's C compiled already."""

    def make_primed(name="p", **settings):
        tree = make_tree(tmp_path / name, **settings)
        tree.prime(primer)
        return tree

    return make_primed


def start(tree, *words):
    command = [sys.executable, "-m", "precast", "build", "--json", "--project", str(tree.folder), *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(process, event):
    for line in process.stdout:
        if f'"event": "{event}"' in line:
            return line
    raise AssertionError(process.stderr.read())


def drafts(tree):
    return [path for path in tree.folder.rglob(".*") if path.name.endswith(".tmp") or path.name.startswith(".draft")]


def test_failed_unit_leaves_nothing_and_hides_no_other(make):
    tree = make(orders={1: "fail ttgir"})
    build = tree.build("-k", "-j2")
    assert build.code == 1
    assert build.summary == {"event": "summary", "built": 2, "reused": 0, "failed": 1, "units": 3, "release": "",
                             "reason": "failed", "message": "1 failed"}  # fmt: skip
    assert "the stand-in refuses ttgir" in build.err and "k1:dtype=fp32,BLOCK=128@cuda:90" in build.err
    assert "stage: ttgir" in build.err and "Traceback" not in build.err and "scons" not in build.err
    assert not list(tree.folder.glob("build/units/*/k1-*")) and not (tree.folder / "generated").exists()
    tree.edit("kernels/k1.py", "# stand-in: fail ttgir", "")
    mended = tree.build()
    assert mended.compiled == ["k1:dtype=fp32,BLOCK=128@cuda:90"] and find_faults(mended.release) == []


def test_failure_of_a_unit_that_was_good_removes_its_old_image(make):
    tree = make()
    before = tree.build()
    tree.edit("kernels/k1.py", "import triton\n", "# stand-in: fail cubin\nimport triton\n")
    build = tree.build("-k")
    assert build.code == 1 and build.summary["failed"] == 1
    assert not list(tree.folder.glob("build/units/*/k1-*"))
    assert find_faults(before.release) == []  # the last good release stays
    assert tree.scons("-k").code == 2
    tree.edit("kernels/k1.py", "# stand-in: fail cubin\n", "")
    assert tree.build().release == before.release


def test_scons_prints_a_failure_once_and_exits_with_2(make):
    tree = make(kernels=1, orders={0: "fail llir"})
    build = tree.scons()
    assert build.code == 2
    assert build.err.count("the stand-in refuses llir") == 1 and "Traceback" not in build.err


def test_wrong_spec_stops_both_commands_before_anything_is_built(make):
    tree = make(kernels=1)
    tree.edit("kernels/k0.toml", "BLOCK", "BLOK")
    build, scons = tree.build(), tree.scons()
    assert (build.code, scons.code) == (1, 2)
    assert "BLOK" in build.err and "BLOK" in scons.err and "Traceback" not in build.err + scons.err
    assert not (tree.folder / "build/units").exists()


TAKEN = ("generated", "generated/demo", "build/units/cuda-90", "build/store")


@pytest.mark.parametrize("taken", tiers(dict(zip(TAKEN, TAKEN, strict=True)), "generated", "build/store"))
def test_file_in_the_way_is_told(make, taken):
    tree = make(kernels=1)
    tree.write(taken, "mine")
    for build in (tree.build(), tree.scons()):
        assert build.code and f"error: {taken} is a file, and a folder belongs there" in build.err
        assert "Traceback" not in build.err
    assert (tree.folder / taken).read_text() == "mine"


def test_link_to_nowhere_in_the_way_is_told(make):
    tree = make(kernels=1)
    (tree.folder / "generated").symlink_to("gone")
    build = tree.build()
    assert build.code == 1 and "Traceback" not in build.err
    assert "error: generated is a link that leads nowhere, and a folder belongs there\nhint: move it away" in build.err


def test_folder_in_the_way_is_told(make):
    tree = make(kernels=1)
    (tree.folder / "build/packs/cuda-90/k0.pack").mkdir(parents=True)
    assert "error: build/packs/cuda-90/k0.pack is a folder, and a file belongs there" in tree.build().err


def test_folder_of_any_name_holds_a_project(make):
    tree = make("a $b #c 'd' ünï", kernels=1)
    assert find_faults(tree.build().release) == []
    assert tree.build().steps == [] and tree.scons().steps == []
    assert os.listdir(tree.folder.parent) == [tree.folder.name]


WRONG_PARTS = {
    "source": ("kernels/k1.py", "import triton\n", "import triton +\n", "k1:*", "  units: k1:*"),
    "table": ("kernels/k1.toml", "BLOCK", "BLOK", "k1:*", "  units: k1:*"),
    "file": ("kernels/k1.toml", "[kernel.k1]", "[kernel.k1", "kernels/k1.toml", "error: not valid TOML"),
}


@pytest.mark.parametrize("file, old, new, step, told", tiers(WRONG_PARTS, "table", "file"))
def test_kernel_that_cannot_be_planned_fails_alone(make, file, old, new, step, told):
    tree = make()
    before = tree.build()
    tree.edit("kernels/k2.toml", "BLOCK = [128]", "BLOCK = [256]")
    tree.edit(file, old, new)
    build = tree.build("-k", "-j1")
    assert build.code == 1 and told in build.err and "Traceback" not in build.err
    assert build.summary == {"event": "summary", "built": 1, "reused": 1, "failed": 1, "units": 3, "release": "",
                             "reason": "failed", "message": "1 failed"}  # fmt: skip
    assert [event["step"] for event in build.events if event["event"] == "failed"] == [step]
    assert build.compiled == ["k2:dtype=fp32,BLOCK=256@cuda:90"]
    assert find_faults(before.release) == []
    scons = tree.scons("-k")
    assert scons.code == 2 and scons.summary["reused"] == 2 and told in scons.err and "Traceback" not in scons.err
    assert tree.build().code == 1 and tree.build("-k", "--kernel", "k0").code == int(step.endswith(".toml"))
    tree.edit(file, new, old)
    assert [unit for unit in tree.build().steps if "@" in unit] == []


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("Default('.')\n", "error: SConstruct does not call `env.Precast()`"),
        ("syntax error\n", "error: SCons ended with exit code 2"),
        ("import os\nopen('absent')\n", "SConstruct:2:1: error: no such file or directory: absent\n"),
    ],
)
def test_wrong_build_script_is_told(make, script, told):
    tree = make(kernels=1)
    tree.write("SConstruct", script)
    build = tree.build()
    assert build.code == 1 and told in build.err and "Traceback" not in build.err


def test_project_without_a_build_script_is_built_too(make):
    tree = make(kernels=1)
    (tree.folder / "SConstruct").unlink()
    assert find_faults(tree.build().release) == []
    assert tree.build().steps == []


def test_a_failure_keeps_what_waits_from_being_started(make):
    tree = make(kernels=4, orders={1: "fail llir", **dict.fromkeys((0, 2, 3), Gate.ORDER)})
    gate, started = Gate(tree), []
    with start(tree, "-j2") as process:
        for event in map(json.loads, process.stdout):
            if event["event"] == "started" and "@" in event["step"]:
                started.append(event["step"][:2])
            if event["event"] == "failed" or (len(started) == 2 and "k1" not in started):
                gate.open()
        told = process.stderr.read()
    assert process.returncode == 1 and event["failed"] == 1 and "CancelledError" not in told
    # Threads may overtake one another, so k1 need not be among the first; or it fails before another is started.
    expected = (event["built"] == len(started) - 1 <= 1) if "k1" in started[:2] else event["built"] >= 2
    assert expected, (event, started)


def test_crashed_worker_fails_its_unit_alone(make):
    tree = make(orders={0: "crash llir"})
    build = tree.build("-k")
    assert build.summary["built"] == 2 and build.summary["failed"] == 1
    assert "precast repro" in build.err


def test_second_build_is_told_who_builds(make):
    tree = make(kernels=1, orders={0: Gate.ORDER})
    gate = Gate(tree)
    with start(tree) as first:
        wait_for(first, "started")
        second = tree.build()
        by_scons = tree.scons()
        gate.open()
        first.communicate()
    told = "another build is running in {} " + f"(process {first.pid})"
    assert (second.code, by_scons.code, first.returncode) == (1, 2, 0)
    assert second.err.startswith(f"error: {told.format(tree.folder / 'build')}\n")
    assert told.format("build") in by_scons.err and "Traceback" not in by_scons.err


UNFINISHED = (
    "build/.digests.json.0123456789ab.tmp", "build/store/records/7f/.75e.0123456789ab.tmp",
    "build/launchers/src/.demo.c.0123456789ab.tmp", "generated/demo/.release.json.0123456789ab.tmp",
    "generated/demo/.draft-0123456789ab/lib/.libdemo.so.0123456789ab.tmp",
)  # fmt: skip


@pytest.mark.parametrize("signal_number", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.all)])
def test_next_build_goes_on_where_a_killed_one_ended(make, signal_number):
    tree = make(kernels=6, orders=dict.fromkeys((0, 4, 5), Gate.ORDER))
    gate = Gate(tree)
    with start(tree, "-j1") as first:
        for _ in range(3):
            wait_for(first, "ended")
        gate.wait_until_reached()
        first.send_signal(signal_number)
        first.communicate()
    assert first.returncode != 0
    for place in UNFINISHED:
        tree.write(place, "")
    gate.open()
    build = tree.build()
    assert (build.summary["units"], build.summary["built"]) == (6, 3)
    assert find_faults(build.release) == [] and drafts(tree) == []
    assert tree.build().steps == []


@pytest.mark.all
def test_killed_at_any_time_the_next_build_is_right(make):
    good = make("good", kernels=4).build().release.name
    for turn in range(12):
        tree = make(f"p{turn}", kernels=4)
        with start(tree, "-j2") as first:
            time.sleep(0.3 + turn * 0.15)
            first.kill()
            first.communicate()
        build = tree.build()
        assert build.release.name == good and find_faults(build.release) == []
        assert drafts(tree) == [] and tree.scons().steps == []


def test_source_that_changes_while_its_unit_is_built_is_built_again(make):
    tree = make(kernels=1, orders={0: Gate.ORDER})
    gate = Gate(tree)
    with start(tree) as first:
        gate.wait_until_reached()
        tree.edit("kernels/k0.py", "value + 1", "value + 2")
        gate.open()
        out, _ = first.communicate()
    assert "kernels/k0.py changed while k0:dtype=fp32,BLOCK=128@cuda:90 was built" in out
    assert "hint: build again" in out and first.returncode == 1
    tree.edit("kernels/k0.py", "value + 2", "value + 1")
    assert [step for step in tree.build().steps if "@" in step] == ["k0:dtype=fp32,BLOCK=128@cuda:90"]
    assert tree.build().steps == []


def test_an_interrupted_build_ends_at_once_and_says_so(make):
    tree = make(kernels=1, orders={0: Gate.ORDER})
    gate = Gate(tree)
    with start(tree) as first:
        gate.wait_until_reached()
        first.send_signal(signal.SIGINT)
        _, told = first.communicate(timeout=300)
    assert (first.returncode, told) == (130, "interrupted\n")


def test_a_build_that_is_interrupted_while_its_script_is_read_says_so(make):
    tree = make(kernels=1)
    tree.write("SConstruct", "import pathlib, time\npathlib.Path('reading').touch()\ntime.sleep(600)\n")
    with start(tree) as first:
        while not (tree.folder / "reading").exists():
            time.sleep(0.05)
        first.send_signal(signal.SIGINT)
        _, told = first.communicate(timeout=300)
    assert (first.returncode, told) == (130, "interrupted\n")


def test_workers_are_gone_with_a_killed_build(make):
    tree = make(kernels=1, orders={0: Gate.ORDER})
    gate = Gate(tree)
    with start(tree) as first:
        gate.wait_until_reached()
        _, *workers = tree_of(first.pid)
        first.kill()
        first.communicate()
    assert len(workers) >= 2  # one, and its keeper
    deadline = time.monotonic() + 300
    while any(map(is_running, workers)):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def limited(tree, limit, *words):
    """A build in which no file can grow beyond `limit` bytes: what a full disk looks like."""
    command = [sys.executable, "-m", "precast", "build", "--json", "--project", str(tree.folder), *words]
    done = subprocess.run(
        command,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("limit", [0, 3000, *(pytest.param(each, marks=pytest.mark.all) for each in (200, 30_000))])
def test_full_disk_is_told_and_the_next_build_goes_on(make, limit):
    tree = make(kernels=2)
    code, told = limited(tree, limit)
    assert code == 1
    assert "Traceback" not in told
    assert "no space left to write" in told or "cannot write" in told or "was not made" in told
    assert not (tree.folder / "generated/demo/release.json").exists()
    build = tree.build()
    assert find_faults(build.release) == [] and drafts(tree) == []


READ_ONLY = """
set -e
mount --bind "$1" "$1"
mount -o remount,bind,ro "$1"
shift
exec "$@"
"""


def can_mount():
    probe = ["unshare", "-rm", "sh", "-c", READ_ONLY, "sh", os.path.dirname(__file__), "true"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not can_mount(), reason="this machine does not let a user mount a folder read-only")
@pytest.mark.parametrize("built", [False, True])
def test_read_only_tree_is_told(make, built):
    tree = make(kernels=1)
    if built:
        tree.build()
    command = ["unshare", "-rm", "sh", "-c", READ_ONLY, "sh", str(tree.folder), sys.executable, "-m"]
    build = run([*command, "precast", "build", "--project", str(tree.folder)], None, {})
    assert build.code == 1
    assert build.err.startswith("error: cannot write ") and "read-only file system" in build.err
    assert "Traceback" not in build.err
