"""An edit that reaches few kernels: these alone are planned, and what comes of it is what a build of all would make."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterable

import pytest
from edits import differences
from tree import Tree, make_tree

from precast.layout import ENTRIES, KEPT_PLAN

MORE = """
[tool.precast.triton]
PRECAST_ENGINE = "stand-in"
"""
ASK = """
import json, sys
from pathlib import Path
from precast.graph.narrow import plan_narrowly
from precast.graph.request import Request
from precast.graph.snapshot import find_earlier
from precast.project import read_project
for line in sys.stdin:
    folder = Path(line.strip())
    earlier = find_earlier(folder, Request())
    narrow = plan_narrowly(read_project(folder), Request(), earlier) if earlier else None
    print(json.dumps(sorted({each.unit.kernel for each in narrow.plan.units}) if narrow else None), flush=True)
"""
COUNT = """
import sys
from collections import Counter
from precast.cli import main
from precast.graph.index import Index
asked, digest = Counter(), Index.digest
def count(index, path):
    asked[path] += 1
    return digest(index, path)
Index.digest = count
sys.argv[1:] = ["build", "-q", "--project", sys.argv[1]]
code = main()
others = [asked[path] for path in asked if path.endswith("/facts.json") and "/shift-" in path]
print(code or 0, others)
"""
TARGETS = ("cuda:90", "hip:gfx942")


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    tree = make_tree(tmp_path_factory.mktemp("narrow") / "project", more=MORE)
    (tree.folder / "SConstruct").unlink()
    tree.edit("kernels/copy.py", "import triton\n", "# stand-in: data kernels/table.txt\nimport triton\n")
    tree.write("kernels/table.txt", "1\n")
    assert tree.build().summary["built"] == 6
    return tree


@pytest.fixture(scope="module")
def planned(tree):
    """Which kernels the next build would plan, where it would not plan all; asked of a process like those of builds."""
    command = [sys.executable, "-c", ASK]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:

        def ask() -> list[str] | None:
            child.stdin.write(f"{tree.folder}\n")
            child.stdin.flush()
            return json.loads(child.stdout.readline())

        yield ask
        child.stdin.close()


def steps_of(*kernels: str) -> list[str]:
    units = [f"{kernel}:dtype=fp32,BLOCK=128@{target}" for kernel in kernels for target in TARGETS]
    packs = [f"pack {target} {kernel}" for kernel in kernels for target in TARGETS]
    return sorted([*units, *packs, "release"])


def append(tree: Tree, name: str) -> None:
    """Changes what a module holds, and no kernel of it."""
    path = tree.folder / name
    path.write_text(f"{path.read_text()}\n\nMORE = 1\n")


def check(tree: Tree) -> None:
    """What lies there is what a build from nothing makes, and nobody finds anything to do."""
    again = tree.build()
    assert (again.code, again.steps, again.summary["reused"]) == (0, [], again.summary["units"])
    clean = tree.folder.with_name("clean")
    shutil.copytree(tree.folder, clean, ignore=shutil.ignore_patterns("build", "generated", "__pycache__"))
    other = Tree.__new__(Tree)
    other.folder = clean
    other.prime(tree)
    release = other.build().release
    assert release.name == again.release.name
    assert differences(again.release, release) == []
    shutil.rmtree(clean)


def test_what_was_never_finished_is_removed(tree):
    """The old folder of a unit, say, that a failing disk kept."""
    draft = tree.folder / "build/units/cuda-90/.copy.old.tmp"
    draft.mkdir()
    append(tree, "kernels/copy.py")
    assert tree.build().code == 0 and not draft.exists()


def in_tiers(kinds: Iterable[str]) -> list:
    return [each if each in FIRST else pytest.param(each, marks=pytest.mark.all) for each in kinds]


FIRST = ("source", "grid", "a lost plan")  # of the first tier
NARROW = {
    "source": (["copy"], lambda tree: tree.edit("kernels/copy.py", "mask=inside)\n", "mask=inside)\n    # more\n")),
    "helper": (["scale", "shift"], lambda tree: tree.edit("kernels/shared.py", "value + value", "value + value + 1")),
    "data": (["copy"], lambda tree: tree.write("kernels/table.txt", "2\n")),
    "two sources": (
        ["copy", "shift"],
        lambda tree: [tree.edit(f"kernels/{each}.py", "offsets < n", "offsets <  n") for each in ("copy", "shift")],
    ),
    "another import": (
        ["copy"],
        lambda tree: (
            tree.edit("kernels/copy.py", "import triton\n", "import triton\nfrom shared import twice\n"),
            tree.edit("kernels/copy.py", "out + offsets, value", "out + offsets, twice(value)"),
        ),
    ),
    "helper of more": (
        ["copy", "scale", "shift"],
        lambda tree: tree.edit("kernels/shared.py", "value + value", "value + value + 2"),
    ),
}


@pytest.mark.parametrize("kind", in_tiers(NARROW))
def test_what_an_edit_reaches_is_planned_and_made(tree, planned, kind):
    kernels, edit = NARROW[kind]
    edit(tree)
    assert planned() == kernels
    build = tree.build()
    assert build.steps == steps_of(*kernels), build.out + build.err
    assert build.summary["units"] == 6
    assert build.summary["built"] == len(kernels) * 2
    assert tree.build().steps == []


def test_what_came_of_it_is_what_a_clean_build_makes(tree, planned):
    append(tree, "kernels/scale.py")
    assert planned() == ["scale"]
    assert tree.build().code == 0
    check(tree)


def test_facts_of_other_kernels_are_looked_at_once_when_the_release_is_made(tree, planned):
    """Of a large project these are thousands."""
    append(tree, "kernels/copy.py")
    assert planned() == ["copy"]
    command = [sys.executable, "-c", COUNT, str(tree.folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0 [1, 1]", done.stdout + done.stderr
    assert tree.build().steps == []


def test_a_spec_that_says_the_same_otherwise_makes_nothing(tree, planned):
    tree.edit("kernels/copy.toml", "BLOCK = [128]", "BLOCK = [ 128 ]  # one")
    assert planned() == ["copy"]
    assert tree.build().steps == []


def add_kernel(tree: Tree) -> None:
    tree.add_kernel("more", "value + 9")


WHOLE = {
    "another argument's promise": lambda tree: tree.edit("kernels/copy.toml", "align = 16", "align = 8"),
    "grid": lambda tree: tree.edit("kernels/copy.toml", "cdiv(n, BLOCK)", "cdiv(n, 2 * BLOCK)"),
    "docstring": lambda tree: tree.edit("kernels/copy.py", "tl.constexpr):\n", 'tl.constexpr):\n    "D"\n'),
    "settings": lambda tree: tree.edit("pyproject.toml", "pythonpath", "max_units = 0\npythonpath"),
    "another kernel": add_kernel,
    "a module that comes first": lambda tree: tree.write("kernels/shared/__init__.py", "raise\n"),
    "no such module any more": lambda tree: shutil.rmtree(tree.folder / "kernels/shared"),
    "a damaged image": lambda tree: next((tree.folder / "build/units").glob("*/copy-*/copy.cubin")).unlink(),
    "a lost plan": lambda tree: (
        (tree.folder / KEPT_PLAN).unlink(),
        append(tree, "kernels/copy.py"),
    ),
    "a damaged plan": lambda tree: (
        (tree.folder / KEPT_PLAN).write_bytes((tree.folder / KEPT_PLAN).read_bytes()[:-1] + b" "),
        append(tree, "kernels/copy.py"),
    ),
}


@pytest.mark.parametrize("kind", in_tiers(WHOLE))
def test_what_an_edit_may_reach_beyond_keys_is_planned_whole(tree, planned, kind):
    WHOLE[kind](tree)
    assert planned() is None
    build = tree.build()
    assert build.code == 0, build.out + build.err
    check(tree)


@pytest.mark.all
def test_a_release_is_made_though_what_was_kept_of_it_is_lost(tree, planned):
    for part in (tree.folder / ENTRIES).iterdir():
        part.write_bytes(b"")
    append(tree, "kernels/copy.py")
    assert planned() == ["copy"]
    assert "release" in tree.build().steps
    check(tree)


def test_what_cannot_be_planned_is_told_as_ever(tree, planned):
    source = (tree.folder / "kernels/copy.py").read_text()
    tree.write("kernels/copy.py", source + "\ndef (\n")
    assert planned() is None
    failed = tree.build()
    assert failed.code == 1
    assert "copy.py" in failed.err
    tree.write("kernels/copy.py", source)
    assert tree.build().code == 0


def test_what_cannot_be_compiled_fails_and_is_made_when_it_can_be(tree, planned):
    source, units = (tree.folder / "kernels/copy.py").read_text(), tree.build().summary["units"]
    tree.write("kernels/copy.py", source.replace("import triton\n", "# stand-in: fail ttir\nimport triton\n", 1))
    assert planned() == ["copy"]
    failed = tree.build()
    assert (failed.code, failed.summary["failed"], failed.summary["units"]) == (1, 1, units)
    tree.write("kernels/copy.py", source)
    assert tree.build().code == 0
    check(tree)


@pytest.mark.all
def test_with_a_build_script_scons_makes_the_same(tree, planned):
    script = Tree(tree.folder.with_name("script"))
    shutil.copy2(script.folder / "SConstruct", tree.folder)
    assert tree.build().code == 0
    append(tree, "kernels/copy.py")
    assert planned() == ["copy"]
    assert tree.build().steps == steps_of("copy")
    assert tree.scons().steps == []
    check(tree)
