"""What stands where a file of the project, or of the build's state, should be, and is none that can be read: told, or
passed over. Nothing waits for a pipe, reads a device, or reads what has no end."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))

from small_projects import KERNEL, SETTINGS, error_text, make_project

from precast.bounded import read_bounded
from precast.digest import FileDigests, look_at

HOLE = 1 << 40


def make_hole(path: Path) -> None:
    """A file of a terabyte that takes no space."""
    with open(path, "wb") as file:
        file.truncate(HOLE)


KINDS: dict[str, tuple[Callable[[Path], None], str]] = {
    "pipe": (os.mkfifo, "not a regular file"),
    "device": (lambda path: path.symlink_to("/dev/zero"), "not a regular file"),
    "hole": (make_hole, "larger than 64 mb"),
    "folder": (Path.mkdir, "is a directory"),
    "link to itself": (lambda path: path.symlink_to(path.name), "too many levels of symbolic links"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["pyproject.toml", "kernels/scale.toml", "kernels/scale.py"])
def test_what_is_no_text_of_a_project_is_told(tmp_path: Path, name: str, kind: str) -> None:
    make, told = KINDS[kind]
    make_project(tmp_path, {name: None})
    (tmp_path / name).unlink(missing_ok=True)
    make(tmp_path / name)
    said = error_text(tmp_path)
    if name != "kernels/scale.toml" and kind != "hole":
        assert "error: there is no " in said and name in said, said
    elif name.endswith("scale.toml") and kind == "folder":
        assert "no spec file matches" in said  # a folder of any name is none
    else:
        assert f"cannot read `{name}`: {told}" in said, said


PLUGIN = """
from precast.passes import Pass, end
from _beside import STAGE

class Mine(Pass):
    name, stage, at = "mine", STAGE, end()
"""
SELECTED = """
[[tool.precast.pass]]
use = "mine"
"""
# What a project reads beyond its own texts, and what it says of a file there that is too large.
READ = {
    "kernels/beside.py": "cannot read `kernels/beside.py`: larger than 4096 mb",
    "plugins/mine.py": "larger than 64 MB",
    "plugins/_beside.py": "larger than 64 MB",
    "tuning/scale.json": "cannot read `tuning/scale.json`: larger than 64 mb",
}


@pytest.mark.parametrize(
    "kind", ["hole", *(pytest.param(kind, marks=pytest.mark.all) for kind in KINDS if kind != "hole")]
)
@pytest.mark.parametrize("name", READ)
def test_what_is_no_file_of_a_project_is_told_or_passed_over(tmp_path: Path, name: str, kind: str) -> None:
    files = {"plugins/_beside.py": "STAGE = 'ttir'", "kernels/beside.py": "VALUE = 1", "tuning/scale.json": "{}"}
    using_plugins = name.startswith("plugins/")
    settings = {"pyproject.toml": SETTINGS + SELECTED, "plugins/mine.py": PLUGIN} if using_plugins else {}
    make_project(tmp_path, {**files, **settings, "kernels/scale.py": f"import beside\n{KERNEL}"})
    (tmp_path / "tuning/scale.json").unlink()  # evidence of nothing is told, too
    (tmp_path / name).unlink(missing_ok=True)
    KINDS[kind][0](tmp_path / name)
    said = error_text(tmp_path)
    assert "Traceback" not in said
    if kind == "hole":
        assert READ[name] in said, said
    elif name == "tuning/scale.json" and kind != "folder":
        assert f"cannot read `tuning/scale.json`: {KINDS[kind][1]}" in said, said


@pytest.mark.parametrize("kind", KINDS)
def test_memory_that_is_no_file_is_none(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "digests.json"
    KINDS[kind][0](place)
    (tmp_path / "source").write_text("text")
    digests = FileDigests(place)
    assert digests.digest(tmp_path / "source") == look_at(tmp_path / "source").digest
    digests.save()


def test_what_has_its_size_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345678")
    assert read_bounded(tmp_path / "file", 8) == b"12345678"
    with pytest.raises(OSError, match="larger than 0 MB"):
        read_bounded(tmp_path / "file", 7)
