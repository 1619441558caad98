"""Import closures: which files a kernel's key covers, and which it does not."""

import shutil
import textwrap
from pathlib import Path

import pytest

from precast.digest import FileDigests
from precast.spec.closure import Closure
from precast.spec.modules import find_module, module_of_file

LOADING = Path(__file__).parents[1] / "fixtures" / "loading"
KERNEL = "import triton\n@triton.jit\ndef kernel(x): pass\n"


def names_of(folder, file, python_path=("src",), installed=("installed",)):
    paths = tuple(folder / each for each in python_path)
    closure = Closure(folder, paths, tuple(folder / each for each in installed), FileDigests())
    return [each.name for each in closure.files(module_of_file(folder / file))]


@pytest.mark.parametrize(
    ("file", "names"),
    [
        (
            "src/stack/ops/scale.py",
            [
                "src/stack/__init__.py",
                "src/stack/common.py",
                "src/stack/ops/__init__.py",
                "src/stack/ops/activations.py",
                "src/stack/ops/launcher.py",
                "src/stack/ops/scale.py",
                "src/stack/version.py",
            ],
        ),
        ("src/model.py", ["src/model.py"]),
        ("kernels/sibling.py", ["kernels/sibling.py", "kernels/sibling_helper.py"]),
        (
            "kernels/uses_installed.py",
            [
                "<installed>/installed_ops/activations.py",
                "<installed>/installed_ops/constants.py",
                "kernels/uses_installed.py",
            ],
        ),
    ],
)
def test_the_loading_fixtures(file, names):
    assert names_of(LOADING, file) == names


def write(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(textwrap.dedent(text))


@pytest.mark.parametrize(
    ("statement", "reached"),
    [
        ("import helper", True),
        ("import helper as h", True),
        ("from helper import a", True),
        ("from helper import (\n    a,\n    b,\n)", True),
        ("from helper import *", True),
        ("def f():\n    import helper", True),
        ("class C:\n    from helper import a", True),
        ("try:\n    import helper\nexcept ImportError:\n    pass", True),
        ("if False:\n    import helper", True),
        ("# import helper", False),
        ("text = 'import helper'", False),
        ("import helpers", False),
    ],
)
def test_every_form_of_import(tmp_path, statement, reached):
    write(tmp_path, {"kernels/k.py": f"{statement}\n{KERNEL}", "kernels/helper.py": "a = b = 1\n"})
    assert ("kernels/helper.py" in names_of(tmp_path, "kernels/k.py")) is reached


def test_cycles_packages_and_namespaces(tmp_path):
    write(
        tmp_path,
        {
            "src/p/__init__.py": "from . import a\n",
            "src/p/a.py": "from .b import x\nimport n.m\n",
            "src/p/b.py": f"from p import a\nx = 1\n{KERNEL}",
            "src/p/unused.py": "",
            "src/n/m.py": "",
        },
    )
    assert names_of(tmp_path, "src/p/b.py") == ["src/n/m.py", "src/p/__init__.py", "src/p/a.py", "src/p/b.py"]


def test_a_file_that_is_not_python_counts_by_its_bytes(tmp_path):
    write(tmp_path, {"kernels/k.py": "import helper\n", "kernels/helper.py": "def (\n"})
    assert names_of(tmp_path, "kernels/k.py") == ["kernels/helper.py", "kernels/k.py"]


def test_installed_packages_count_only_where_they_can_hold_kernels(tmp_path):
    write(
        tmp_path,
        {
            "kernels/k.py": f"import big\nfrom big import relu\nbig.nn.gelu\nbig.f\n{KERNEL}",
            "installed/big/__init__.py": "from .ops import relu\nfrom .host import load\n"
            "from . import nn\nfrom .late import f\n",
            "installed/big/ops.py": "import triton\nfrom .base import clamp\ndef f():\n    from .lazy import f\n",
            "installed/big/base.py": "import triton\n",
            "installed/big/lazy.py": "import triton\n",
            "installed/big/host.py": "import triton\n",
            "installed/big/nn.py": "from .kernels import gelu, other\n",
            "installed/big/kernels.py": "import triton\n",
            "installed/big/late.py": "def f():\n    import triton\n",
        },
    )
    assert names_of(tmp_path, "kernels/k.py") == [
        "<installed>/big/base.py",
        "<installed>/big/kernels.py",
        "<installed>/big/ops.py",
        "kernels/k.py",
    ]


def test_the_project_comes_before_installed_packages(tmp_path):
    write(tmp_path, {"kernels/k.py": "import common\n", "src/common.py": "", "installed/common.py": "import triton\n"})
    assert names_of(tmp_path, "kernels/k.py") == ["kernels/k.py", "src/common.py"]


def test_a_closure_is_the_same_in_another_folder(tmp_path):
    shutil.copytree(LOADING, tmp_path / "elsewhere")
    for file in ("src/stack/ops/scale.py", "kernels/uses_installed.py"):
        assert names_of(tmp_path / "elsewhere", file) == names_of(LOADING, file)


def test_a_package_decides_for_its_modules(tmp_path):
    write(tmp_path, {"first/p/__init__.py": "", "second/p/__init__.py": "", "second/p/m.py": ""})
    assert find_module("p.m", (tmp_path / "first", tmp_path / "second")) is None
    assert find_module("p.m", (tmp_path / "second",)).file == tmp_path / "second/p/m.py"
