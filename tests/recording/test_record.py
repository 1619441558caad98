"""A program of several kernels and two processes is recorded under Triton's JIT, built, and served as it was."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import tomlkit

HERE = Path(__file__).parent
SETTINGS = '[tool.precast]\nname = "demo"\nversion = "1.0"\ntargets = ["cpu:x86-64-v3"]\npythonpath = ["program"]\n'
WITHIN = """
import runpy, sys, precast
sys.argv = ["program/train.py"]
sys.path.insert(0, "program")
with precast.record("kernels/recorded.toml"):
    runpy.run_path("program/train.py", run_name="__main__")
"""
CHOICES = """
import demo, numpy, ops, train
x, out = train.array(numpy.arange(1024)), train.array(numpy.zeros(1024))
for n in (1000, 640, 500):
    with demo.serve():
        ops.tuned[(9,)](train.Tensor(x), train.Tensor(out), n)
    print(n, ops.tuned.best_config.kwargs["BLOCK"], demo.tuned.choose(x, out, n)[3])
"""
SPEC = """# What a program launched, as `precast record` found it. Another run adds what is missing.

[kernel.add]
source = "../program/ops.py:add"
grid = ["cdiv(n, BLOCK)"]
configs = [
    { dtype = "fp32" },
    { dtype = "i32" },
]
hints = [
    ["x%16"],
    [],
]
tune = []
problem = [
    { dtype = "fp32", x = 1001, y = 1001, out = 1001, n = 1000 }, # 2 launches
    { dtype = "fp32", x = 601, y = 601, out = 601, n = 600 }, # 2 launches
    { dtype = "i32", x = 301, y = 301, out = 301, n = 300 }, # 2 launches
]

[kernel.add.args]
x = "*{dtype}"
y = { type = "*{dtype}", align = 16 }
out = { type = "*{dtype}", align = 16 }
n = "i32"

[kernel.add.constants]
BLOCK = 256

[kernel.scale]
source = "../program/ops.py:scale"
configs = [
    { bias_type = "none", EVEN = true },
    { bias_type = "*fp32", EVEN = false },
]

[kernel.scale.args]
x = { type = "*fp32", align = 16 }
bias = { type = "{bias_type}", align = 16 }
out = { type = "*fp32", align = 16 }
n = { type = "i32", align = 16 }
stride = { type = "i32", equal = 1 }
factor = "fp32"

[kernel.scale.constants]
BLOCK = 128

[kernel.tuned]
source = "../program/ops.py:tuned"
grid = ["cdiv(n, BLOCK)"]
configs = [
    { BLOCK = 64, num_warps = 4 },
    { BLOCK = 128, num_warps = 8 },
]
hints = [
    [],
    ["n%16"],
]
selection = [
    { when = ["n == 1000"], BLOCK = 64, num_warps = 4 },
    { when = ["n == 640"], BLOCK = 128, num_warps = 8 },
]
tune = ["BLOCK", "num_warps"]
problem = [
    { x = 1024, out = 1024, n = 1000 }, # 2 launches
    { x = 1024, out = 1024, n = 640 }, # 1 launch
]

[kernel.tuned.args]
x = { type = "*fp32", align = 16 }
out = { type = "*fp32", align = 16 }
n = "i32"

[kernel.tuned.options]
num_ctas = 1
num_stages = 3

[kernel.parts]
source = "../program/ops.py:parts"
grid = ["1"]
configs = [
    { MODE = "ops:Mode.TWICE", TYPE = "None" },
    { MODE = "ops:Mode.PLAIN", TYPE = "tl.i8" },
]

[kernel.parts.args]
arrays = "(*i32, *i32)"
sizes = "(i32, i32)"

[kernel.parts.constants]
FUNCTION = "ops:square"
SHAPE = [16, "a"]

[kernel.tile]
source = "../program/ops.py:tile"

[kernel.tile.args]
source = "tensordesc<fp32[4,8]>"
out = { type = "*fp32", align = 16 }

[kernel.tile.constants]
ROWS = 4
COLUMNS = 8
"""


def run(folder: Path, *words: object, **more: str) -> subprocess.CompletedProcess[str]:
    """Python in a project, without what this process has set for Triton."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TRITON_", "PYTHONPATH"))}
    environment = {**kept, "TRITON_DEFAULT_BACKEND": "cpu", "TRITON_CACHE_DIR": str(folder / "cache"), **more}
    command = [sys.executable, *map(str, words)]
    return subprocess.run(command, cwd=folder, env=environment, text=True, capture_output=True, timeout=300)


def printed(ran: subprocess.CompletedProcess[str]) -> list[str]:
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout.splitlines()


def record(folder: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    return run(folder, "-m", "precast", "record", "--", sys.executable, *words, **more)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, sconstruct: str) -> Path:
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "pyproject.toml").write_text(SETTINGS)
    (folder / "SConstruct").write_text(sconstruct)
    shutil.copytree(HERE / "program", folder / "program")
    return folder


@pytest.fixture(scope="module")
def numbers(project: Path) -> list[str]:
    """What the program prints while it is recorded."""
    ran = record(project, "program/train.py")
    lines = ran.stderr.splitlines()
    assert lines == [
        "recorded 11 variants of 5 kernels; new: add, scale, tuned, parts, tile in kernels/recorded.toml",
        "not recorded: ops.py:parts: that parts of the tuple `arrays` are multiples of 16: a spec has no hints within "
        "tuples",
        "not recorded: ops.py:make_kernel.<locals>.made: it is made while the program runs, and no name of its module "
        "leads to it",
    ]
    return printed(ran)


@pytest.fixture(scope="module")
def recorded(project: Path, numbers: list[str]) -> Path:
    return project / "kernels" / "recorded.toml"


def test_a_kernel_of_each_function(recorded):
    assert recorded.read_text() == SPEC


def test_a_second_run_changes_no_byte_and_no_number(project, numbers, recorded):
    """Not with a tuner that chooses otherwise, either, and recorded by the command and by the program at once."""
    before = recorded.read_bytes(), recorded.stat().st_mtime_ns
    ran = record(project, "-c", WITHIN, FASTEST="1")
    assert printed(ran) == numbers
    assert (recorded.read_bytes(), recorded.stat().st_mtime_ns) == before
    assert "new: nothing that kernels/recorded.toml did not have" in ran.stderr


def test_what_was_recorded_is_built_and_served_with_equal_numbers(project, numbers, recorded):
    printed(run(project, "-m", "precast", "build"))
    package = project / "generated" / "demo" / "current" / "python"
    served = run(project, "program/train.py", "demo", PYTHONPATH=str(package), TRITON_DEFAULT_BACKEND="none")
    assert printed(served) == numbers
    assert printed(run(project, "-c", CHOICES, PYTHONPATH=f"program{os.pathsep}{package}")) == [
        "1000 64 stated, n == 1000", "640 128 stated, n == 640", "500 64 None",
    ]  # fmt: skip
    covered = run(project, "-m", "precast", "coverage", "generated/demo/current", "kernels/recorded.toml")
    assert printed(covered) == ["13 of 13 recorded variants are served"]
    more = project / "more.toml"
    more.write_text(recorded.read_text().replace("tl.i8", "tl.i16"))
    lacking = run(project, "-m", "precast", "coverage", "generated/demo/current", more)
    assert (lacking.returncode, lacking.stderr) == (1, "")
    assert lacking.stdout.startswith("# missing on cpu:x86-64-v3\n[kernel.parts]\n")
    assert tomlkit.parse(lacking.stdout.rpartition("\n\n")[0])["kernel"]["parts"]["constants"]["TYPE"] == "tl.i16"
    assert lacking.stdout.endswith("\n\n12 of 13 recorded variants are served\n")


@pytest.mark.all
def test_what_was_recorded_is_tuned_by_the_sizes_that_were_launched(project, recorded, tmp_path):
    """Nobody writes a size, or what is tuned."""
    folder = shutil.copytree(project, tmp_path / "tuned", symlinks=True)
    printed(run(folder, "-m", "precast", "build", "--candidates"))
    (path,) = printed(run(folder, "-m", "precast", "tune", "--rounds", "1"))
    evidence = json.loads((folder / path).read_text())
    assert (evidence["kernel"], evidence["axes"]) == ("tuned", ["BLOCK", "num_warps"])
    assert [each["sizes"] for each in evidence["problems"]] == [{"n": 640}, {"n": 1000}]
    assert all(time is not None for each in evidence["problems"] for time in each["times"])
    printed(run(folder, "-m", "precast", "build"))
    package = folder / "generated" / "demo" / "current" / "python"
    lines = printed(run(folder, "-c", CHOICES, PYTHONPATH=f"program{os.pathsep}{package}"))
    assert [line.split()[2:6] for line in lines[:2]] == [["exact,", "n", "==", n] for n in ("1000", "640")]
