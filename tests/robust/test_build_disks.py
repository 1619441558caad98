"""Builds on disks that fail, and what a power cut leaves of a build: the old release, or the new one."""

import errno
import os
import random
import shutil
from pathlib import Path

import pytest
from builds import build_clean, leftovers, make_tree, read_release
from faulty import make_library, read_calls, recording, run_counted
from tree import Tree

from precast.release.verify import find_faults

ERRORS = [errno.EIO, errno.ENOSPC, errno.EACCES, errno.EROFS, errno.EMFILE, errno.EDQUOT]
TURNS = [2, pytest.param(40, marks=pytest.mark.all), pytest.param(4000, marks=pytest.mark.soak)]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return make_library(tmp_path_factory.mktemp("faults"))


class Project:
    """A project that goes from state to state, and the releases that clean builds of its states get."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tree = make_tree(folder / "p", kernels=3)
        self._clean: dict[int, dict[str, str]] = {}

    def go_to(self, state: int) -> None:
        for number in range(3):
            self.tree.add_kernel(f"k{number}", value=f"value + {state if number else 1}")

    def wanted(self, state: int) -> dict[str, str]:
        if state not in self._clean:
            self._clean[state] = build_clean(self.tree, self.folder / f"clean{state}")
        return self._clean[state]


def check_mended(project: Project, state: int, note: object) -> None:
    """The next build gives what a clean one does, byte for byte, and leaves nothing else."""
    build = project.tree.build("-j1")
    assert build.code == 0, (note, build.err)
    assert read_release(project.tree) == project.wanted(state), note
    assert not leftovers(project.tree), note


@pytest.mark.parametrize("turns", TURNS)
def test_a_disk_that_fails_costs_a_sentence_and_a_build(tmp_path, library, turns):
    rng = random.Random(20260)
    print("seed 20260")
    project = Project(tmp_path)
    for turn in range(turns):
        state, fresh = turn % 3, rng.choice(["edit", "edit", "release", "build"])
        project.go_to(state)
        if fresh != "edit":
            shutil.rmtree(project.tree.folder / ("generated" if fresh == "release" else "build"), ignore_errors=True)
        every = rng.random() < 0.5  # calls that only ask, list or map may fail as well
        at, error, keep = rng.randrange(1, 4500 if every else 1500), rng.choice(ERRORS), rng.random() < 0.3
        settings = {"FAULT_AT": str(at), "FAULT_ERRNO": str(error), **({"FAULT_KEEP": "1"} if keep else {})}
        settings |= {"FAULT_ALL": "1"} if every else {}
        run = run_counted(library, project.tree, "build", "-j1", **settings)
        note = (turn, fresh, at, every, os.strerror(error), keep, run.calls, run.code, run.err)
        assert run.code in (0, 1) and "Traceback" not in run.out + run.err, note
        assert run.code == 0 or run.err.startswith("error: ") or ": error: " in run.err, note
        if run.code == 0:
            assert read_release(project.tree) == project.wanted(state), note
        check_mended(project, state, note)


@pytest.mark.parametrize("at", [8, *(pytest.param(at, marks=pytest.mark.all) for at in (7, 9, 10, 11, 12))])
def test_a_script_that_cannot_be_read_is_a_sentence(tmp_path, library, at):
    """It is opened and read here, and then by SCons; how often depends on how lately it was written."""
    tree = make_tree(tmp_path / "p", kernels=1)
    settings = {"FAULT_ONLY": "/SConstruct", "FAULT_ERRNO": str(errno.EIO), "FAULT_AT": str(at)}
    run = run_counted(library, tree, "build", "-j1", **settings)
    if at > 10 and run.calls < at:
        assert run.code == 0
    else:
        assert (run.code, run.err) == (1, "error: cannot read `SConstruct`: input/output error\n")


def after_power_cut(before: Path, calls, copies: Path, root: str, place: Path) -> None:
    """Makes `place` what a disk holds to which all came that was done to folders, and of files what was synced."""
    # By path: the one copy that its inode has, shared by its links. What was there `before` has been there for long.
    files = {f"{root}/build/{path.relative_to(before)}": [str(path)] for path in before.rglob("*") if path.is_file()}
    folders, links = set(), {}
    for call in calls:
        moved = {path: path.replace(call.other, call.path, 1) for path in (*files, *folders, *links)
                 if call.what == "rename" and (path == call.other or path.startswith(f"{call.other}/"))}  # fmt: skip
        if call.what == "create":
            files[call.path] = [""]
        elif call.what == "sync" and call.other:
            files.setdefault(call.path, [""])[0] = call.other
        elif call.what == "folder":
            folders.add(call.path)
        elif call.what == "symlink":
            links[call.path] = call.other
        elif call.what == "link":
            files[call.path] = files.setdefault(call.other, [""])
        elif call.what == "remove":
            files.pop(call.path, None), links.pop(call.path, None), folders.discard(call.path)
        for path in moved:
            files.pop(moved[path], None), links.pop(moved[path], None)
        for old, new in moved.items():
            if old in files:
                files[new] = files.pop(old)
            if old in links:
                links[new] = links.pop(old)
            if old in folders:
                folders.discard(old), folders.add(new)
    for path in sorted(folders):
        (place / os.path.relpath(path, root)).mkdir(parents=True, exist_ok=True)
    for path, (copy,) in files.items():
        target = place / os.path.relpath(path, root)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((copies / copy).read_bytes() if copy else b"")
    for path, to in links.items():
        target = place / os.path.relpath(path, root)
        target.parent.mkdir(parents=True, exist_ok=True)
        os.symlink(to, target)


def without_modes(release: dict[str, str]) -> dict[str, str]:
    return {name: text.rpartition(" ")[2] for name, text in release.items()}


CUTS = [1, pytest.param(40, marks=pytest.mark.all), pytest.param(1000, marks=pytest.mark.soak)]


@pytest.mark.parametrize("cuts", CUTS)
def test_a_power_cut_leaves_the_old_release_or_the_new_one(tmp_path, library, cuts):
    rng = random.Random(7)
    print("seed 7")
    project = Project(tmp_path)
    before = shutil.copytree(project.tree.folder / "build", tmp_path / "before")
    versions = []
    with recording(tmp_path / "record") as settings:
        for state in (0, 1):
            project.go_to(state)
            assert run_counted(library, project.tree, "build", "-j1", **settings).code == 0
            versions.append(read_release(project.tree)["current"])
    calls = read_calls(tmp_path / "record")
    pointed = [number for number, call in enumerate(calls) if call.path.endswith("/current") and call.what == "rename"]
    assert len(pointed) == 2
    near = [number + shift for number in pointed for shift in (0, 1)]
    for number, cut in enumerate([*near, len(calls), *rng.sample(range(len(calls)), min(cuts, len(calls)))]):
        tree = Tree.__new__(Tree)
        tree.folder = tmp_path / f"cut{number}"
        shutil.copytree(project.tree.folder, tree.folder, ignore=shutil.ignore_patterns("build", "generated"))
        after_power_cut(before, calls[:cut], tmp_path / "record/copies", str(project.tree.folder), tree.folder)
        home = tree.folder / "generated/demo"
        if cut > pointed[0]:
            assert os.readlink(home / "current") == versions[cut > pointed[1]], cut
        if (home / "current").is_symlink():
            assert find_faults(home / "current") == [], cut
        if number == 1 or number > len(near) + 1:
            build = tree.build("-j1")
            assert build.code == 0, (cut, build.err)
            assert without_modes(read_release(tree)) == without_modes(project.wanted(1)), cut
        shutil.rmtree(tree.folder)
