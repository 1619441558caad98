"""Builds that are killed, damaged, edited or met by others: the next one gives what a clean one does, byte for byte."""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from builds import build_clean, leftovers, make_tree, read_release
from gate import Gate
from tree import Tree

from precast.worker.descendants import is_running, tree_of

PRECAST = [sys.executable, "-m", "precast"]


def tiers(first, second, third):
    """How often a test turns: in each run, in the second tier, and for hours."""
    return [first, pytest.param(second, marks=pytest.mark.all), pytest.param(third, marks=pytest.mark.soak)]


class Project:
    """A project that goes from state to state, and the releases that clean builds of its states get."""

    def __init__(self, folder: Path, order: str = "sleep 0.02") -> None:
        self.folder, self.order = folder, order
        self.tree = make_tree(folder / "p", kernels=3, order=order)
        self._clean: dict[int, dict[str, str]] = {}

    def go_to(self, state: int) -> None:
        for number in range(3):
            value = f"value + {state if number else 1}"
            self.tree.add_kernel(f"k{number}", value=value, imports=f"# stand-in: {self.order}")

    def check(self, state: int, note: object) -> None:
        """The next build is right, and leaves nothing else."""
        build = self.tree.build("-j2")
        assert build.code == 0 and "Traceback" not in build.err, (note, build.err)
        if state not in self._clean:
            self._clean[state] = build_clean(self.tree, self.folder / f"clean{state}")
        assert read_release(self.tree) == self._clean[state], note
        assert not leftovers(self.tree), note


def run(tree: Tree, *words: str, **settings: str) -> subprocess.Popen:
    return subprocess.Popen(
        [*PRECAST, *words],
        cwd=tree.folder,
        env={**os.environ, **settings},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        text=True,
    )


def kill(process: subprocess.Popen, how: str, rng: random.Random) -> None:
    """Ends a command, or one of the processes that it started."""
    if how == "worker":
        _, *others = tree_of(process.pid)
        with contextlib.suppress(IndexError, ProcessLookupError):  # there may be none, or no longer
            os.kill(rng.choice(others), signal.SIGKILL)
    elif how == "group":
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.send_signal(getattr(signal, how))


def wait_until(condition: Callable[[], bool], what: object) -> None:
    deadline = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def hears(process: subprocess.Popen) -> bool:
    """Whether a command heeds signals, or has ended: before that it is Python alone, which says of ^C what it likes."""
    try:
        caught = Path(f"/proc/{process.pid}/status").read_text().partition("SigCgt:")[2].split()[0]
    except (OSError, IndexError):
        return True
    return bool(int(caught, 16) >> signal.SIGTERM - 1 & 1) or process.poll() is not None


COMMANDS = [line.split() for line in ("build -j2", "build -j1", "build -k", "clean", "clean --all", "clean --keep 0")]


@pytest.mark.parametrize("turns", tiers(3, 40, 4000))
def test_a_command_that_is_killed_costs_no_more_than_time(tmp_path, turns):
    rng = random.Random(11)
    print("seed 11")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    project = Project(tmp_path)
    for turn in range(turns):
        state, words = turn % 3, rng.choice(COMMANDS)
        how = rng.choice(["SIGKILL", "group", "worker", "SIGTERM", "SIGINT", "SIGHUP"])
        project.go_to(state)
        process = run(project.tree, *words, TMPDIR=str(scratch))
        wait_until(lambda process=process: hears(process), words)
        time.sleep(rng.random() * (2.5 if words[0] == "build" else 1.0))
        family = list(tree_of(process.pid)) if process.poll() is None else []
        if family:
            kill(process, how, rng)
        said, _ = process.communicate(timeout=300)
        note = (turn, words, how, process.returncode, said)
        assert "Traceback" not in said, note
        wait_until(lambda family=family: not any(map(is_running, family)), note)
        os.environ["TMPDIR"] = str(scratch)
        try:
            project.check(state, note)
        finally:
            del os.environ["TMPDIR"]
        assert not list(scratch.iterdir()), note


def damage(path: Path, how: str, rng: random.Random) -> None:
    data = bytearray(path.read_bytes())
    path.chmod(0o644)
    if how == "flip":
        letters = [number for number, letter in enumerate(data) if chr(letter).isalnum()] or [0]
        place = rng.choice(letters)
        data[place : place + 1] = b"7" if data[place : place + 1] != b"7" else b"3"
    elif how == "cut":
        del data[rng.randrange(len(data) or 1) :]
    elif how == "other":
        data = bytearray(rng.choice([b"", b"[]", b"{}", b"null", b"\xff\xfe\x00", b'{"format": 99}']))
    stat = path.stat()
    path.unlink()  # an entry of the store and what was linked from it are one file
    path.write_bytes(bytes(data))
    if rng.random() < 0.5:
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


@pytest.mark.parametrize("turns", tiers(2, 40, 4000))
def test_state_that_is_damaged_costs_no_more_than_time(tmp_path, turns):
    rng = random.Random(12)
    print("seed 12")
    project = Project(tmp_path, order="sleep 0.001")
    project.go_to(0)
    project.check(0, "first")
    for turn in range(turns):
        build = project.tree.folder / "build"
        named = [build / name for name in ("index.sqlite", "digests.json", "sconsign.dblite")]
        files = sorted(path for path in build.rglob("*") if path.is_file() and not path.is_symlink())
        chosen = [path for path in named if path.exists() and rng.random() < 0.6] + rng.sample(files, 3)
        hows = [rng.choice(["flip", "flip", "cut", "other"]) for _ in chosen]
        for path, how in zip(chosen, hows, strict=True):
            if path.exists():
                damage(path, how, rng)
        state = rng.choice([0, 0, 1])
        project.go_to(state)
        project.check(state, (turn, list(zip(chosen, hows, strict=True))))


@pytest.mark.all
def test_no_two_commands_meet(tmp_path):
    """Builds and cleans at once: each does its work or says that another is at it."""
    project = Project(tmp_path, order="sleep 0.1")
    for state in range(2):
        project.go_to(state)
        running = [run(project.tree, *words) for words in (["build"], ["clean", "--all"], ["build"], ["clean"])]
        for process in running:
            said, _ = process.communicate(timeout=300)
            assert process.returncode == 0 or (
                process.returncode == 1 and said.startswith("error: another build is running in ")
            ), said
    project.check(1, "at once")


@pytest.mark.all
def test_nobody_builds_beside_a_build_whose_folder_was_removed(tmp_path):
    project = Project(tmp_path, order=Gate.ORDER)
    gate = Gate(project.tree)
    first = run(project.tree, "build", "--json")
    gate.wait_until_reached()
    shutil.rmtree(project.tree.folder / "build", ignore_errors=True)
    second = project.tree.build()
    assert second.code == 1 and second.err.startswith("error: another build is running in ")
    gate.open()
    said, _ = first.communicate(timeout=300)
    assert "Traceback" not in said
    project.tree.build()  # what came back into the removed folder is whatever the first was about to write
    project.check(-1, said)


@pytest.mark.parametrize("linked", [False, pytest.param(True, marks=pytest.mark.all)], ids=["folder", "link"])
def test_all_is_removed_as_often_as_one_likes(tmp_path, linked):
    project = Project(tmp_path, order="sleep 0.001")
    build = project.tree.folder / "build"
    if linked:
        shutil.move(build, tmp_path / "elsewhere")
        build.symlink_to(tmp_path / "elsewhere")
    project.check(-1, "first")
    for _ in range(2):
        done = subprocess.run([*PRECAST, "clean", "--all"], cwd=project.tree.folder, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "") and done.stdout.endswith("removed build\n")
        assert not (project.tree.folder / "generated/demo/current").exists()
        assert build.is_symlink() == linked and (not build.exists() or not list(build.iterdir()))
    project.check(-1, "again")


KINDS = {
    "source": ("kernels/k0.py", "value + 1", "value + 5"),
    "spec": ("kernels/k0.toml", "BLOCK = [128]", "BLOCK = [256]"),
    "settings": ("pyproject.toml", 'version = "1.0"', 'version = "2.0"'),
}


@pytest.mark.parametrize(
    "back", [pytest.param(False, id="edit", marks=pytest.mark.all), pytest.param(True, id="edit and back")]
)
@pytest.mark.parametrize("at", ["k1", pytest.param("k0", marks=pytest.mark.all)])  # k0 comes last
@pytest.mark.parametrize("kind", ["source", *(pytest.param(kind, marks=pytest.mark.all) for kind in list(KINDS)[1:])])
def test_inputs_that_move_while_they_are_built_make_no_wrong_release(tmp_path, kind, at, back):
    """The release is that of the sources as they were all along, or there is none; and the next build is right."""
    tree, (name, old, new) = make_tree(tmp_path / "p", kernels=3), KINDS[kind]
    gate = Gate(tree, at)
    process = run(tree, "build", "-j1", "--json")
    text = (tree.folder / name).read_text()
    gate.wait_until_reached()
    tree.edit(name, old, new)
    if back:
        (tree.folder / name).write_text(text)
    gate.open()
    said, _ = process.communicate(timeout=300)
    assert process.returncode in ((0, 1) if back else (1,)) and "Traceback" not in said
    clean = build_clean(tree, tmp_path / "clean")
    if process.returncode == 0:
        assert read_release(tree) == clean
    else:
        assert name in said and "build again" in said
        assert read_release(tree) == {"current": "missing"}
    assert tree.build().code == 0
    assert read_release(tree) == clean


COARSE = """
import os, sys
GRAIN = {grain}
def coarse(real):
    def told(*words, **more):
        status = real(*words, **more)
        times = {{name: getattr(status, name) // GRAIN * GRAIN for name in ("st_mtime_ns", "st_ctime_ns")}}
        return os.stat_result(status, {{"st_atime_ns": status.st_atime_ns, **times}})
    return told
for name in ("stat", "lstat", "fstat"):
    setattr(os, name, coarse(getattr(os, name)))
from precast.cli import main
sys.exit(main())
"""


@pytest.mark.all
@pytest.mark.parametrize("grain", [10**9, 2 * 10**9], ids=["1s", "2s"])
def test_times_in_whole_seconds_hide_no_edit(tmp_path, grain):
    project = Project(tmp_path, order="sleep 0.001")
    for state in (1, 2, 3):
        project.go_to(state)
        command = [sys.executable, "-c", COARSE.format(grain=grain), "build", "-j1"]
        done = subprocess.run(command, cwd=project.tree.folder, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        assert "2 built" in done.stdout or "3 built" in done.stdout, done.stdout
    project.check(3, grain)
