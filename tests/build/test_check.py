"""`precast build --check`: samples are built again from nothing and held against what the build has."""

import pytest
from plugin_tree import PluginTree
from tree import Tree

pytestmark = pytest.mark.all

STANDIN = '[tool.precast.triton]\nPRECAST_ENGINE = "stand-in"\n'
UNSTEADY = """
import itertools, random, time
from dataclasses import dataclass
from precast.passes import Pass, end

@dataclass(frozen=True)
class Marks(Pass):
    \"\"\"Leaves a mark in the module.\"\"\"
    name, stage, at = "marks", "ttir", end()
    def run(self, module, context):
        from mlir.ir import IntegerAttr, IntegerType
        module.operation.attributes["test.mark"] = IntegerAttr.get(IntegerType.get_signless(64), {mark})
"""


def test_a_steady_build_is_checked_and_says_so(tmp_path):
    tree = Tree(tmp_path, targets=("cuda:90", "hip:gfx942"), more=STANDIN)
    for name in ("one", "two"):
        tree.add_kernel(name, "value")
    assert tree.build("--check").summary["checked"] == 4
    again = tree.build("--check=50")  # nothing to do, and checked all the same
    assert again.steps == [] and again.summary["checked"] == 4


def test_an_image_that_nobody_would_make_is_found(tmp_path):
    tree = Tree(tmp_path, targets=("cuda:90",), more=STANDIN)
    tree.add_kernel("copy", "value")
    tree.write("kernels/copy.py", "# stand-in: chance llir\n" + (tmp_path / "kernels/copy.py").read_text())
    build = tree.build("--check")
    assert build.code == 1
    failed = [each for each in build.events if each["event"] == "failed"]
    assert [(each["step"], each["message"]) for each in failed] == [
        ("copy:dtype=fp32,BLOCK=128@cuda:90", "built again from nothing, stage llir comes out otherwise")
    ]
    assert build.summary["checked"] == 1 and build.summary["release"] == ""


@pytest.mark.parametrize("mark", ["time.time_ns()", "random.getrandbits(40)", "id(object())"])
def test_a_pass_that_is_no_function_of_its_input_is_named(tmp_path, mark):
    tree = PluginTree(tmp_path, targets=("cuda:90",))
    tree.write("plugins/marks.py", UNSTEADY.format(mark=mark))
    tree.select("marks")
    build = tree.build("--check")
    assert build.code == 1
    texts = [each["text"] for each in build.events if each["event"] == "failed"]
    assert texts and all("`marks`" in text for text in texts), build.out
