"""A native plugin library that the project's own SConstruct makes: library → probe → units, in one build."""

import shutil
from pathlib import Path

import pytest
import triton
from tree import Tree

pytestmark = pytest.mark.all

LIBRARY = """library = env.Command("native/mine.so", ["native/code.bin", "native/tail.txt"], "cat $SOURCES > $TARGET")
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
    tree.edit("SConstruct", "env.Precast()\n", LIBRARY)
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


def test_library_that_cannot_be_built_is_told(tree):
    tree.edit("SConstruct", "cat $SOURCES", "cat absent")
    build = tree.build()
    assert build.code == 1 and "Traceback" not in build.err
    assert "a plugin library was not built" in build.err
