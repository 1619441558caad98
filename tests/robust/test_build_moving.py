"""Code of users that is edited while units are compiled with it: no release is made of what nobody had, real compilers.

A build that finds out says which file and "build again"; the next build gives what a clean one does, byte for byte. The
edit comes while a pass waits for it, in the unit whose kernel reads data: so plan and unit have seen what was there
before, whichever unit comes first and however fast the machine is.
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
KEY = "first"

def meet(name):
    (Path(__file__).parent / name).touch()
    while not Path(__file__).with_name(f"after-{name}").exists():
        time.sleep(0.01)

class Mark(Pass):
    name, stage, at = "mark", "ttir", end()
    reads = ("plugins/table.json",)

    def run(self, module, context):
        kernel = find_kernel(module)
        waits = "scale" in str(kernel.attributes["sym_name"])
        if waits:
            meet("begun")
        made = f"{KEY} {DEPTH} {(Path(__file__).parent / 'table.json').read_text()}"
        kernel.attributes["mark"] = parse_attribute(kernel, json.dumps(made))
        if waits:
            meet("done")

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
    "plugin": ("plugins/mine.py", '"first"', '"second"'),
    "module of a plugin": ("plugins/_depth.py", "1", "2"),
    "data that a plugin declares": ("plugins/table.json", "1", "2"),
    "hook": ("hooks/hook.py", "; {", "; now {"),
    "module of a hook": ("hooks/_words.py", "one", "two"),
    "data that a kernel's module reads": ("kernels/tuned.json", "1", "2"),
}


@pytest.fixture(scope="module")
def primed(tmp_path_factory: pytest.TempPathFactory) -> PluginTree:
    tree = make_tree(tmp_path_factory.mktemp("primed") / "p")
    let_on(tree, "begun", "done")
    assert tree.build().code == 0
    return tree


def let_on(tree: PluginTree, *places: str) -> None:
    """Lets the pass go on from these places."""
    for place in places:
        tree.write(f"plugins/after-{place}", "")


def await_pass(tree: PluginTree, place: str, process: subprocess.Popen[str]) -> None:
    while not (tree.folder / "plugins" / place).exists():
        assert process.poll() is None
        time.sleep(0.02)


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
    await_pass(tree, "begun", process)
    text = (tree.folder / name).read_text()
    tree.edit(name, old, new)
    let_on(tree, "begun")
    await_pass(tree, "done", process)
    if back:
        (tree.folder / name).write_text(text)
    let_on(tree, "done")
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
