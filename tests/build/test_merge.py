"""Releases of several machines become the one that a single machine would have made, or a sentence says why not."""

import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from release_fixture import make_result, make_unit
from tree import Tree

from precast.errors import ReleaseError
from precast.graph import merging
from precast.launch.formats import ImagePlace, describe_interface, write_pack
from precast.release.contents import BuiltImages, ReleaseParts, compose_release
from precast.release.folder import place_release
from precast.release.joining import join_parts, read_part
from precast.store import write_file

STANDIN = '[tool.precast.triton]\nPRECAST_ENGINE = "stand-in"\n'
OWN = (("precast", "aaaa"), ("ptxas", "3.9.0 bbbb"), ("triton", "3.9.0 cccc"))


def release(folder: Path, target: str = "cuda:90", dtypes=("fp16", "fp32"), image: bytes = b"image", **changes) -> Path:
    """A release of kernel `copy` on one target, without anything to run."""
    units = [make_unit(dtype, target) for dtype in dtypes]
    kind = target.replace(":", "-")
    place = f"lib/libdemo.{kind}.so" if target.startswith("cpu") else f"targets/{kind}/copy.pack"
    images = [(str(unit), image + str(unit).encode()) for unit in units]
    file = folder / "made" / kind
    write_file(file, images[0][1] if target.startswith("cpu") else write_pack(images))
    source = changes.pop("source_digest", "")
    results = [make_result(unit, data) for unit, (_, data) in zip(units, images, strict=True)]
    results = [replace(each, facts=replace(each.facts, source_digest=source)) for each in results]
    built = BuiltImages(place, file, tuple(zip(units, results, strict=True)))
    given = {"name": "demo", "project_version": "1.2", "tools": OWN, **changes}
    parts = ReleaseParts(interface=describe_interface(given["name"], units), images=(built,), files={}, **given)
    contents, manifest = compose_release(parts)
    return place_release(folder / "generated" / given["name"], contents, manifest)


def refusal(*folders: Path) -> str:
    with pytest.raises(ReleaseError) as error:
        join_parts([read_part(folder) for folder in folders])
    names = {str(folder): name for folder, name in zip(folders, "ABC", strict=False)}
    return re.sub("|".join(map(re.escape, names)), lambda found: names[found[0]], error.value.message)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"name": "other"}, "A is a release of `demo`, B is a release of `other`"),
        ({"project_version": "1.3"}, "A has version 1.2, B has version 1.3"),
        ({"tools": (("precast", "dddd"),)}, "tool `precast` is aaaa in A and dddd in B"),
        ({"tools": (("triton (hip:gfx942)", "3.8.0 cccc"),)}, "tool `triton` is 3.9.0 in A and 3.8.0 in B"),
        ({"source_digest": "ee" * 32}, "kernel `copy` has other sources in A than in B"),
    ],
)
def test_parts_of_different_things_are_refused(tmp_path, changes, message):
    assert refusal(release(tmp_path / "a"), release(tmp_path / "b", "hip:gfx942", **changes)) == message


def test_what_both_hold_must_be_the_same(tmp_path):
    first = release(tmp_path / "a")
    assert refusal(first, release(tmp_path / "b", image=b"other")) == (
        "unit `copy:dtype=fp16@cuda:90` is another in A than in B\n"
        "unit `copy:dtype=fp32@cuda:90` is another in A than in B"
    )
    assert refusal(first, release(tmp_path / "c", dtypes=("fp16",))) == (
        "kernel `copy` has other units for cuda:90 in A than in B"
    )
    joined = join_parts([read_part(first), read_part(release(tmp_path / "d"))])
    assert len(joined.images) == 1 and joined.interface == read_part(first).interface


def test_tools_of_all_parts_are_told_as_a_plan_tells_them(tmp_path):
    parts = [
        release(tmp_path / "a", tools=(("precast", "aaaa"), ("ptxas", "3.9.0 bbbb"), ("triton", "3.9.0 cccc"))),
        release(tmp_path / "b", "hip:gfx942", tools=(("precast", "aaaa"), ("triton", "3.9.0 dddd"))),
        release(
            tmp_path / "c", "cuda:80", tools=(("precast", "aaaa"), ("ptxas", "3.9.0 eeee"), ("triton", "3.9.0 cccc"))
        ),
    ]
    assert join_parts([read_part(each) for each in parts]).tools == (
        ("precast", "aaaa"),
        ("ptxas (cuda:90)", "3.9.0 bbbb"),
        ("ptxas (cuda:80)", "3.9.0 eeee"),
        ("triton (cuda:80, cuda:90)", "3.9.0 cccc"),
        ("triton (hip:gfx942)", "3.9.0 dddd"),
    )


def test_a_folder_that_is_no_release(tmp_path):
    with pytest.raises(ReleaseError, match="is no release"):
        read_part(tmp_path)


def merge(folder: Path, *releases: Path) -> subprocess.CompletedProcess:
    folder.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "precast", "merge", *map(str, releases)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)


def files_of(place: Path) -> dict[str, tuple[int, bytes]]:
    paths = (path for path in place.rglob("*") if path.is_file())
    return {path.relative_to(place).as_posix(): (path.stat().st_mode, path.read_bytes()) for path in paths}


def check(tmp_path: Path, make, *parts: tuple[str, ...]) -> None:
    """Each part is built in a folder of its own; the merged release must be the whole one, byte for byte."""
    whole = make(tmp_path / "whole").build().release
    built = [make(tmp_path / f"part{number}").build(*words).release for number, words in enumerate(parts)]
    done = merge(tmp_path / "merged", *reversed(built))
    assert done.returncode == 0, done.stderr
    place = tmp_path / "merged" / done.stdout.strip()
    assert place.name == whole.name and files_of(place) == files_of(whole)
    home = tmp_path / "merged/generated/demo"
    assert (home / "current").resolve() == place
    assert (home / "release.json").read_bytes() == (whole.parent / "release.json").read_bytes()


@pytest.mark.all
def test_targets_and_kernels_of_several_machines_are_one_release(tmp_path):
    def make(folder: Path) -> Tree:
        tree = Tree(folder, targets=("hip:gfx942", "cuda:90", "cuda:80"), more=STANDIN)
        for name in ("one", "two", "three"):
            tree.add_kernel(name, dtypes='["fp32", "fp16"]')
        tree.edit(
            "kernels/two.toml", "[kernel.two.matrix]", '[kernel.two.target."hip:*"]\nnum_warps = 2\n[kernel.two.matrix]'
        )
        return tree

    check(tmp_path, make, ("--target", "hip:*"), ("--target", "cuda:*", "--kernel", "t*"),
          ("--target", "cuda:*", "--kernel", "one"))  # fmt: skip


@pytest.mark.all
def test_a_cpu_and_a_gpu_machine_make_one_release(tmp_path):
    def make(folder: Path) -> Tree:
        tree = Tree(folder, targets=("cuda:90", "cpu:x86-64-v3", "cpu:x86-64-v2"))
        tree.add_kernel("one")
        tree.add_kernel("two", "value * 2")
        return tree

    check(tmp_path, make, ("--target", "cuda:*"), ("--target", "cpu:*"))
    part = make(tmp_path / "part0")
    other = make(tmp_path / "other")
    other.edit("kernels/one.py", "value + 1", "value + 2")
    cpu = other.build("--target", "cpu:*").release
    done = merge(tmp_path / "refused", (part.folder / "generated/demo/current").resolve(), cpu)
    assert done.returncode == 1 and "error: kernel `one` has other sources in " in done.stderr
    one = make(tmp_path / "one").build("--target", "cpu:*-v3", "--kernel", "one").release
    done = merge(
        tmp_path / "refused", one, make(tmp_path / "two").build("--target", "cpu:*-v3", "--kernel", "two").release
    )
    assert "whose units are linked into one library: build that target on one machine" in done.stderr
    shutil.rmtree(tmp_path / "refused", ignore_errors=True)


def test_no_module_of_the_working_directory_is_run(tmp_path, monkeypatch):
    """SCons is started away from it: Python would take its modules from there."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    (tmp_path / "random.py").write_text("raise SystemExit(77)")
    (scratch / "script").write_text("import random\nopen('run', 'w').close()\n")
    monkeypatch.setattr(merging, "SCRIPT", scratch / "script")
    monkeypatch.chdir(tmp_path)
    merging._compile(ImagePlace("", 0, 0, ""), scratch)
    assert (scratch / "run").exists()
