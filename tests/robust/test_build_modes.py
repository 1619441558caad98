"""Files and folders of a build that are closed to it, by mode or by owner: a sentence or a rebuild, and no trace of it
once they are open again."""

from __future__ import annotations

import ctypes
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from builds import build_clean, leftovers, make_tree, read_release
from tree import Build, Tree, make_build

OTHER = 12345  # a user who owns nothing
OVERRIDES = (1, 2, 3)  # by which root passes modes over: CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER
DROP = 24  # PR_CAPBSET_DROP


def heed_modes() -> None:
    """For a child before its program starts: root, too, may do only what modes allow."""
    for each in OVERRIDES:
        ctypes.CDLL(None).prctl(DROP, each, 0, 0, 0)


def build(tree: Tree) -> Build:
    command = [sys.executable, "-m", "precast", "build", "-j1", "--json"]
    done = subprocess.run(command, cwd=tree.folder, capture_output=True, text=True, timeout=300, preexec_fn=heed_modes)
    return make_build(done.returncode, done.stdout, done.stderr)


def give_away(path: Path) -> None:
    path.chmod(0o700 if path.is_dir() else 0o600)
    os.chown(path, OTHER, OTHER)


WAYS: dict[str, Callable[[Path], object]] = {
    "closed": lambda path: path.chmod(0),
    "read only": lambda path: path.chmod(0o555 if path.is_dir() else 0o444),
    "no listing": lambda path: path.chmod(0o333),
    "no entry": lambda path: path.chmod(0o666),
    **({"another's": give_away} if os.getuid() == 0 else {}),
}


class Project:
    """A project that is built, and the modes and owners of all that its builds have made."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.tree, self.state = folder, make_tree(folder / "p", kernels=2), 0
        self._clean: dict[int, dict[str, str]] = {}
        self.build()

    def build(self) -> None:
        done = build(self.tree)
        assert done.code == 0, done.err

    def edit(self) -> None:
        self.state += 1
        self.tree.add_kernel("k1", value=f"value + {self.state + 1}")

    def paths(self) -> list[Path]:
        """Folders before what is in them."""
        tops = [self.tree.folder / name for name in ("build", "generated")]
        return [path for top in tops for path in (top, *sorted(top.rglob("*"))) if not path.is_symlink()]

    def check(self, chosen: list[Path], way: str, note: object) -> Build:
        """Builds while `chosen` are closed, and again; then all is as if it had never been."""
        before = {path: path.stat() for path in self.paths()}
        for path in sorted(chosen, reverse=True):
            WAYS[way](path)
        done = build(self.tree)
        note = (note, way, [str(path) for path in chosen[:5]], done.err)
        assert done.code in (0, 1) and "Traceback" not in done.out + done.err, note
        assert done.code == 0 or done.err.startswith("error: "), note
        for path, status in before.items():  # what is still there is opened again
            if path.exists():
                os.chmod(path, status.st_mode & 0o7777)
                if os.getuid() == 0:
                    os.chown(path, status.st_uid, status.st_gid)
        if done.code:
            self.build()
        assert self.tree.build().steps == [] and not leftovers(self.tree), note
        return done

    def check_release(self) -> None:
        if self.state not in self._clean:
            self._clean = {self.state: build_clean(self.tree, self.folder / f"clean{self.state}")}
        assert read_release(self.tree) == self._clean[self.state]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project(tmp_path_factory.mktemp("modes"))


CLOSED = {
    "build": "error: cannot use build/snapshots/all: permission denied\n",
    "build/store": "error: cannot read build/store/",
    "build/index.sqlite": "error: cannot write {folder}/build/index.sqlite: unable to open database file\n",
    "generated": "error: cannot ",
}


@pytest.mark.all
@pytest.mark.parametrize("name", CLOSED)
def test_what_is_closed_is_named(project: Project, name: str) -> None:
    project.edit()
    done = project.check([project.tree.folder / name], "closed", name)
    assert done.code == 1 and done.err.startswith(CLOSED[name].format(folder=project.tree.folder)), done.err
    project.check_release()


def test_a_release_with_a_closed_folder_is_made_again(project: Project) -> None:
    """The one that was there goes, closed as it is."""
    home = project.tree.folder / "generated/demo"
    folder = home / os.readlink(home / "current") / "lib"
    assert project.check([folder], "closed", "release").code == 0
    assert not list(home.glob(".draft*"))
    project.check_release()


@pytest.mark.parametrize("turns", [pytest.param(12, marks=pytest.mark.all), pytest.param(2000, marks=pytest.mark.soak)])
def test_anything_may_be_closed(project: Project, turns: int) -> None:
    rng = random.Random(47)
    print("seed 47")
    for turn in range(turns):
        if turn % 2:
            project.edit()
        paths = project.paths()
        folders = [path for path in paths if path.is_dir()]
        chosen = rng.sample(paths, 40) if turn % 6 == 5 else [rng.choice(rng.choice([paths, folders]))]
        project.check(chosen, rng.choice(list(WAYS)), turn)
        if turn % 10 == 9:
            project.check_release()
