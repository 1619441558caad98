"""A build with nothing to do plans nothing, and is never taken for one: whatever a plan rests on, it notices."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tree import Tree, make_tree, run

import precast

MORE = """
[tool.precast.tools]
ptxas = "tools/ptxas"

[tool.precast.triton]
PRECAST_ENGINE = "stand-in"
"""
ASK = """
import sys
from pathlib import Path
from precast.graph.request import Request
from precast.graph.snapshot import find_earlier
for line in sys.stdin:
    kernels = tuple(line.split()[1:]) or ("*",)
    found = find_earlier(Path(line.split()[0]), Request(kernels=kernels))
    print(found is not None and not found.moved, flush=True)
"""
PACKAGES = ("SCons", "triton", "mlir", "llvmlite", "rich", "cattrs", "tree_sitter", "sqlite3")


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    folder = tmp_path_factory.mktemp("snapshot") / "project"
    tree = make_tree(folder, more=MORE)
    (folder / "SConstruct").unlink()
    tree.edit("pyproject.toml", 'pythonpath = ["kernels"]', 'pythonpath = ["first", "second", "kernels"]')
    tree.write("second/deep/tables.py", "WIDTH = 1\n")
    tree.write("second/deep/__init__.py", "")
    (folder / "first").mkdir()
    head = "# stand-in: data kernels/table.txt\nimport triton\nimport deep.tables\n"
    tree.edit("kernels/copy.py", "import triton\n", head)
    tree.write("tools/one", "an assembler\n")
    tree.write("tools/two", "an assembler\n")
    (folder / "tools/ptxas").symlink_to("one")
    assert tree.build().summary["built"] == 6
    return tree


@pytest.fixture(scope="module")
def ask(tree):
    """Whether nothing has moved since the build, asked of a process whose path is that of builds."""
    command = [sys.executable, "-c", ASK]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:

        def answer(*kernels: str) -> bool:
            child.stdin.write(f"{tree.folder} {' '.join(kernels)}\n")
            child.stdin.flush()
            return child.stdout.readline() == "True\n"

        yield answer
        child.stdin.close()


def write(path: Path, text: str):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def append(path: Path):
    path.write_text(path.read_text() + "\n# more\n")


def lead_to(link: Path, target: str):
    link.unlink()
    link.symlink_to(target)


def overwrite_quietly(path: Path):
    """Other content of the same size, at the same time, in the same file."""
    before = path.stat()
    path.chmod(0o644)
    path.write_bytes(bytes(len(path.read_bytes())))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def an_image(folder: Path) -> Path:
    return next((folder / "build/units").glob("*/copy-*/copy.cubin"))


EDITS = {
    "settings": lambda folder: append(folder / "pyproject.toml"),
    "spec": lambda folder: append(folder / "kernels/copy.toml"),
    "new spec": lambda folder: write(folder / "kernels/new.toml", ""),
    "spec goes": lambda folder: (folder / "kernels/copy.toml").unlink(),
    "source": lambda folder: append(folder / "kernels/copy.py"),
    "helper": lambda folder: append(folder / "kernels/shared.py"),
    "helper goes": lambda folder: (folder / "kernels/shared.py").unlink(),
    "module in a package": lambda folder: append(folder / "second/deep/tables.py"),
    "package comes earlier": lambda folder: write(folder / "first/deep/__init__.py", ""),
    "module comes earlier": lambda folder: write(folder / "first/deep.py", ""),
    "package in place of a module": lambda folder: write(folder / "second/deep/tables/__init__.py", ""),
    "kernels become a package": lambda folder: write(folder / "kernels/__init__.py", ""),
    "folder of the path goes": lambda folder: (folder / "first").rmdir(),
    "data that was not there": lambda folder: write(folder / "kernels/table.txt", "1"),
    "plugin": lambda folder: write(folder / "plugins/new.py", ""),
    "build script": lambda folder: write(folder / "SConstruct", "import precast\n"),
    "link to a tool": lambda folder: lead_to(folder / "tools/ptxas", "two"),
    "image": lambda folder: an_image(folder).unlink(),
    "quiet damage": lambda folder: overwrite_quietly(an_image(folder)),
    "pack": lambda folder: append(folder / "build/launchers/files.json"),
    "release": lambda folder: next((folder / "generated/demo").glob("1.0*/include/demo.h")).unlink(),
    "pointer": lambda folder: (folder / "generated/demo/release.json").unlink(),
    "current": lambda folder: lead_to(folder / "generated/demo/current", "elsewhere"),
    "unfinished memory": lambda folder: write(folder / "build/.digests.json.0123456789ab.tmp", ""),
    "unfinished snapshot": lambda folder: write(folder / "build/snapshots/.all.0123456789ab.tmp", ""),
    "unfinished entry": lambda folder: write(folder / "build/entries/.0123.0123456789ab.tmp", ""),
}  # fmt: skip


@pytest.fixture
def as_it_was(tree):
    """Puts everything back, file by file, with its times."""
    copy = tree.folder.with_name("copy")
    shutil.copytree(tree.folder, copy, symlinks=True)
    yield
    shutil.rmtree(tree.folder)
    copy.rename(tree.folder)


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_what_moves_is_noticed(tree, ask, as_it_was, edit):
    assert ask()
    edit(tree.folder)
    assert not ask()


def test_what_does_not_count_is_not_noticed(tree, ask, as_it_was):
    for name in ("notes.md", "kernels/notes.md", "first/notes.py", "generated/notes", "build/notes"):
        write(tree.folder / name, "a note")
    os.utime(tree.folder / "kernels/copy.py")
    assert ask()
    assert not ask("copy")  # another selection has other steps


def test_damaged_snapshot_is_none(tree, ask, as_it_was):
    path = tree.folder / "build/snapshots/all"
    whole = path.read_bytes()
    for place in range(0, len(whole), len(whole) // 12):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert not ask()
    path.write_bytes(whole)
    assert ask()


def test_every_file_of_precast_counts(tree):
    """So that another version, or an edit of this one, plans anew."""
    head = json.loads((tree.folder / "build/snapshots/all").read_bytes().split(b"\n")[1])
    sources = {folder + name for folder, names in head["folders"][1] for name in names}
    own = {str(path) for path in Path(precast.__file__).parent.rglob("*.py")}
    assert len(own) > 100 and own <= sources


def test_installed_packages_count(tmp_path, tree):
    """An entry point of a plugin package that comes, or another path."""
    site = tmp_path / "site"
    site.mkdir()
    command = [sys.executable, "-c", ASK]

    def answer() -> str:
        environment = {**os.environ, "PYTHONPATH": str(site)}
        return subprocess.run(
            command, input=f"{tree.folder}\n", env=environment, capture_output=True, text=True, check=True
        ).stdout

    assert answer() == "False\n"  # another path
    assert tree.build(PYTHONPATH=str(site)).code == 0
    assert answer() == "True\n"
    write(site / "one-1.0.dist-info/entry_points.txt", "[precast.passes]\n")
    assert answer() == "False\n"


def test_null_build_imports_and_plans_nothing(tree):
    tree.build()
    time.sleep(2.5)  # files that were written just now are looked at again, and that is noted in the index
    tree.build()
    command = [sys.executable, "-X", "importtime", "-m", "precast", "build", "--json", "--project", str(tree.folder)]
    null = run(command, None, {})
    assert (null.code, null.steps, null.summary["reused"]) == (0, [], 6), null.err
    imported = set(re.findall(r"\| +([\w.]+)$", null.err, re.MULTILINE))
    assert "precast.graph.snapshot" in imported
    assert not [name for name in imported if name.partition(".")[0] in PACKAGES or name.startswith("precast.plan")]


def test_null_build_reads_no_file_that_has_settled(tree, ask):
    """Once the times of all files can be trusted, they are not read again."""
    assert ask()
    time.sleep(2.2)
    assert ask()
    before = (tree.folder / "build/snapshots/all").stat().st_mtime_ns
    assert ask()
    assert (tree.folder / "build/snapshots/all").stat().st_mtime_ns == before


LOOK = """
import json, os, sys
from pathlib import Path
from precast.plan import plan_project
from precast.project import read_project
opened, asked = set(), set()
def hear(event, words):
    if event in ("open", "os.listdir", "os.scandir") and isinstance(words[0], (str, bytes, os.PathLike)):
        (opened if event == "open" else asked).add(os.path.abspath(os.fsdecode(words[0])))
def hearing(function):
    def hear_path(path, *more, **named):
        if isinstance(path, (str, bytes, os.PathLike)):
            asked.add(os.path.abspath(os.fsdecode(path)))
        return function(path, *more, **named)
    return hear_path
folder = Path(sys.argv[1])
for turn in range(2):  # the first makes what the second finds kept
    if turn:
        sys.addaudithook(hear)
        os.stat, os.lstat = hearing(os.stat), hearing(os.lstat)
    plan = plan_project(read_project(folder))
looks = [*plan.looks.files, *(each.name for each in plan.looks.reads)]
looks += [os.path.dirname(folder / each.name) for each in plan.looks.reads if each.kind == "glob"]  # it lists them
listed = [each.name for each in plan.looks.reads if each.kind == "directory"]
print(json.dumps([[*map(os.path.abspath, each)] for each in (opened, asked, looks, listed)]))
"""


def test_plan_tells_of_all_that_it_asks(tmp_path):
    """Every file that a plan opens, and every place that it asks about, is among what it says that it looked at."""
    more = '[tool.precast.tools]\nptxas = "tools/ptxas"'
    tree = make_tree(tmp_path / "project", targets=("cuda:90", "cpu:x86-64-v3"), more=more)
    tree.write("tools/ptxas", "an assembler\n")
    tree.edit("kernels/copy.py", "import triton\n", "import triton\nimport packaging.version, absent\n")
    command = [sys.executable, "-c", LOOK, str(tree.folder)]
    environment = {**os.environ, "XDG_CACHE_HOME": str(tree.folder / "build/cache")}
    out = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path, env=environment).stdout
    opened, asked, looks, listed = map(set, json.loads(out.splitlines()[-1]))
    around = {str(parent) for path in looks for parent in Path(path).parents}
    mine = [path for path in opened if is_of_interest(path, tree)]
    assert len(mine) > 5 and not [path for path in mine if path not in looks]
    assert str(tree.folder / "tools/ptxas") in looks
    places = [path for path in asked if is_of_interest(path, tree) and os.path.dirname(path) not in listed]
    assert len(places) > 100 and not [path for path in places if path not in looks | around]


def is_of_interest(path: str, tree: Tree) -> bool:
    """Not of the interpreter itself, not made by the build, no bytecode, not what packages say of themselves, which has
    a digest of its own."""
    build = str(tree.folder / "build")
    inside = ("__pycache__", ".dist-info/", ".egg-info/", ".pth", "__editable__")
    return not path.startswith((sys.base_prefix, build, "/proc", "/dev", "/etc")) and not any(
        each in path for each in inside
    )


@pytest.mark.all
def test_plain_scons_leaves_one_when_all_is_made(tmp_path):
    tree = make_tree(tmp_path / "p", more='[tool.precast.triton]\nPRECAST_ENGINE = "stand-in"\n')
    kept = tree.folder / "build/snapshots/all"

    def unmoved() -> bool:
        command = [sys.executable, "-c", ASK]
        asked = f"{tree.folder}\n"
        return subprocess.run(command, input=asked, capture_output=True, text=True, check=True).stdout == "True\n"

    assert tree.scons("build/launchers/files.json").code == 0 and not kept.exists()
    assert tree.scons().code == 0 and kept.exists() and unmoved()
    tree.edit("kernels/copy.py", "import triton\n", "import triton\n\n")
    assert not unmoved()
    assert tree.scons("-n").code == 0 and not unmoved()
    assert tree.scons("build/launchers/files.json").code == 0 and not unmoved()
    assert tree.scons().code == 0 and unmoved()
