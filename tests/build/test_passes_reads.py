"""What a pass reads undeclared while it runs is an input of the next build; what it declares is in its key."""

import pytest
from plugin_tree import PluginTree

pytestmark = pytest.mark.all

READING = """
import importlib, json, os
from pathlib import Path
from precast.passes.ir import parse_attribute

HERE = Path(__file__).parent

class Mark(Pass):
    name, stage, at = "mark", "ttir", end()
    {more}

    def run(self, module, context):
        kernel = find_kernel(module)
        value = {value}
        kernel.attributes["mark"] = parse_attribute(kernel, json.dumps(str(value)))
"""
VALUES = {
    "data": "(HERE / 'table.json').read_text()",
    "module": "importlib.import_module('_hidden').VALUE",
    "question": "(HERE / 'asked.txt').exists()",
    "folder": "sorted(path.name for path in (HERE / 'tables').iterdir())",
}
FILES = {"data": "table.json", "module": "_hidden.py", "folder": "tables/two.txt", "question": "asked.txt"}


@pytest.fixture
def tree(tmp_path):
    tree = PluginTree(tmp_path, ("cuda:90",))
    tree.write("plugins/table.json", "1")
    tree.write("plugins/_hidden.py", "VALUE = 1")
    tree.write("plugins/tables/one.txt", "1")
    return tree


def read_ir(tree: PluginTree) -> str:
    (file,) = tree.folder.glob("build/units/*/scale-*/scale.ttir")
    return file.read_text()


@pytest.mark.parametrize("kind", VALUES)
def test_what_a_pass_reads_undeclared_is_an_input_of_the_next_build(tree, kind):
    tree.plugin(READING.format(value=VALUES[kind], more=""))
    tree.select('use = "mark"\nkernels = "scale"')
    first = tree.build()
    told = [each["message"] for each in first.events if each["event"] == "warning"]
    assert [message.partition(":")[0] for message in told] == ([] if kind in ("folder", "question") else ["scale"])
    before = read_ir(tree)
    assert tree.build().steps == []
    tree.write(f"plugins/{FILES[kind]}", "VALUE = 2")
    assert "scale" in [each.partition(":")[0] for each in tree.build().steps]
    assert read_ir(tree) != before
    assert tree.build().steps == []


def test_what_a_pass_declares_is_nothing_to_tell(tree):
    tree.plugin(READING.format(value=VALUES["data"], more='reads = ("plugins/*.json",)'))
    tree.select('use = "mark"\nkernels = "scale"')
    first = tree.build()
    assert not [each for each in first.events if each["event"] == "warning"]
    before = read_ir(tree)
    tree.write("plugins/table.json", "2")
    assert "scale" in [each.partition(":")[0] for each in tree.build().steps]
    assert read_ir(tree) != before
