"""A native plugin library that the project's own SConstruct makes: library → probe → units, in one build."""

import shutil
from pathlib import Path

import pytest
import triton
from tree import Tree

pytestmark = pytest.mark.all

SCONSTRUCT = """
import precast

env = Environment(tools=["default", "precast_tool"], toolpath=[precast.scons_toolpath])
library = env.Command("native/mine.so", ["native/code.bin", "native/tail.txt"], "cat $SOURCES > $TARGET")
env.Precast(plugins=[library])
"""

PLUGIN = """
from precast.passes import NativePass

rename = NativePass("native/mine.so", "plugin")
"""

SELECTION = """
[[tool.precast.pass]]
use = "plugin"
kernels = "scale"
"""


@pytest.fixture
def tree(tmp_path):
    tree = Tree(tmp_path / "p", targets=("cuda:90",), more=SELECTION)
    tree.write("SConstruct", SCONSTRUCT)
    tree.write("plugins/mine.py", PLUGIN)
    tree.add_kernel("scale")
    tree.add_kernel("copy", "value")
    sample = Path(triton.__file__).parent / "plugins" / "libTritonPluginsTestLib.so"
    (tree.folder / "native").mkdir()
    shutil.copy(sample, tree.folder / "native/code.bin")
    tree.write("native/tail.txt", "one\n")
    return tree


SCALE = "scale:dtype=fp32,BLOCK=128@cuda:90"


def test_library_is_built_before_its_units_and_its_sources_are_watched(tree):
    first = tree.build()
    assert first.code == 0, first.err
    assert first.compiled == ["copy:dtype=fp32,BLOCK=128@cuda:90", SCALE]
    assert '"name": "plugin"' in (first.release / "manifest.json").read_text()
    assert tree.build().steps == []
    assert tree.scons().steps == []
    tree.write("native/tail.txt", "two\n")
    second = tree.build()
    ran = [step for step in second.steps if "@" in step]
    assert ran == [SCALE]
    assert tree.build().steps == [] and tree.scons().steps == []


ON_THE_WAY = """
part = env.Command("native/part.bin", "native/tail.txt", "tr a-z A-Z < $SOURCE > $TARGET")
library = env.Command("native/mine.so", ["native/code.bin", part], "cat $SOURCES > $TARGET")
"""


@pytest.mark.parametrize("lost", [False, True], ids=["index", "no index"])
@pytest.mark.parametrize("name", ["native/mine.so", "native/part.bin"])
def test_library_that_was_damaged_is_built_again(tree, name, lost):
    """Whoever remembers what it was; and nothing is built of what was damaged on the way to it."""
    before = 'library = env.Command("native/mine.so", ["native/code.bin", "native/tail.txt"], "cat $SOURCES > $TARGET")'
    tree.edit("SConstruct", before, ON_THE_WAY)
    release = tree.build().release
    wanted = {each: (tree.folder / each).read_bytes() for each in ("native/mine.so", "native/part.bin")}
    (tree.folder / name).write_bytes(wanted[name][:-2] + b"x\n")
    if lost:
        (tree.folder / "build/index.sqlite").unlink()
    again = tree.build()
    assert again.release == release, again.err
    assert {each: (tree.folder / each).read_bytes() for each in wanted} == wanted
    assert tree.build().steps == [] and tree.scons().steps == []


def test_library_that_cannot_be_built_is_told(tree):
    tree.edit("SConstruct", "cat $SOURCES", "cat absent")
    build = tree.build()
    assert build.code == 1 and "Traceback" not in build.err
    assert "a plugin library was not built" in build.err
