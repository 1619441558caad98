"""Same inputs, same bytes: two clean builds in different folders, with other job counts and hash seeds."""

import json
import re
import shutil
from pathlib import Path

import pytest
from tree import Tree

REPOSITORY = Path(__file__).parents[2]


def release_bytes(release):
    files = {path.relative_to(release).as_posix(): path.read_bytes() for path in release.rglob("*") if path.is_file()}
    return {name: data for name, data in files.items() if "__pycache__" not in name}


def copy_project(folder, targets, more="", one_unit_each=False):
    """The repository's own kernels as a project in `folder`."""
    tree = Tree(folder, targets=targets, more=more)
    shutil.copytree(REPOSITORY / "kernels", folder / "kernels")
    if one_unit_each:
        for path in (folder / "kernels").glob("*.toml"):
            path.write_text(thin_out(path.read_text()))
    return tree


def thin_out(spec):
    """The spec with no hint variants, and of every axis the first value alone."""
    spec = (
        re.sub(r",? *(specialize|each) *= *(\[[^]]*\]|true)", "", spec).replace("{,", "{").replace("{  type", "{ type")
    )
    lines, in_matrix = [], False
    for line in spec.splitlines():
        if line.startswith("["):
            in_matrix = line.endswith(".matrix]")
        if in_matrix and not line.startswith("exclude"):
            line = re.sub(r"= *\[ *([^,\]]+)[^\]]*\]", r"= [\1]", line)
        lines.append(line)
    return "\n".join(lines) + "\n"


def check_equal_releases(tmp_path, *, targets, **settings):
    one = copy_project(tmp_path / "one", targets, **settings)
    two = copy_project(tmp_path / "another" / "deeper place", targets, **settings)
    first = one.build("-j1", "-k", PYTHONHASHSEED="1")
    second = two.build("-j2", "-k", PYTHONHASHSEED="2")
    assert first.code == 0, first.err
    for each in (first, second):  # two variants whose text is the same are compiled once: a few are found again
        assert each.summary["reused"] < each.summary["built"] / 20
    assert first.release.name == second.release.name
    assert release_bytes(first.release) == release_bytes(second.release)
    for name, data in release_bytes(first.release).items():
        assert str(tmp_path).encode() not in data, name
    return first


def test_one_unit_of_each_kernel_is_the_same_everywhere(tmp_path):
    build = check_equal_releases(tmp_path, targets=("cuda:90", "cpu:x86-64-v3"), one_unit_each=True)
    kernels = {path.stem for path in (REPOSITORY / "kernels").glob("*.toml")}
    assert len(kernels) <= build.summary["units"] <= 3 * len(kernels)


@pytest.mark.all
@pytest.mark.parametrize("line_info", [False, True])
def test_every_unit_is_the_same_everywhere(tmp_path, line_info):
    more = f"line_info = {json.dumps(line_info)}"
    check_equal_releases(tmp_path, targets=("cuda:90", "hip:gfx942", "cpu:x86-64-v3"), more=more)
