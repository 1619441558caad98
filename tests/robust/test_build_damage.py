"""Every file that a build leaves and a later one goes by: whatever becomes of it, the next release is the right one."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from builds import leftovers, make_tree, read_release
from test_build_kinds import HOLE, make_hole
from tree import Tree


def flip(path: Path) -> None:
    """One character becomes another, in JSON mostly one that can stand there."""
    data = bytearray(path.read_bytes())
    letters = [place for place, letter in enumerate(data) if chr(letter).isalnum()]
    if letters:
        place = random.Random(len(data)).choice(letters)
        data[place : place + 1] = b"7" if data[place : place + 1] != b"7" else b"3"
    replace(path, bytes(data))


def replace(path: Path, data: bytes) -> None:
    """What was linked from it stays as it was; the times are those of before, as far as they can be set."""
    status = path.stat()
    path.unlink()
    path.write_bytes(data)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def put(make: Callable[[Path], object]) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        path.unlink()
        make(path)

    return change


WAYS: dict[str, Callable[[Path], None]] = {
    "flip": flip,
    "pipe": put(os.mkfifo),
    "cut": lambda path: replace(path, path.read_bytes()[: path.stat().st_size // 2]),
    "empty": lambda path: replace(path, b""),
    "hole": put(make_hole),
    "device": put(lambda path: path.symlink_to("/dev/zero")),
    "loop": put(lambda path: path.symlink_to(path.name)),
    "link": put(lambda path: path.symlink_to("/etc/passwd")),
    "folder": put(Path.mkdir),
}
FIRST = ("flip", "pipe")


class Damaged:
    """A project that is built, and its release."""

    def __init__(self, folder: Path) -> None:
        self.tree = make_tree(folder / "p", kernels=2)
        assert self.tree.build().code == 0
        self.good = read_release(self.tree)

    def files(self) -> list[Path]:
        """All of them; a hole in the store stays as long as no build needs what was there."""
        found = (path for name in ("build", "generated") for path in (self.tree.folder / name).rglob("*"))
        return sorted(path for path in found if path.is_file() and not path.is_symlink() and path.stat().st_size < HOLE)

    def check(self, note: object) -> None:
        """The next build heals it, or names what is in its way until that is gone."""
        for _ in range(4):
            build = self.tree.build("-j2")
            assert "Traceback" not in build.err, (note, build.err)
            if build.code == 0:
                break
            moved = [each for each in self.tree.folder.rglob("*") if each.is_dir() and is_named(each, build.err)]
            assert moved, (note, build.err)
            for each in moved:
                shutil.rmtree(each, ignore_errors=True)
        assert read_release(self.tree) == self.good, note
        assert not leftovers(self.tree), note
        assert self.tree.build().steps == [], note


def is_named(path: Path, said: str) -> bool:
    return any(f"{path.name}{told}" in said for told in (" is a folder, and a file belongs there", ": is a directory"))


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Damaged:
    return Damaged(tmp_path_factory.mktemp("damaged"))


def tiers(ways: list[str]) -> list[object]:
    return [way if way in FIRST else pytest.param(way, marks=pytest.mark.all) for way in ways]


@pytest.mark.parametrize("way", tiers([way for way in WAYS if way != "folder"]))  # these are told one by one
def test_all_of_a_builds_state_may_be_damaged_at_once(damaged: Damaged, way: str) -> None:
    for path in damaged.files():
        WAYS[way](path)
    damaged.check(way)


@pytest.mark.parametrize("turns", [pytest.param(30, marks=pytest.mark.all), pytest.param(3000, marks=pytest.mark.soak)])
def test_any_file_of_a_builds_state_may_be_damaged(damaged: Damaged, turns: int) -> None:
    rng = random.Random(31)
    print("seed 31")
    for turn in range(turns):
        path, way = rng.choice(damaged.files()), rng.choice(list(WAYS))
        WAYS[way](path)
        damaged.check((turn, path, way))


@pytest.mark.parametrize("recorded", [True, False])
def test_a_header_may_be_anything(damaged: Damaged, recorded: bool) -> None:
    """SCons looks for what a header includes, in whatever lies there."""
    header = damaged.tree.folder / "build/launchers/src/runtime/elf_file.h"
    for way in ("hole", "device", "loop"):
        WAYS[way](header)
        if not recorded:
            (damaged.tree.folder / "build/index.sqlite").unlink()
        damaged.check(way)


PARTS = """part = env.Command("native/part.txt", ["native/source.txt"], "cat $SOURCES > $TARGET")
whole = env.Command("native/whole.txt", [part], "cat $SOURCES > $TARGET")
env.Precast(plugins=[whole])
"""
LOST = ((), ("index.sqlite", "snapshots"))
MADE = ("native/part.txt", "native/whole.txt")


@pytest.mark.parametrize(
    "lost", [("index.sqlite",), *(pytest.param(each, marks=pytest.mark.all) for each in LOST)], ids=str
)
@pytest.mark.parametrize("name", [MADE[0], pytest.param(MADE[1], marks=pytest.mark.all)])
def test_what_a_build_script_makes_is_made_again(built_script: Tree, name: str, lost: tuple[str, ...]) -> None:
    """SCons knows what a file was made of, not what it is."""
    tree = built_script
    good = read_release(tree)
    (tree.folder / name).write_text("two")
    for each in lost:
        path = tree.folder / "build" / each
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert tree.build().code == 0
    assert [(tree.folder / each).read_text() for each in MADE] == ["one", "one"]
    assert read_release(tree) == good


@pytest.fixture(scope="module")
def built_script(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    tree = make_tree(tmp_path_factory.mktemp("script") / "p", kernels=1, order="data native/whole.txt")
    tree.edit("SConstruct", "env.Precast()\n", PARTS)
    tree.write("native/source.txt", "one")
    assert tree.build().code == 0
    return tree
