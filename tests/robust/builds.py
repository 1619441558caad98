"""Projects on the stand-in engine, which compiles nothing, and what a build of one left: the ground of these tests."""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from atexit import register
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "build"))

from tree import Tree

STAND_IN = """
[tool.precast.triton]
PRECAST_ENGINE = "stand-in"
"""


def make_tree(folder: Path, kernels: int = 3, order: str = "", targets: tuple[str, ...] = ("cuda:90",)) -> Tree:
    """A project of kernels `k0`, `k1`, …, each with `order` for the stand-in. Its C is compiled already."""
    tree = _make_tree(folder, kernels, order, targets)
    tree.prime(_primer())
    return tree


@functools.cache
def _primer() -> Tree:
    folder = tempfile.mkdtemp(prefix="precast-test-")
    register(shutil.rmtree, folder, ignore_errors=True)
    tree = _make_tree(Path(folder, "p"), 1, "", ("cuda:90",))
    assert tree.build().code == 0
    return tree


def _make_tree(folder: Path, kernels: int, order: str, targets: tuple[str, ...]) -> Tree:
    tree = Tree(folder, targets=targets, more=STAND_IN)
    for number in range(kernels):
        tree.add_kernel(f"k{number}", imports=f"# stand-in: {order}" if order else "")
    return tree


def read_release(tree: Tree) -> dict[str, str]:
    """Everything that `current` and the pointer lead to: names, modes and digests; what is missing is so named."""
    home = tree.folder / "generated/demo"
    if not (home / "current").is_symlink():
        return {"current": "missing"}
    version = os.readlink(home / "current")
    found = {"current": version, "release.json": _digest(home / "release.json")}
    for path in sorted((home / version).rglob("*")):
        if path.is_file():
            found[path.relative_to(home / version).as_posix()] = f"{path.stat().st_mode:o} {_digest(path)}"
    return found


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "missing"


def build_clean(tree: Tree, folder: Path) -> dict[str, str]:
    """The release that a project of the same sources gets in a folder where none of its units was ever built."""
    copy = Tree.__new__(Tree)
    copy.folder = folder
    ignore = ["--exclude=./build", "--exclude=./generated"]
    folder.mkdir()
    packed = subprocess.run(["tar", "c", *ignore, "."], cwd=tree.folder, capture_output=True, check=True).stdout
    subprocess.run(["tar", "x"], cwd=folder, input=packed, check=True)
    copy.prime(_primer())
    assert copy.build().code == 0
    return read_release(copy)


def leftovers(tree: Tree) -> list[str]:
    """What no finished build leaves: drafts and files that were to be renamed."""
    return [
        path.relative_to(tree.folder).as_posix()
        for path in tree.folder.rglob(".*")
        if path.name.startswith(".draft") or path.suffix in (".tmp", ".new", ".old")
    ]
