"""Plugins as modules: from installed packages, with siblings, without compilers; what their probes say and keep."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest
from plugin_tree import PluginTree

from precast.artifact import UnitResult
from precast.codec import from_json
from precast.errors import PassError, PluginError, PrecastError
from precast.plan import plan_project
from precast.project import read_project

EXAMPLE = Path(__file__).parents[1] / "example_plugin"


@pytest.fixture
def tree(tmp_path):
    return PluginTree(tmp_path / "project", ("cuda:90",))


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder that the example plugin is installed in."""
    source, site = tmp_path_factory.mktemp("source") / "plugin", tmp_path_factory.mktemp("site")
    shutil.copytree(EXAMPLE, source)
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*install, "--target", str(site), str(source)], check=True, capture_output=True)
    return site


@pytest.fixture
def package(installed, tmp_path, monkeypatch):
    """The example plugin, installed where this process and its children look, for edits."""
    site = Path(shutil.copytree(installed, tmp_path / "site"))
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setenv("PYTHONPATH", str(site))
    return site / "example_plugin"


@pytest.fixture
def interpreter(tmp_path, package):
    """An interpreter that has the package installed beside all that this one has."""
    venv.create(tmp_path / "venv", symlinks=True)
    folder = Path(sysconfig.get_path("purelib", vars={"base": str(tmp_path / "venv")}))
    shutil.copytree(package.parent, folder, dirs_exist_ok=True)
    (folder / "around.pth").write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
    return tmp_path / "venv/bin/python"


def build(interpreter, tree):
    command = [interpreter, "-m", "precast", "build", "--project", tree.folder, "--kernel", "scale"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(command, capture_output=True, text=True, env=environment)


def test_an_installed_package_brings_a_pass(tree, interpreter):
    tree.select('use = "limit-size"\nkernels = "scale"')
    done = build(interpreter, tree)
    facts = next((tree.folder / "build/units").glob("cuda-90/scale-*/facts.json"), None)
    assert facts, done.stdout + done.stderr
    result = from_json(facts.read_bytes(), UnitResult)
    assert [run.name for run in result.passes] == ["limit-size"]
    assert json.loads(result.findings[0].data)["ops"] > 5

    tree.select('use = "limit-size"\noptions = { limit = 3 }')
    done = build(interpreter, tree)
    assert done.returncode == 1
    assert "operations, and 3 are allowed" in done.stderr


def test_what_a_package_imports_inside_itself_is_in_the_key(tree, package):
    tree.select('use = "limit-size"\nkernels = "scale"')
    before = {str(each.unit): each.key for each in tree.plan().units}
    counting = package / "counting.py"
    counting.write_text(counting.read_text().replace("sum(1 ", "sum(2 "))
    after = {str(each.unit): each.key for each in tree.plan().units}
    assert [unit for unit in after if after[unit] != before[unit]] == ["scale:dtype=fp32,BLOCK=128@cuda:90"]


def test_a_name_in_a_package_and_in_the_project_names_both(tree, package):
    tree.plugin('mine = BuiltinPass("common.cse", alias="limit-size")\n')
    tree.select("limit-size")
    with pytest.raises(PluginError) as caught:
        tree.plan()
    assert caught.value.message == (
        "two plugins are named `limit-size`: one in plugins/mine.py, one in package precast-example-plugin"
    )


PASS = """
from counting import COUNT

@dataclass(frozen=True)
class Look(Pass):
    name, stage, at = "look", "ttir", end()
    limit: int = COUNT
    scale: float = 1.0
    label: str = ""
    strict: bool = False

    def run(self, module, context):
        pass
"""


def test_a_siblings_edit_reaches_the_key_and_a_probe_is_kept_until_then(tree):
    tree.write("plugins/counting.py", "COUNT = 1\n")
    tree.plugin(PASS)
    tree.select("look")
    key = tree.plan().units[0].key
    probe = tree.folder / "build/plugins/plugins.mine.json"
    written = probe.stat().st_mtime_ns
    assert tree.plan().units[0].key == key
    assert probe.stat().st_mtime_ns == written
    tree.write("plugins/counting.py", "COUNT = 2\n")
    plan = tree.plan()
    assert plan.units[0].key != key and probe.stat().st_mtime_ns != written
    assert dict(plan.units[0].passes[0].options)["limit"] == 2


def select_wrongly(tree, lines):
    tree.write("plugins/counting.py", "COUNT = 1\n")
    tree.plugin(PASS)
    tree.select(lines)
    with pytest.raises(PrecastError) as caught:
        tree.plan()
    errors = getattr(caught.value, "failures", (caught.value,))
    return errors[0]


WRONG = {
    "unknown pass": ('use = "loook"', "there is no pass `loook`", "did you mean `look`?"),
    "unknown option": (
        'use = "look"\noptions = { limt = 3 }', "pass `look` has no option `limt`", "did you mean `limit`?"
    ),
    "wrong type": (
        'use = "look"\noptions = { limit = "3" }', "option `limit` of pass `look` must be an integer, not `\"3\"`", None
    ),
    "truth is no number": (
        'use = "look"\noptions = { limit = true }', "option `limit` of pass `look` must be an integer, not `true`", None
    ),
    "wrong anchor": (
        'use = "look"\nat = "befor(x)"',
        "`befor(x)` is not an anchor",
        "forms: `start`, `end`, `before(op)`, `before(op, n)`, `after(op)`, `after(op, n)`",
    ),
}  # fmt: skip


@pytest.mark.parametrize("lines, message, hint", WRONG.values(), ids=WRONG)
def test_a_wrong_selection_is_told_at_its_place(tree, lines, message, hint):
    error = select_wrongly(tree, lines)
    assert (error.message, error.hint) == (message, hint)
    assert str(error.where).partition(":")[0].endswith("pyproject.toml")


def test_a_pass_that_some_units_cannot_have_fails_these_alone(tmp_path):
    tree = PluginTree(tmp_path / "project")
    tree.write("plugins/counting.py", "COUNT = 1\n")
    tree.plugin(PASS.replace('"ttir"', '"ttgir"'))
    tree.select('use = "look"\nkernels = "scale"')
    message = "pass `look` stands in stage `ttgir`, which `scale` does not have on cpu:x86-64-v3"
    with pytest.raises(PassError) as caught:
        tree.plan()
    assert caught.value.message == message
    plan = plan_project(read_project(tree.folder), keep_going=True)
    assert [(part.name, part.error.message) for part in plan.failed] == [
        ("scale:dtype=fp32,BLOCK=128@cpu:x86-64-v3", message)
    ]
    assert len(plan.units) == 5


def test_whole_numbers_are_good_for_float_options(tree):
    tree.write("plugins/counting.py", "COUNT = 1\n")
    tree.plugin(PASS)
    tree.select('use = "look"\noptions = { scale = 2 }')
    assert dict(tree.plan().units[0].passes[0].options) == {"label": "", "limit": 1, "scale": 2.0, "strict": False}


FAULTY = {
    "syntax": ("def broken(:\n", "6:12", "SyntaxError: invalid syntax"),
    "import": ("import absent_module\n", "6:1", "ModuleNotFoundError: No module named 'absent_module'"),
    "option type": (
        "@dataclass(frozen=True)\nclass P(Pass):\n    name = 'p'\n    sizes: tuple = ()\n", "7:1",
        "option `sizes` of `P` has type <class 'tuple'>: an option is bool, int, float or str",
    ),
}  # fmt: skip


@pytest.mark.parametrize("text, spot, message", FAULTY.values(), ids=FAULTY)
def test_a_faulty_module_is_told_with_its_place(tree, text, spot, message):
    tree.plugin(text)
    tree.select("p")
    with pytest.raises(PluginError) as caught:
        tree.plan()
    assert caught.value.message == f"plugin module `plugins/mine.py`: {message}"
    assert str(caught.value.where) == f"{tree.folder}/plugins/mine.py:{spot}"


def test_a_module_that_ends_its_process_is_told(tree):
    tree.plugin("import os\nos._exit(3)\n")
    tree.select("p")
    with pytest.raises(PluginError) as caught:
        tree.plan()
    assert caught.value.message == "plugin module `plugins/mine.py` ends the process that loads it: exit code 3"


def test_probes_need_no_compiler(tmp_path):
    """The class can be read where neither MLIR nor Triton is installed: planning needs no more."""
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins/mine.py").write_text(
        "from dataclasses import dataclass\n"
        "from mlir import ir\nfrom mlir.dialects import arith\nfrom mlir.ir import Module\nimport triton\n"
        "from precast.passes import *\n"
        "@dataclass(frozen=True)\nclass P(Pass):\n    name = 'p'\n    size: int = 4\n"
        "    def run(self, module: ir.Module, context): return arith.addi\n"
        "native = NativePass('triton:plugins/x.so', 'y')\n"
    )
    hide = (
        "import sys\n"
        "class Hide:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name in ('mlir', 'triton') and not any(type(f).__name__ == '_MissingCompilers' "
        "for f in sys.meta_path): return None\n"
        "sys.path = [p for p in sys.path]\n"
        "import importlib.machinery as m\n"
        "real = m.PathFinder.find_spec\n"
        "m.PathFinder.find_spec = classmethod(lambda cls, name, path=None, target=None: "
        "None if name in ('mlir', 'triton') else real(name, path, target))\n"
        "from pathlib import Path\n"
        "from precast.passes.probe import probe_module\n"
        "probe = probe_module('plugins/mine.py', Path(sys.argv[1]))\n"
        "print([each.name for each in probe.plugins], [each.message for each in probe.faults])\n"
    )
    done = subprocess.run([sys.executable, "-c", hide, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['p', 'y'] []"
