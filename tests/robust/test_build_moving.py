"""Code of users that is edited while units are compiled with it: no release is made of what nobody had, real compilers.

A build that finds out says which file and "build again"; the next build gives what a clean one does, byte for byte.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from builds import build_clean, read_release

sys.path.insert(0, str(Path(__file__).parents[1] / "build"))

from plugin_tree import PluginTree

PLUGINS = """
import json, time
from pathlib import Path
from precast.passes.ir import parse_attribute
from _depth import DEPTH

class Mark(Pass):
    name, stage, at = "mark", "ttir", end()
    reads = ("plugins/table.json",)

    def run(self, module, context):
        (Path(__file__).parent / "ran").touch()
        time.sleep(0.6)
        kernel = find_kernel(module)
        made = f"{DEPTH} {(Path(__file__).parent / 'table.json').read_text()}"
        kernel.attributes["mark"] = parse_attribute(kernel, json.dumps(made))

hook = HookFile("hook", "hooks/hook.py", stage="llir")
"""
HOOK = """
from triton import knobs
import _words

def hooked(self=None, stages=None, options=None, language=None, capability=None):
    if all(each is None for each in (stages, options, language, capability)):
        return _words.KEY, _words.KEY
    make = stages["llir"]
    def changed(src, metadata):
        return make(src, metadata) + f"\\n; {_words.KEY}\\n"
    stages["llir"] = changed

knobs.runtime.add_stages_inspection_hook = hooked
"""
EDITS = {
    "plugin": ("plugins/mine.py", "sleep(0.6)", "sleep(0.5)"),
    "module of a plugin": ("plugins/_depth.py", "1", "2"),
    "data that a plugin declares": ("plugins/table.json", "1", "2"),
    "hook": ("hooks/hook.py", "; {", "; now {"),
    "module of a hook": ("hooks/_words.py", "one", "two"),
    "data that a kernel's module reads": ("kernels/tuned.json", "1", "2"),
}


@pytest.fixture(scope="module")
def primed(tmp_path_factory: pytest.TempPathFactory) -> PluginTree:
    tree = make_tree(tmp_path_factory.mktemp("primed") / "p")
    assert tree.build().code == 0
    return tree


def make_tree(folder: Path) -> PluginTree:
    tree = PluginTree(folder, ("cuda:90",))
    tree.plugin(PLUGINS)
    tree.write("plugins/_depth.py", "DEPTH = 1\n")
    tree.write("plugins/table.json", "1")
    tree.write("hooks/hook.py", HOOK)
    tree.write("hooks/_words.py", "KEY = 'one'\n")
    tree.write("kernels/tuned.json", "1")
    reading = "import triton\nNUMBER = int(open(__file__[:-8] + 'tuned.json').read())\n"
    tree.edit("kernels/scale.py", "import triton\n", reading)
    tree.select("mark", "hook")
    return tree


@pytest.mark.all
@pytest.mark.parametrize("back", [False, True], ids=["edit", "edit and back"])
@pytest.mark.parametrize("kind", EDITS)
def test_code_that_moves_while_it_is_used_makes_no_wrong_release(tmp_path, primed, kind, back):
    name, old, new = EDITS[kind]
    tree = make_tree(tmp_path / "p")
    shutil.copytree(primed.folder / "build", tree.folder / "build", dirs_exist_ok=True)
    for left in ("units", "store"):
        shutil.rmtree(tree.folder / "build" / left)
    command = [sys.executable, "-m", "precast", "build", "-j1", "--json"]
    process = subprocess.Popen(command, cwd=tree.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    while process.poll() is None and not (tree.folder / "plugins/ran").exists():
        time.sleep(0.02)
    assert process.returncode is None
    text = (tree.folder / name).read_text()
    tree.edit(name, old, new)
    if back:
        time.sleep(0.2)
        (tree.folder / name).write_text(text)
    said, _ = process.communicate(timeout=120)
    assert process.returncode in ((0, 1) if back else (1,)) and "Traceback" not in said, said
    clean = build_clean(tree, tmp_path / "clean")
    if process.returncode:
        assert name in said and "build again" in said, said
        assert read_release(tree) == {"current": "missing"}
    else:
        assert read_release(tree) == clean
    assert tree.build().code == 0
    assert read_release(tree) == clean
