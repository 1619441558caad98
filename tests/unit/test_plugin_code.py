"""A plugin's code: a namespace of its own, the bytes that were digested, what it reads, what it leaves behind."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from precast.errors import PassError, PluginError
from precast.passes.children import run_child, search_path
from precast.passes.digest import digest_files
from precast.passes.loading import load_definition
from precast.passes.namespace import Namespace
from precast.passes.probe import probe_module
from precast.passes.registry import is_fresh, read_probes
from precast.passes.resources import find_resources
from precast.passes.selection import Anchor, PassUse
from precast.reads import ReadKind
from precast.worker.descendants import is_running

PASS = """
from dataclasses import dataclass
from precast.passes import Pass

@dataclass(frozen=True)
class Look(Pass):
    name = "look"
    mode: int = 3
"""


def write(folder: Path, files: dict[str, str]) -> Path:
    """Puts files of Python, named without their suffix, into `folder`."""
    for name, text in files.items():
        path = folder / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def use_of(project: Path, *files: str, origin: str = "plugins/a.py", **options: int) -> PassUse:
    digest = digest_files(project, files)
    return PassUse("look", "python", "ttir", Anchor("end"), tuple(options.items()), origin, digest, files)


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A module `common` of somebody else's, imported already, and found on the path."""
    folder = write(tmp_path / "kernels", {"common": "VALUE = 'kernels'"})
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "common", raising=False)
    import common

    yield common
    sys.modules.pop("common", None)


def test_siblings_of_one_name_never_take_each_others_place(tmp_path, elsewhere):
    late = "from common import VALUE\ndef late():\n    import common\n    return common.VALUE\n"
    first = Namespace("one/a.py", write(tmp_path, {"one/a": late, "one/common": "VALUE = 'one'"}))
    second = Namespace("two/a.py", write(tmp_path, {"two/a": late, "two/common": "VALUE = 'two'"}))
    modules = first.load(), second.load()
    assert [module.VALUE for module in modules] == ["one", "two"]
    for namespace, module, value in ((second, modules[1], "two"), (first, modules[0], "one")):
        with namespace.inside():
            assert module.late() == value
    assert sys.modules["common"] is elsewhere and "a" not in sys.modules


def test_every_way_of_importing_finds_the_plugins_own_modules(tmp_path, elsewhere):
    text = """
import importlib
from .common import VALUE as relative
from .deep.inner import VALUE as deep

def late():
    from . import common
    return common.VALUE, importlib.import_module("common").VALUE, __import__("common").VALUE
"""
    write(tmp_path, {"plugins/pack/__init__": text, "plugins/pack/common": "VALUE = 'own'"})
    write(tmp_path, {"plugins/pack/deep/inner": "from ..common import VALUE"})
    namespace = Namespace("plugins/pack/__init__.py", tmp_path)
    module = namespace.load()
    with namespace.inside():
        assert (module.relative, module.deep, module.late()) == ("own", "own", ("own", "own", "own"))
    assert not [name for name in sys.modules if name.partition(".")[0] == "pack"]


def test_a_sibling_cannot_stand_for_the_standard_library(tmp_path):
    write(tmp_path, {"plugins/a": "import enum, random\nEnum = enum.Enum", "plugins/enum": "", "plugins/random": ""})
    assert Namespace("plugins/a.py", tmp_path).load().Enum.__name__ == "Enum"


def test_what_runs_are_the_bytes_that_were_digested(tmp_path):
    write(tmp_path, {"plugins/a": "from _table import K", "plugins/_table": "K = 100"})
    paths = [tmp_path / "plugins" / name for name in ("a.py", "_table.py")]
    namespace = Namespace("plugins/a.py", tmp_path, {path: path.read_bytes() for path in paths})
    (tmp_path / "plugins/_table.py").write_text("K = 200")
    assert namespace.load().K == 100


@pytest.mark.parametrize("edited", ["plugins/a.py", "plugins/_table.py", "plugins/data.json"])
def test_a_file_that_is_not_as_the_plan_saw_it_is_refused(tmp_path, edited):
    write(tmp_path, {"plugins/a": PASS, "plugins/_table": "K = 100"})
    (tmp_path / "plugins/data.json").write_text("{}")
    use = use_of(tmp_path, "plugins/a.py", "plugins/_table.py", "plugins/data.json")
    load_definition(use, tmp_path)
    with (tmp_path / edited).open("a") as file:
        file.write("\n")
    with pytest.raises(PluginError, match=r"the files of pass `look` changed during the build: one of .+\.py"):
        load_definition(use, tmp_path)


def test_each_unit_gets_the_plugins_modules_anew(tmp_path):
    write(tmp_path, {"plugins/a": PASS + "COUNT = []\n"})
    use = use_of(tmp_path, "plugins/a.py")
    (first, _), (second, _) = load_definition(use, tmp_path), load_definition(use, tmp_path)
    assert type(first) is not type(second)


def test_what_a_plugin_reads_is_seen(tmp_path, monkeypatch):
    monkeypatch.setenv("SOME_VARIABLE", "1")
    text = """
import ctypes, importlib, json, os, sqlite3
from pathlib import Path
here = Path(__file__).parent
table = json.loads((here / "table.json").read_text())
def late():
    (here / "out.txt").write_text("written")
    os.listdir(here / "more")
    try:
        open(here / "absent.txt")
    except OSError:
        pass
    try:
        ctypes.CDLL(str(here / "libnone.so"))
    except OSError:
        pass
    for name in (f"file:{here}/rows.db?mode=ro", ":memory:"):
        sqlite3.connect(name, uri=True).close()
    return os.environ.get("SOME_VARIABLE"), os.getenv("ABSENT"), importlib.import_module("hidden").VALUE
"""
    write(tmp_path, {"plugins/a": text, "plugins/hidden": "VALUE = 1", "plugins/more/x": ""})
    (tmp_path / "plugins/table.json").write_text("{}")
    (tmp_path / "plugins/rows.db").write_bytes(b"")
    namespace = Namespace("plugins/a.py", tmp_path)
    module = namespace.load()
    with namespace.inside():
        assert module.late() == ("1", None, 1)
    os.environ.get("OUTSIDE")
    found = {(read.kind, read.name): bool(read.digest) for read in namespace.watch.reads}
    assert found == {
        (ReadKind.DATA, "plugins/a.py"): True,
        (ReadKind.DATA, "plugins/table.json"): True,
        (ReadKind.DATA, "plugins/hidden.py"): True,
        (ReadKind.DATA, "plugins/absent.txt"): False,
        (ReadKind.DATA, "plugins/libnone.so"): False,
        (ReadKind.DATA, "plugins/rows.db"): True,
        (ReadKind.DIRECTORY, "plugins/more"): True,
        (ReadKind.ENVIRONMENT, "SOME_VARIABLE"): True,
        (ReadKind.ENVIRONMENT, "ABSENT"): False,
    }


ASKED = {
    "os.path.exists(here / 'asked')": (ReadKind.PLACE, "plugins/asked"),
    "os.path.isfile(here / 'table.json')": (ReadKind.DATA, "plugins/table.json"),
    "(here / 'more').is_dir()": (ReadKind.PLACE, "plugins/more"),
    "(here / 'asked').exists()": (ReadKind.PLACE, "plugins/asked"),
    "os.path.getsize(here / 'table.json')": (ReadKind.DATA, "plugins/table.json"),
    "os.access(os.fsencode(here / 'asked'), os.R_OK)": (ReadKind.PLACE, "plugins/asked"),
    "os.path.islink(here / 'asked')": (ReadKind.PLACE, "plugins/asked"),
    "os.access('table.json', os.R_OK, dir_fd=os.open(here, os.O_RDONLY))": (ReadKind.DATA, "plugins/table.json"),
    "importlib.util.find_spec('asked')": (ReadKind.PLACE, "plugins/asked.py"),
}


@pytest.mark.parametrize("late", [False, True], ids=["loading", "running"])
@pytest.mark.parametrize("question", ASKED)
def test_what_a_plugin_asks_of_files_is_seen(tmp_path, question, late):
    start = "import importlib.util, os\nfrom pathlib import Path\nhere = Path(__file__).parent\n"
    asking = f"def ask():\n    return {question}\n" + ("" if late else "ask()\n")
    write(tmp_path, {"plugins/a": start + asking + PASS, "plugins/more/x": ""})
    (tmp_path / "plugins/table.json").write_text("{}")
    namespace = Namespace("plugins/a.py", tmp_path)
    module = namespace.load()
    if late:
        before = namespace.undeclared(knows_packages=True)
        with namespace.inside():
            module.ask()
        os.path.exists(tmp_path / "plugins/not the plugin's question")
        assert ASKED[question] not in {(each.kind, each.name) for each in before}
    found = {(each.kind, each.name) for each in namespace.undeclared(knows_packages=True)}
    assert ASKED[question] in found and not [each for each in found if "not the plugin's" in each[1]]


@pytest.mark.parametrize("folder", ["build", "generated"])
def test_what_is_made_is_no_input_of_what_makes_it(tmp_path, folder):
    text = f"from pathlib import Path\nmade = Path(__file__).parents[1] / {folder!r}\n"
    text += "looked = (made / 'a').exists(), (made / 'b').read_text(), list(made.iterdir())\n"
    write(tmp_path, {"plugins/a": text + PASS, f"{folder}/more": ""})
    (tmp_path / folder / "b").write_text("1")
    namespace = Namespace("plugins/a.py", tmp_path)
    namespace.load()
    assert {read.name for read in namespace.watch.reads} == {"plugins/a.py"}


@pytest.mark.parametrize("name", ["plugins/asked", "plugins/more", "plugins/table.json"])
def test_an_answer_that_changes_makes_a_probe_stale(tmp_path, name):
    asking = f"import os\nassert os.path.exists({str(tmp_path / name)!r}) is {name != 'plugins/asked'}\n"
    write(tmp_path, {"plugins/a": asking + PASS, "plugins/more/x": ""})
    (tmp_path / "plugins/table.json").write_text("{}")
    probe = probe_module("plugins/a.py", tmp_path)
    assert is_fresh(probe, tmp_path)
    path = tmp_path / name
    if path.is_dir():
        path.rename(tmp_path / "gone")
    elif path.exists():
        path.unlink()
    else:
        path.mkdir()
    assert not is_fresh(probe, tmp_path)


@pytest.fixture
def outside(tmp_path, monkeypatch):
    """A package beside the project that a plugin depends on, and one that that depends on."""
    site = tmp_path / "lib" / "site-packages"
    write(site, {"helping/__init__": "from lower import LOWER\nVALUE = LOWER", "lower": "LOWER = 1", "unused": "X = 1"})
    monkeypatch.syspath_prepend(str(site))
    yield site
    for name in ("helping", "lower", "unused"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("where", ["import helping\n", "def late():\n    import helping\n"])
def test_an_upgraded_dependency_changes_the_digest(tmp_path, outside, where):
    project = write(tmp_path / "project", {"plugins/a": where + PASS})
    probe = probe_module("plugins/a.py", project)
    assert is_fresh(probe, project)
    for file, is_used in (("lower.py", True), ("unused.py", False)):
        before = (outside / file).read_text()
        (outside / file).write_text("LOWER = 2\nX = 2\n")
        for name in ("helping", "lower"):
            sys.modules.pop(name, None)
        assert is_fresh(probe, project) is not is_used
        assert (probe_module("plugins/a.py", project).plugins[0].digest == probe.plugins[0].digest) is not is_used
        (outside / file).write_text(before)


def test_what_a_module_reads_while_it_loads_is_in_its_digest(tmp_path):
    reading = "from pathlib import Path\n(Path(__file__).parent / 't.json').read_text()\n"
    project = write(tmp_path, {"plugins/a": reading + PASS})
    (project / "plugins/t.json").write_text("1")
    probe = probe_module("plugins/a.py", project)
    assert probe.plugins[0].files == ("plugins/a.py", "plugins/t.json")
    (project / "plugins/t.json").write_text("2")
    assert not is_fresh(probe, project)


DECLARED = """
from precast.passes import *

class Look(Pass):
    name, reads = "look", ("data/*.json",)

builtin = BuiltinPass("common.cse", reads=("data/*.json",))
replaced = Replace("replaced", "ttgir", "pipeline", by=BuiltinPass("x.y", reads=("data/*.json",)))
drop = Drop("drop", "ttgir", "pipeline", reads=("data/*.json",))
override = Override("override", "ttir", "data/saved.toml", reads=("data/*.json",))
hook = HookFile("hook", "data/hook.py", reads=("data/*.json",))
op = ElementwiseOp("op", ("fp32",), {}, reads=("data/*.json",))
"""


def test_reads_of_every_kind_of_plugin_are_in_its_digest(tmp_path):
    project = write(tmp_path, {"plugins/a": DECLARED, "data/hook": ""})
    for name in ("one.json", "two.json", "saved.toml"):
        (project / "data" / name).write_text("{}")
    probe = probe_module("plugins/a.py", project)
    assert not probe.faults and len(probe.plugins) == 7
    assert all({"data/one.json", "data/two.json"} <= set(each.files) for each in probe.plugins)
    (project / "data/three.json").write_text("{}")
    assert not is_fresh(probe, project)


def test_reads_that_name_nothing_are_a_fault(tmp_path):
    project = write(tmp_path, {"plugins/a": PASS + 'Look.reads = ("data/*.json",)\n'})
    assert probe_module("plugins/a.py", project).faults[0].message == "there is no file `data/*.json`"
    write(project, {"plugins/a": PASS + 'Look.reads = "data.json"\n'})
    assert probe_module("plugins/a.py", project).faults[0].message == "`reads` is a tuple of paths, not `'data.json'`"


def test_data_of_a_package_is_named_by_the_package(tmp_path, outside):
    (outside / "helping" / "one.json").write_text("{}")
    assert find_resources("helping:*.json", tmp_path) == ("helping:one.json",)


def test_options_that_the_author_refuses_are_the_passes_fault(tmp_path):
    check = "    def __post_init__(self):\n        if self.mode > 8:\n            raise ValueError('at most 8')\n"
    project = write(tmp_path, {"plugins/a": PASS + check})
    assert probe_module("plugins/a.py", project).plugins[0].checks_options
    with pytest.raises(PassError) as caught:
        load_definition(use_of(project, "plugins/a.py", mode=9), project)
    assert caught.value.message == "pass `look` cannot be made: ValueError: at most 8"
    assert (caught.value.where.file, caught.value.where.line) == ("plugins/a.py", 11)


@pytest.mark.parametrize("text, message", [
    ("import sys\nsys.exit(3)", "it called `sys.exit(3)`"),
    ("raise KeyboardInterrupt", "KeyboardInterrupt"),
    ("class E(BaseException): pass\nraise E('odd')", "E: odd"),
])  # fmt: skip
def test_whatever_a_module_raises_is_its_fault(tmp_path, text, message):
    fault = probe_module("plugins/a.py", write(tmp_path, {"plugins/a": "\n" + text})).faults[0]
    assert (fault.message, fault.file, fault.line) == (message, "plugins/a.py", 3 if "\n" in text else 2)


def test_children_run_away_from_the_project(tmp_path, monkeypatch):
    for name in ("random", "enum", "json", "argparse"):
        (tmp_path / f"{name}.py").write_text("raise SystemError('of the project')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    write(tmp_path, {"plugins/a": "print('a banner')\nimport random\n" + PASS, "plugins/enum": ""})
    out = tmp_path / "out.json"
    done = run_child("precast.passes.probe", ["plugins/a.py", "--project", str(tmp_path), "--out", str(out)], 60)
    assert (done.code, done.words) == (0, "a banner")
    assert [each["name"] for each in json.loads(out.read_text())["plugins"]] == ["look"]


def test_the_folder_that_python_was_started_in_is_no_place_for_modules(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), "/somewhere"])
    assert search_path() == ["/somewhere"]
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert search_path() == [str(tmp_path), "/somewhere"]


SLOW = """
import subprocess
print("here", flush=True)
subprocess.run(["sh", "-c", "echo $$ > draft && mv draft {begun} && exec sleep 1000"])
"""
# The time limit is over once all has begun, however long that takes.
IMPATIENT = """
import os, subprocess, time
from precast.passes.children import run_child
wait = subprocess.Popen.wait

def wait_until_begun(child, limit=None):
    while limit and not os.path.exists({begun!r}):
        time.sleep(0.01)
    return wait(child, limit and 0.01)

subprocess.Popen.wait = wait_until_begun
print(run_child("slow", [], 5.0))
"""


def test_a_child_that_hangs_is_ended_with_all_that_it_started(tmp_path):
    begun = tmp_path / "begun"
    write(tmp_path, {"slow": SLOW.format(begun=begun)})
    command = [sys.executable, "-c", IMPATIENT.format(begun=str(begun))]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == "Finished(code=None, words='here')", done.stderr
    process, deadline = int(begun.read_text()), time.monotonic() + 300
    while is_running(process):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_sibling_that_is_not_there_is_looked_for_again(tmp_path):
    """At the top of a plugin, where a probe asks, and in its code, which a worker runs."""
    optional = "try:\n    from maybe import VALUE\nexcept ImportError:\n    VALUE = 1\n"
    late = "def late():\n    try:\n        import later\n    except ImportError:\n        return 1\n"
    write(tmp_path, {"plugins/a": optional + late + PASS})
    probe = probe_module("plugins/a.py", tmp_path)
    assert is_fresh(probe, tmp_path)
    namespace = Namespace("plugins/a.py", tmp_path)
    module = namespace.load()
    with namespace.inside():
        assert module.late() == 1
    absent = {each.name for each in namespace.undeclared(knows_packages=True) if each.kind is ReadKind.PLACE}
    assert {"plugins/later.py", "plugins/later/__init__.py", "plugins/maybe.py"} <= absent
    write(tmp_path, {"plugins/maybe": "VALUE = 2"})
    assert not is_fresh(probe, tmp_path)
    assert probe_module("plugins/a.py", tmp_path).plugins[0].digest != probe.plugins[0].digest


@pytest.mark.parametrize("ask", ["os.environb[b'PATH']", "os.getenvb(b'PATH')", "os.get_exec_path()"])
def test_a_variable_that_is_asked_for_in_bytes_is_seen(tmp_path, ask):
    write(tmp_path, {"plugins/a": f"import os\nFOUND = {ask}\n"})
    namespace = Namespace("plugins/a.py", tmp_path)
    namespace.load()
    reads = namespace.undeclared(knows_packages=True)
    assert "PATH" in {each.name for each in reads if each.kind is ReadKind.ENVIRONMENT}
    assert type(os.environb) is type(os.environ)


@pytest.mark.parametrize("text", ["[]", "no", "{}"])
def test_plugin_that_spoils_its_probes_answer_is_told(tmp_path, text):
    write(tmp_path, {"plugins/look": f"{PASS}\nimport json\njson.dumps = lambda *_, **__: {text!r}\n"})
    with pytest.raises(PluginError, match=r"`plugins/look\.py` spoils what the process that loads it writes"):
        read_probes(tmp_path, tmp_path / "build")
