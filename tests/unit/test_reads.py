"""What a kernel's module read and asked when it was imported: all of it is told, and nothing that it did not."""

import hashlib
import importlib
import os
import py_compile
import sqlite3
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import pytest

from precast.engines import StageFailure
from precast.engines.triton.environment import worker_environment
from precast.engines.triton.load import KernelLoader
from precast.passes.watching import is_shared
from precast.reads import ABSENT, Read, ReadKind, digest_now, is_pseudo
from precast.spec.model import CompileSettings, Source
from precast.target import Target

CPU, CUDA, HIP = (Target.parse(text) for text in ("cpu:x86-64-v3", "cuda:90", "hip:gfx942"))
HEAD = "import triton\nimport triton.language as tl\n"
KERNEL = "@triton.jit\ndef kernel(x_ptr):\n    tl.store(x_ptr, VALUE)\n"


@pytest.fixture
def loader():
    found = KernelLoader()
    yield found
    found.close()


@pytest.fixture
def load(loader, tmp_path):
    """Loads `kernel` from `kernels/one.py`, beside other files."""

    def load_files(text: str, target: Target = CUDA, **others: str):
        for name, content in {"one.py": text, **others}.items():
            path = tmp_path / "kernels" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists() or path.read_text() != content:
                path.write_text(content)
        return loader.load(Source("kernels/one.py", "", "kernel"), tmp_path, [tmp_path / "kernels"], target)

    return load_files


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def reads_of(loaded, kind: ReadKind) -> dict[str, str]:
    return {each.name: each.digest for each in loaded.recording.reads() if each.kind is kind}


def test_every_source_is_told_with_the_digest_of_what_ran(load):
    text = HEAD + "import importlib\nVALUE = tl.constexpr(importlib.import_module('hel' + 'per').VALUE)\n" + KERNEL
    loaded = load(text, **{"helper.py": "VALUE = 2\n"})
    assert reads_of(loaded, ReadKind.SOURCE) == {
        "kernels/one.py": digest_of(text),
        "kernels/helper.py": digest_of("VALUE = 2\n"),
    }
    assert loaded.recording.reads() == tuple(sorted(loaded.recording.reads()))


def test_a_file_that_changes_while_it_runs_is_told_and_compiled_as_it_ran(load):
    """Triton reads a function's text when it is decorated, long after Python compiled the module."""
    edit = "import pathlib\npathlib.Path(__file__).write_text('VALUE = 9\\n')\nVALUE = tl.constexpr(1)\n"
    loaded = load(HEAD + edit + KERNEL)
    assert "VALUE)" in loaded.function.src
    assert reads_of(loaded, ReadKind.SOURCE) == {"kernels/one.py": digest_of(HEAD + edit + KERNEL)}
    assert not loaded.recording.is_current()


@pytest.mark.parametrize(
    "reading",
    [
        "json.loads(pathlib.Path(__file__).with_name('tuned.json').read_text())",
        "json.load(open(os.path.join(os.path.dirname(__file__), 'tuned.json')))",
        "json.loads(os.read(os.open(os.path.join(os.path.dirname(__file__), 'tuned.json'), os.O_RDONLY), 99))",
        "json.loads(pkgutil.get_data(__name__, 'tuned.json'))",
        "json.loads(importlib.resources.files('pack').joinpath('tuned.json').read_text())",
        "json.loads(importlib.resources.read_text('pack', 'tuned.json'))",
        "json.load(importlib.resources.open_text('pack', 'tuned.json'))",
        "json.loads(linecache.getline(os.path.join(os.path.dirname(__file__), 'tuned.json'), 1))",
        "json.loads(''.join(fileinput.input(os.path.join(os.path.dirname(__file__), 'tuned.json'))))",
    ],
)
def test_a_data_file_is_told(load, reading):
    head = "import fileinput, importlib.resources, json, linecache, os, pathlib, pkgutil\n"
    content = '{"d": 1}\n'
    others = {"tuned.json": content, "pack/__init__.py": "", "pack/tuned.json": content}
    (name,) = reads_of(
        load(HEAD + head + f"VALUE = tl.constexpr({reading}['d'])\n" + KERNEL, **others), ReadKind.DATA
    ).items()
    assert name == ("kernels/pack/tuned.json" if "pack" in reading else "kernels/tuned.json", digest_of(content))


@pytest.mark.parametrize(
    "listing",
    ["os.listdir(HERE)", "list(os.scandir(HERE))", "glob.glob(HERE + '/*.json')", "list(pathlib.Path(HERE).iterdir())"],
)
def test_a_folder_that_is_listed_is_told(load, tmp_path, listing):
    head = "import glob, os, pathlib\nHERE = os.path.dirname(__file__)\n"
    loaded = load(HEAD + head + f"VALUE = tl.constexpr(len({listing}))\n" + KERNEL, **{"a.json": ""})
    (read,) = (each for each in loaded.recording.reads() if each.kind is ReadKind.DIRECTORY)
    assert read.name == "kernels" and digest_now(read, tmp_path, {}) == read.digest
    (tmp_path / "kernels" / "__pycache__").mkdir()
    assert digest_now(read, tmp_path, {}) == read.digest
    (tmp_path / "kernels" / "b.json").write_text("")
    assert digest_now(read, tmp_path, {}) != read.digest


def test_a_file_that_is_read_twice_counts_as_it_was_first(load):
    edit = "PATH = __file__.replace('one.py', 'table.txt')\nFIRST = open(PATH).read()\nopen(PATH, 'w').write('other')\n"
    loaded = load(HEAD + edit + "AGAIN = open(PATH).read()\nVALUE = tl.constexpr(1)\n" + KERNEL, **{"table.txt": "1"})
    assert reads_of(loaded, ReadKind.DATA) == {"kernels/table.txt": digest_of("1")}
    assert not loaded.recording.is_current()


@pytest.mark.parametrize(
    "asking",
    [
        "os.environ['ASKED']",
        "os.environ.get('ASKED')",
        "os.getenv('ASKED')",
        "'ASKED' in os.environ",
        "dict(os.environ)",
    ],
)
def test_a_variable_that_is_asked_for_is_told(load, monkeypatch, asking):
    monkeypatch.setenv("ASKED", "yes")
    found = reads_of(
        load(HEAD + f"import os\nVALUE = tl.constexpr(1)\nASKED = {asking}\n" + KERNEL), ReadKind.ENVIRONMENT
    )
    assert found["ASKED"] == digest_of("yes")
    assert asking.startswith("dict") or set(found) == {"ASKED"}


def test_a_variable_that_is_not_there_is_told_too(load, monkeypatch):
    monkeypatch.delenv("ASKED", raising=False)
    loaded = load(HEAD + "import os\nVALUE = tl.constexpr(int(os.environ.get('ASKED', 1)))\n" + KERNEL)
    assert reads_of(loaded, ReadKind.ENVIRONMENT) == {"ASKED": ABSENT}


def test_a_module_that_reads_nothing_tells_nothing(load):
    imports = "import json, dataclasses, inspect, warnings, xml.dom\n"
    says = "warnings.warn('so be it')\ninspect.getsource(inspect.getsource)\n"
    loaded = load(HEAD + imports + says + "VALUE = tl.constexpr(1)\n" + KERNEL)
    assert [each for each in loaded.recording.reads() if each.kind is not ReadKind.SOURCE] == []


def test_a_database_is_told(load, tmp_path):
    for name in ("plain.db", "by uri.db"):
        with sqlite3.connect(tmp_path / name) as database:
            database.execute("create table t(v)")
            database.execute("insert into t values (1)")
    names = (str(tmp_path / "plain.db"), f"file:{tmp_path}/by%20uri.db?mode=ro", ":memory:")
    text = "".join(f"sqlite3.connect({each!r}, uri=True)\n" for each in names)
    loaded = load(HEAD + "import sqlite3\nVALUE = tl.constexpr(1)\n" + text + KERNEL)
    assert set(reads_of(loaded, ReadKind.DATA)) == {"plain.db", "by uri.db"}


ASKING_FOR_FILES = {
    "os.path.exists(HERE + '/table.bin')": {"data:kernels/table.bin"},
    "open(HERE + '/table.bin', 'r+').read()": {"data:kernels/table.bin"},
    "open(HERE + '/absent', 'w')": set(),
    "os.path.getsize(HERE + '/table.bin')": {"data:kernels/table.bin"},
    "os.access(HERE + '/table.bin', os.R_OK)": {"data:kernels/table.bin"},
    "pathlib.Path(HERE, 'table.bin').stat().st_size": {"data:kernels/table.bin"},
    "os.stat('table.bin', dir_fd=FOLDER)": {"data:kernels/table.bin"},
    "os.open('table.bin', os.O_RDONLY, dir_fd=FOLDER)": {"data:kernels/table.bin"},
    "mmap.mmap(os.open(HERE + '/table.bin', os.O_RDONLY), 0, prot=mmap.PROT_READ)": {"data:kernels/table.bin"},
    "os.path.isdir(HERE + '/arch')": {"place:kernels/arch"},
    "os.path.isfile(HERE + '/absent')": {"place:kernels/absent"},
    "pathlib.Path(HERE, 'absent').exists()": {"place:kernels/absent"},
    "os.path.islink(HERE + '/absent')": {"place:kernels/absent"},
    "shutil.which('no_such_program', path=HERE)": {"place:kernels/no_such_program"},
    "os.listdir(FOLDER)": {"directory:kernels"},
    "os.listdir()": {"directory:kernels/arch"},
    "glob.glob(HERE + '/*.bin')": {"directory:kernels"},
    "list(pathlib.Path(HERE).iterdir())": {"directory:kernels"},
    "tomllib.loads(pathlib.Path(HERE, 'table.toml').read_text())": {"data:kernels/table.toml"},
    "pathlib.Path(__file__).resolve()": {"place:kernels"},
    "os.path.realpath(__file__)": {"place:kernels"},
    "inspect.getsource(inspect)": set(),
    "os.path.exists('/proc/self')": set(),
}
ASKING_HEAD = """import glob, inspect, mmap, os, pathlib, shutil, tomllib
HERE = os.path.dirname(__file__)
FOLDER = os.open(HERE, os.O_RDONLY)
"""


@pytest.mark.parametrize("question", ASKING_FOR_FILES)
def test_what_a_module_asks_of_the_file_system_is_told(load, tmp_path, monkeypatch, question):
    (tmp_path / "kernels" / "arch").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "kernels" / "arch")
    text = HEAD + ASKING_HEAD + f"ANSWER = {question}\nos.close(FOLDER)\nVALUE = tl.constexpr(1)\n" + KERNEL
    loaded = load(text, **{"table.bin": "1", "table.toml": "a = 1"})
    read = [each for each in loaded.recording.reads() if each.kind is not ReadKind.SOURCE]
    assert {each.place for each in read} - {"data:kernels"} == ASKING_FOR_FILES[question]
    for name in ("table.bin", "table.toml", "absent", "no_such_program"):
        (tmp_path / "kernels" / name).write_text("other")
    (tmp_path / "kernels" / "arch").rmdir()
    assert all(digest_now(each, tmp_path, {}) != each.digest for each in read if each.name != "kernels")
    assert os.stat.__module__ == "posix" and os.open.__module__ == "posix"


def test_a_project_may_lie_in_a_workers_own_folder(load, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path.parent))
    beside = tmp_path.with_suffix(".txt")
    beside.write_text("1")
    text = f"open(__file__ + '.txt').read(), open({str(beside)!r}).read()\nVALUE = tl.constexpr(1)\n"
    loaded = load(HEAD + text + KERNEL, **{"one.py.txt": "1"})
    assert set(reads_of(loaded, ReadKind.DATA)) == {"kernels/one.py.txt"}


def test_files_in_shared_memory_are_files(load):
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        Path(folder, "table.txt").write_text("1")
        text = f"VALUE = tl.constexpr(int(open({folder + '/table.txt'!r}).read()))\nopen('/dev/null').close()\n"
        loaded = load(HEAD + text + KERNEL)
        assert reads_of(loaded, ReadKind.DATA) == {f"{folder}/table.txt": digest_of("1")}


@pytest.mark.parametrize(
    ("path", "pseudo"),
    [
        ("/dev", True), ("/dev/null", True), ("/proc/self", True), ("/sys/class", True),
        ("/development/k.json", False), ("/processed", False), ("/system/a", False), ("/dev/shm/k.json", False),
    ],
)  # fmt: skip
def test_what_is_no_file_of_a_disk(path, pseudo):
    assert is_pseudo(path) is is_shared(Path(path)) is pseudo


@pytest.mark.parametrize("question", ["open", "os.path.exists"])
def test_a_name_that_is_no_text_is_refused_where_it_is_read(load, tmp_path, question):
    name = f"{tmp_path}/kernels/\udcff"
    with pytest.raises(StageFailure, match="NotTextError: its name is not UTF-8: ") as caught:
        load(f"{HEAD}import os\n{question}({name!r})\nVALUE = tl.constexpr(1)\n{KERNEL}", **{"\udcff": ""})
    assert caught.value.where.line == 4


def test_a_name_that_is_no_text_is_listed_with_others(load, tmp_path):
    text = f"import os\nos.listdir({str(tmp_path / 'kernels')!r})\nVALUE = tl.constexpr(1)\n"
    before = reads_of(load(HEAD + text + KERNEL, **{"\udcff": ""}), ReadKind.DIRECTORY)
    (tmp_path / "kernels" / "\udcfe").touch()
    assert digest_now(Read(ReadKind.DIRECTORY, "kernels", ""), tmp_path, {}) != before["kernels"]


IMPORTING = {
    "a loader made by hand": "module = types.ModuleType('by_hand')\n"
    "importlib.machinery.SourceFileLoader('by_hand', HERE + '/by_hand.py').exec_module(module)\n",
    "a spec from a loader": "spec = importlib.util.spec_from_loader("
    "'by_hand', importlib.machinery.SourceFileLoader('by_hand', HERE + '/by_hand.py'))\n"
    "module = importlib.util.module_from_spec(spec)\nspec.loader.exec_module(module)\n",
    "an archive": "sys.path.insert(0, HERE + '/modules.zip')\nimport zipped as module\n",
    "bytecode alone": "sys.path.insert(0, HERE + '/more')\nimport compiled as module\n",
    "a folder put on the path": "sys.path.insert(0, HERE + '/more')\nimport written as module\n",
    "a path that is run": "module = types.SimpleNamespace(**runpy.run_path(HERE + '/by_hand.py'))\n",
}
FILES_OF = {
    "an archive": "modules.zip",
    "bytecode alone": "more/compiled.pyc",
    "a folder put on the path": "more/written.py",
}


@pytest.mark.parametrize("way", IMPORTING)
def test_a_module_is_told_whichever_way_it_comes(load, tmp_path, way):
    """Each time anew: what one loading imported is forgotten before the next."""
    head = (
        HEAD + "import importlib.machinery, importlib.util, os, runpy, sys, types\nHERE = os.path.dirname(__file__)\n"
    )
    for number in (1, 22):
        folder = tmp_path / "kernels"
        (folder / "more").mkdir(parents=True, exist_ok=True)
        source = folder / "by_hand.py"
        for path in (source, folder / "more" / "written.py"):
            path.write_text(f"VALUE = {number}\n")
        py_compile.compile(str(source), cfile=str(folder / "more" / "compiled.pyc"), doraise=True)
        with zipfile.ZipFile(folder / "modules.zip", "w") as archive:
            archive.write(source, "zipped.py")
        importlib.invalidate_caches()
        loaded = load(head + IMPORTING[way] + "VALUE = tl.constexpr(module.VALUE)\n" + KERNEL)
        if way != "an archive":  # whose table of contents Python remembers for the life of a process
            assert loaded.function.__globals__["VALUE"].value == number
        path = folder / FILES_OF.get(way, "by_hand.py")
        read = {**reads_of(loaded, ReadKind.SOURCE), **reads_of(loaded, ReadKind.DATA)}
        assert read[f"kernels/{FILES_OF.get(way, 'by_hand.py')}"] == hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_package_that_is_not_read_as_kernels_are_is_told_by_its_version(load, tmp_path, monkeypatch):
    """It may be missing, too: what a module makes of that changes once it is installed."""
    monkeypatch.setattr("precast.reads._PACKAGE_FOLDERS", (str(tmp_path),))
    text = HEAD + "import json, os.path, with_parts.inner\n" + "VALUE = tl.constexpr(1)\n" + KERNEL
    loaded = load(text)
    (read,) = (each for each in loaded.recording.reads() if each.kind is ReadKind.PACKAGE)
    assert read == Read(ReadKind.PACKAGE, "with_parts", ABSENT) and digest_now(read, tmp_path, {}) == ABSENT
    found = set()
    (tmp_path / "with_parts").mkdir()
    versions = (("__init__.py", "1"), ("__init__.py", "2"), ("version.py", "1"), ("_version.py", "1"))
    for name, content in (*versions, ("inner.py", "")):
        (tmp_path / "with_parts" / name).write_text(content)
        importlib.invalidate_caches()
        found.add(digest_now(read, tmp_path, {}))
    assert len(found) == 4 and ABSENT not in found  # inner.py says no version
    (tmp_path / "With.Parts-2.0.dist-info").mkdir()
    assert digest_now(read, tmp_path, {}) not in found


def test_what_a_module_sets_of_the_environment_is_not_left_to_others(load):
    before = dict(os.environ)
    text = "import os\nos.environ['LEFT_BEHIND'] = '1'\nos.environ.pop('PATH')\nVALUE = tl.constexpr(1)\n"
    loaded = load(HEAD + text + KERNEL)
    assert dict(os.environ) == before
    assert type(os.environ).__module__ == "os"
    assert loaded.recording.changed == {"LEFT_BEHIND": "1", "PATH": None}


def test_what_a_module_set_itself_it_does_not_read(load, loader):
    text = "import os\nos.environ['MODE'] = '1'\ndef ask():\n    return os.environ['MODE'], os.environ.get('OTHER')\n"
    loaded = load(HEAD + text + "VALUE = tl.constexpr(1)\n" + KERNEL)
    with loader.compiling(loaded, CUDA):
        assert loaded.function.__globals__["ask"]() == ("1", None)
    assert set(reads_of(loaded, ReadKind.ENVIRONMENT)) == {"OTHER"}


def test_a_file_of_another_size_is_another_whatever_its_time(load, tmp_path):
    loaded = load(HEAD + "VALUE = tl.constexpr(int(open(__file__ + '.txt').read()))\n" + KERNEL, **{"one.py.txt": "1"})
    path = tmp_path / "kernels" / "one.py.txt"
    status = path.stat()
    path.write_text("22")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert not loaded.recording.is_current()


def test_a_helper_loaded_by_its_path_is_a_source(load, tmp_path):
    text = (
        "import importlib.util, os\n"
        "spec = importlib.util.spec_from_file_location('by_path', os.path.dirname(__file__) + '/helper.txt.py')\n"
        "module = importlib.util.module_from_spec(spec)\nspec.loader.exec_module(module)\n"
        "VALUE = tl.constexpr(module.VALUE)\n"
    )
    loaded = load(HEAD + text + KERNEL, **{"helper.txt.py": "VALUE = 3\n"})
    assert reads_of(loaded, ReadKind.SOURCE)["kernels/helper.txt.py"] == digest_of("VALUE = 3\n")


def test_an_installed_helper_is_told_however_often_it_is_used(loader, monkeypatch, tmp_path):
    package = tmp_path / "site-packages" / "installed_helper"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("VALUE = 4\n")
    monkeypatch.syspath_prepend(package.parent)
    for name in ("a", "b"):
        project = tmp_path / name
        project.mkdir()
        (project / "one.py").write_text(HEAD + "import installed_helper\nVALUE = tl.constexpr(4)\n" + KERNEL)
        loaded = loader.load(Source("one.py", "", "kernel"), project, [project], CUDA)
        expected = Read(ReadKind.SOURCE, str(package / "__init__.py"), digest_of("VALUE = 4\n"))
        assert expected in loaded.recording.reads()
        assert loaded.files == ("one.py",)


def test_what_was_read_makes_a_loaded_kernel_old(load, tmp_path):
    text = HEAD + "VALUE = tl.constexpr(int(open(__file__ + '.txt').read()))\n" + KERNEL
    first = load(text, **{"one.py.txt": "1"})
    assert load(text, **{"one.py.txt": "1"}).function.__globals__["VALUE"].value == 1
    second = load(text, **{"one.py.txt": "22"})
    assert second is not first and second.function.__globals__["VALUE"].value == 22


BACKEND = "VALUE = tl.constexpr({'cuda': 2, 'hip': 3, 'cpu': 4}[{}])\n"
ASKING = {
    "current target": "triton.runtime.driver.active.get_current_target().backend",
    "an is_cuda of its own": "'cuda' if is_cuda() else 'hip' if is_hip() else 'cpu'",
    "the device": "{'cuda': TORCH, 'cpu': 'cpu'}[triton.runtime.driver.active.get_active_torch_device().type]",
    "torch": "('hip' if torch.version.hip else 'cuda') if torch.cuda.is_available() else 'cpu'",
}
QUESTIONS = """import torch
def is_cuda():
    return triton.runtime.driver.active.get_current_target().backend == "cuda"
def is_hip():
    return triton.runtime.driver.active.get_current_target().backend == "hip"
TORCH = "hip" if torch.version.hip is not None else "cuda"
"""


@pytest.mark.parametrize("question", ASKING.values(), ids=ASKING)
def test_a_module_hears_of_the_units_own_target_whatever_was_loaded_before(load, question):
    text = HEAD + QUESTIONS + BACKEND.replace("[{}]", f"[{question}]") + KERNEL
    for target, value in [(CPU, 4), (CUDA, 2), (HIP, 3), (CUDA, 2), (CPU, 4), (HIP, 3), (CPU, 4)]:
        assert load(text, target).function.__globals__["VALUE"].value == value
    from triton.runtime.driver import driver

    assert driver._active is None


def test_a_module_that_asks_for_no_target_serves_them_all(load):
    text = HEAD + "VALUE = tl.constexpr(1)\n" + KERNEL
    assert load(text, CUDA) is load(text, CPU)


def test_a_capability_is_the_units(load):
    text = HEAD + "import torch\nVALUE = tl.constexpr(torch.cuda.get_device_capability()[0])\n" + KERNEL
    assert [load(text, target).function.__globals__["VALUE"].value for target in (CUDA, HIP)] == [9, 9]
    assert load(text, Target.parse("cuda:120")).function.__globals__["VALUE"].value == 12


def test_a_back_end_beside_triton_is_not_asked(tmp_path):
    """Workers know Triton's own back ends alone, whatever is installed for its entry points."""
    package, site = tmp_path / "site" / "other_backend", tmp_path / "site"
    (site / "other_backend-1.dist-info").mkdir(parents=True)
    (site / "other_backend-1.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: other-backend\nVersion: 1\n"
    )
    (site / "other_backend-1.dist-info" / "entry_points.txt").write_text("[triton.backends]\ncpu = other_backend\n")
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit('asked')\n")
    program = f"import sys; sys.path.insert(0, {str(site)!r}); import triton; print(*sorted(triton.backends.backends))"
    environment = worker_environment(CompileSettings(), os.environ, str(tmp_path))
    ran = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert (ran.stdout.split(), ran.stderr) == (["amd", "nvidia"], "")
    del environment["TRITON_BACKENDS_IN_TREE"]  # what it is there for
    ran = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert "asked" in ran.stderr


OPTIONAL = """
import importlib
import importlib.util

try:
    VALUE = tl.constexpr(importlib.import_module("fas" + "ter").VALUE)
except ImportError:
    VALUE = tl.constexpr(1)
FOUND = importlib.util.find_spec("also" + "_this")
"""


def test_where_a_module_by_a_computed_name_was_not_is_told(load, tmp_path):
    """A file that appears there later would be imported; of the import statements the plan knows it already."""
    loaded = load(HEAD + "import math\nimport numpy\nimport beside\n" + OPTIONAL + KERNEL, **{"beside.py": ""})
    places = [each for each in loaded.recording.reads() if each.kind is ReadKind.PLACE]
    assert {each.digest for each in places} == {ABSENT}
    names = {each.name for each in places}
    assert {"kernels/faster.py", "kernels/faster/__init__.py", "kernels/also_this.py"} <= names
    assert not [each for each in names if not each.startswith(("kernels/faster", "kernels/also_this"))]
    (tmp_path / "kernels/faster.py").write_text("VALUE = 2\n")
    moved = {each.name for each in places if digest_now(each, tmp_path, os.environ) != each.digest}
    assert moved == {"kernels/faster.py"} and not loaded.recording.is_current()
