"""Loading kernels' modules as their authors wrote them: what is found, what is read, what is told when it fails."""

import os
import py_compile
import shutil
import sys
from pathlib import Path

import pytest

from precast.engines import StageFailure
from precast.engines.triton.load import KernelLoader
from precast.errors import Place
from precast.spec.model import Source
from precast.target import Target

CPU, CUDA, HIP = (Target.parse(text) for text in ("cpu:x86-64-v3", "cuda:90", "hip:gfx942"))
LOADING = Path(__file__).parents[1] / "fixtures" / "loading"
HEAD = "import triton\nimport triton.language as tl\n"
KERNEL = "@triton.jit\ndef kernel(x_ptr, BLOCK: tl.constexpr):\n    tl.store(x_ptr + tl.arange(0, BLOCK), {value})\n"


@pytest.fixture
def loader():
    found = KernelLoader()
    yield found
    found.close()


@pytest.fixture
def load_text(loader, tmp_path):
    """Loads `kernel` from a file with the given text."""

    def load(text: str, function: str = "kernel", name: str = "kernels/one.py", target: Target = CPU):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return loader.load(Source(name, "", function), tmp_path, [tmp_path], target)

    return load


def refuse(load, *arguments, **keywords) -> StageFailure:
    with pytest.raises(StageFailure) as caught:
        load(*arguments, **keywords)
    return caught.value


@pytest.mark.parametrize(
    ("file", "module", "function", "files"),
    [
        (
            "src/stack/ops/scale.py",
            "stack.ops.scale",
            "scale_kernel",
            ["__init__.py", "common.py", "ops/__init__.py", "ops/activations.py", "ops/scale.py", "version.py"],
        ),
        ("src/model.py", "model", "bias_kernel", None),
        ("src/tuned.py", "tuned", "tuned_kernel", None),
        ("src/factory.py", "factory", "cube_kernel", None),
        ("src/factory.py", "factory", "doubled_kernel", None),
        ("src/factory.py", "factory", "make_kernel(operation=cube)", None),
        ("kernels/globals.py", "", "globals_kernel", None),
    ],
)
def test_fixtures_load(loader, file, module, function, files):
    source = Source(file, module, function)
    loaded = loader.load(source, LOADING, [LOADING / "src"], CPU)
    assert loaded.function.arg_names
    assert list(loaded.files) == ([f"src/stack/{each}" for each in files] if files else [file])


def test_a_file_in_a_package_is_imported_as_part_of_it(loader):
    loaded = loader.load(Source("src/stack/ops/scale.py", "", "scale_kernel"), LOADING, [], CPU)
    assert loaded.function.__module__ == "stack.ops.scale"


def test_a_sibling_is_found(loader):
    loaded = loader.load(Source("kernels/sibling.py", "", "sibling_kernel"), LOADING, [], CPU)
    assert loaded.files == ("kernels/sibling.py", "kernels/sibling_helper.py")


def test_an_installed_helper_is_not_a_file_of_the_project(loader, monkeypatch, tmp_path):
    shutil.copytree(LOADING / "installed", tmp_path / "site-packages")
    monkeypatch.syspath_prepend(tmp_path / "site-packages")
    loaded = loader.load(Source("kernels/uses_installed.py", "", "installed_kernel"), LOADING, [], CPU)
    assert loaded.files == ("kernels/uses_installed.py",)
    assert loaded.function.__globals__["installed_ops"].leaky_relu.__name__ == "leaky_relu"


def test_a_factory_is_called_with_the_literals_of_the_spec(load_text):
    text = HEAD + (
        "def make(value, *, name='kernel'):\n"
        "    @triton.jit\n"
        "    def kernel(x_ptr):\n"
        "        tl.store(x_ptr, value)\n"
        "    return kernel\n"
    )
    loaded = load_text(text, "make(3, name='three')")
    assert loaded.function.get_capture_scope()["value"] == 3


def test_the_worker_is_as_before_when_a_kernel_is_closed(load_text, loader):
    path, finders, modules = list(sys.path), list(sys.meta_path), set(sys.modules)
    load_text(HEAD + "import torch.nn\nimport helper\n" + KERNEL.format(value=1.0))
    assert "torch" in sys.modules
    loader.close()
    assert (sys.path, sys.meta_path) == (path, finders)
    assert not {name for name in set(sys.modules) - modules if name.partition(".")[0] in ("torch", "helper", "one")}


def test_a_stale_bytecode_file_is_not_believed(loader, tmp_path):
    """Python tells versions of a source apart by size and whole seconds: too coarse for an editor or a script."""
    path = tmp_path / "one.py"
    path.write_text(HEAD + KERNEL.format(value=1.0))
    py_compile.compile(str(path))
    moment = int(path.stat().st_mtime)
    path.write_text(HEAD + KERNEL.format(value=2.0))
    os.utime(path, (moment, moment))
    stale = list(tmp_path.rglob("*.pyc"))
    loaded = loader.load(Source("one.py", "", "kernel"), tmp_path, [tmp_path], CPU)
    assert "2.0" in loaded.function.src and 2.0 in loaded.function.fn.__code__.co_consts
    assert list(tmp_path.rglob("*.pyc")) == stale


def test_a_changed_module_is_loaded_again(load_text, loader, tmp_path):
    first = load_text(HEAD + KERNEL.format(value=1.0))
    path = tmp_path / "kernels/one.py"
    path.write_text(path.read_text().replace("1.0", "2.0"))
    second = loader.load(Source("kernels/one.py", "", "kernel"), tmp_path, [tmp_path], CPU)
    assert "1.0" in first.function.src and "2.0" in second.function.src


def test_an_unchanged_module_is_not_loaded_again(load_text, loader, tmp_path):
    first = load_text(HEAD + KERNEL.format(value=1.0))
    assert loader.load(Source("kernels/one.py", "", "kernel"), tmp_path, [tmp_path], CPU) is first


def test_a_kernel_file_may_have_the_name_of_a_module_of_the_worker(load_text):
    loaded = load_text(HEAD + KERNEL.format(value=1.0), name="kernels/json.py")
    assert loaded.function.__name__ == "kernel"
    import json

    assert json.dumps(1) == "1"


GUARDED = """
import contextlib
import importlib.util
try:
    import flash_attn
except ImportError:
    flash_attn = None
with contextlib.suppress(ImportError):
    import xformers
HAS_TORCH = importlib.util.find_spec("torch") is not None
try:
    import unguarded_inside
except Exception:
    unguarded_inside = "failed as a whole"
"""


def test_an_import_whose_failure_is_expected_fails(load_text, tmp_path):
    (tmp_path / "unguarded_inside.py").write_text("import not_there\n")
    names = load_text(HEAD + GUARDED + KERNEL.format(value=1.0)).function.__globals__
    assert names["flash_attn"] is None
    assert "xformers" not in names
    assert names["HAS_TORCH"] is False
    assert names["unguarded_inside"] == "failed as a whole"


INERT = """
import torch
import torch.nn.functional as F
from torch import nn, Tensor
from transformers.models.llama import LlamaAttention

class Module(nn.Module, LlamaAttention):
    def __init__(self, size):
        super().__init__(size)
        self.size = size

@torch.compile
def host(x: Tensor | None, y: "torch.dtype" = torch.float16) -> Tensor:
    return F.relu(x)

TABLE = {torch.float16: 1, torch.bfloat16: 2}
SIZE = Module(3).size
HALF = TABLE[torch.float16]
CAPABLE = 9 if torch.cuda.is_available() and torch.cuda.get_device_capability()[0] >= 9 else 8
with torch.inference_mode():
    for each in torch.arange(3):
        raise AssertionError
ISINSTANCE = isinstance(3, torch.Tensor)
NAME = host.__name__
"""


def test_a_missing_package_is_inert_while_the_module_loads(load_text):
    names = load_text(HEAD + INERT + KERNEL.format(value=1.0)).function.__globals__
    assert [names[each] for each in ("SIZE", "HALF", "CAPABLE", "ISINSTANCE", "NAME")] == [3, 1, 8, False, "host"]


def test_a_module_that_launches_when_it_is_imported_is_told_where_that_belongs(load_text):
    error = refuse(load_text, HEAD + KERNEL.format(value=1.0) + "kernel[(1,)](None, BLOCK=16)\n", target=CUDA)
    assert error.where == Place("kernels/one.py", 6)
    assert error.hint == 'it launches a kernel while it is imported: keep what runs below `if __name__ == "__main__":`'


def test_a_module_that_the_worker_has_itself_is_taken(loader, tmp_path):
    loaded = loader.load(Source("", "triton.language.standard", "cdiv"), tmp_path, [], CPU)
    assert loaded.function.arg_names == ["x", "div"]


ASKING = """
import torch
CAPABLE = torch.cuda.is_available() and torch.cuda.get_device_capability(0)[0] * 10
COUNT = torch.cuda.device_count()
IS_CUDA, IS_HIP = torch.version.cuda is not None, torch.version.hip is not None
NAMED = "H100" in str(torch.cuda.get_device_name(0)) if CAPABLE else None
MAJOR = torch.cuda.get_device_properties(0).major if CAPABLE else None
REAL = torch.nothing
"""
TORCH = {
    "__init__.py": "from . import cuda, version\nnothing = None\n",
    "_C.so": "",
    "version.py": "cuda = '13.0'\nhip = None\n",
    "cuda.py": "".join(
        f"def {name}(*arguments):\n    raise RuntimeError('no driver')\n"
        for name in (
            "is_available",
            "device_count",
            "get_device_capability",
            "get_device_properties",
            "get_device_name",
        )
    ),
}


@pytest.mark.parametrize(
    ("target", "answers"),
    [(CUDA, (90, 1, True, False, 9)), (HIP, (90, 1, False, True, 9)), (CPU, (False, 0, False, False, None))],
    ids=str,
)
def test_the_installed_torch_tells_of_the_target(load_text, loader, monkeypatch, tmp_path, target, answers):
    folder = tmp_path / "site-packages" / "torch"
    folder.mkdir(parents=True)
    for name, text in TORCH.items():
        (folder / name).write_text(text)
    monkeypatch.syspath_prepend(folder.parent)
    finders = list(sys.meta_path)
    try:
        loaded = load_text(HEAD + ASKING + KERNEL.format(value=1.0), target=target)
        names, torch = loaded.function.__globals__, sys.modules["torch"]
        assert tuple(names[each] for each in ("CAPABLE", "COUNT", "IS_CUDA", "IS_HIP", "MAJOR")) == answers
        assert names["REAL"] is None and loaded.device.was_asked
        assert torch.version.cuda == "13.0"  # as it was, once the module is loaded
        with pytest.raises(RuntimeError, match="no driver"):
            torch.cuda.is_available()
        loader.close()
        assert sys.meta_path == finders
        loaded = load_text(HEAD + ASKING + KERNEL.format(value=2.0), target=CUDA)
        assert loaded.function.__globals__["CAPABLE"] == 90
    finally:
        loader.close()
        for name in [each for each in sys.modules if each.partition(".")[0] == "torch"]:
            del sys.modules[name]


@pytest.mark.all
def test_pytorch_tells_of_the_target(torch, load_text):
    before = (torch.cuda.is_available, torch.version.cuda, torch.version.hip)
    names = load_text(HEAD + ASKING.replace("torch.nothing", "None") + KERNEL.format(value=1.0), target=HIP)
    names = names.function.__globals__
    assert [names[each] for each in ("CAPABLE", "COUNT", "IS_CUDA", "IS_HIP", "MAJOR")] == [90, 1, False, True, 9]
    assert (torch.cuda.is_available, torch.version.cuda, torch.version.hip) == before


def test_a_number_of_a_missing_package_is_never_made_up(load_text):
    error = refuse(load_text, HEAD + "import torch\nWARPS = int(torch.cuda.warps())\n" + KERNEL.format(value=1.0))
    assert error.message == (
        "the kernel's module does not import: NotInstalled: `torch.cuda.warps(…)` is used here, "
        "and `torch` is not installed"
    )
    assert error.where == Place("kernels/one.py", 4)


def test_a_syntax_error_is_told_at_its_place(load_text):
    error = refuse(load_text, HEAD + "def broken(:\n")
    assert (error.message, error.where) == ("syntax error: invalid syntax", Place("kernels/one.py", 3, 12))


def test_an_exception_is_told_at_the_users_line(load_text, tmp_path):
    (tmp_path / "helper.py").write_text("\n\nVALUE = {}['missing']\n")
    error = refuse(load_text, HEAD + "import helper\n")
    assert error.message == "the kernel's module does not import: KeyError: 'missing'"
    assert error.where == Place("helper.py", 3)


def test_a_module_that_exits_is_told(load_text):
    error = refuse(load_text, HEAD + "raise SystemExit(3)\n")
    assert (error.message, error.where) == (
        "the kernel's module does not import: SystemExit: 3",
        Place("kernels/one.py", 3),
    )


def test_a_relative_import_outside_a_package_is_explained(load_text):
    error = refuse(load_text, HEAD + "from . import helper\n")
    assert error.hint == "name the source as a module (`package.module:function`) and its folder in `pythonpath`"


def test_a_missing_part_of_the_users_own_package_is_an_error(load_text, tmp_path):
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "__init__.py").write_text("")
    error = refuse(load_text, HEAD + "import pack.missing\n")
    assert error.message == "the kernel's module does not import: ModuleNotFoundError: No module named 'pack.missing'"


def test_a_misspelt_function_suggests_the_nearest(load_text):
    error = refuse(load_text, HEAD + KERNEL.format(value=1.0), "kernle")
    assert (error.message, error.hint) == (
        "`kernels/one.py:kernle`: there is no `kernle`",
        "did you mean `kernel`?",
    )


def test_a_factory_that_fails_is_told(loader):
    error = refuse(loader.load, Source("src/factory.py", "factory", "make_kernel()"), LOADING, [], CPU)
    assert error.message == (
        "`factory:make_kernel()` fails: TypeError: make_kernel() missing 1 required positional argument: 'operation'"
    )


def test_what_is_no_jit_function_is_refused(load_text):
    error = refuse(load_text, HEAD + "kernel = 3\n")
    assert error.message == "`kernels/one.py:kernel` is not a jit function but int"
