"""A release whose constexprs are of every kind and whose kernel has no grid: built, called, served, used from C."""

import os
import subprocess
import sys

from forked import run_precast

KERNEL = """\
import enum

import triton
import triton.language as tl


class Mode(enum.Enum):
    FAST = 1
    SLOW = 2


@triton.jit
def double(x):
    return 2 * x


FAST = tl.constexpr(Mode.FAST)


@triton.jit
def one(out, x, n, MODE: tl.constexpr, SHAPE: tl.constexpr, CAP: tl.constexpr, *rest, F: tl.constexpr = double):
    places = tl.program_id(0) * SHAPE[0] + tl.arange(0, SHAPE[0])
    value = tl.load(x + places, mask=places < n)
    if MODE == FAST:
        value += SHAPE[1][0]
    if CAP is not None:
        value = tl.minimum(value, CAP)
    tl.store(out + places, F(value) + rest[0] - rest[1], mask=places < n)
"""
SPEC = """\
[kernel.one]
source = "one.py:one"
args = { out = "*fp32", x = "*fp32", n = "i32", rest = "(i32, i32)" }

[kernel.one.matrix]
MODE = ["one:Mode.FAST", "one.py:Mode.SLOW"]
SHAPE = [[16, [3, "None"]], [8, [5, "None"]]]
CAP = ["None", inf, 9.5]
exclude = [{ MODE = "one:Mode.SLOW", SHAPE = [8, [5, "None"]] }, { SHAPE = [8, [5, "None"]], CAP = inf }]
"""
SETTINGS = '[tool.precast]\nname = "every"\nversion = "1"\ntargets = ["cpu:x86-64-v2"]\n'
PROGRAM = """\
import sys

import numpy
import pytest

sys.path[:0] = ["generated/every/current/python", "kernels"]
import every
import one

x, out = numpy.arange(16, dtype=numpy.float32), numpy.zeros(16, numpy.float32)


def check(mode, shape, cap):
    value = x + (shape[1][0] if "FAST" in str(mode) else 0)
    assert (out == 2 * numpy.minimum(value, numpy.inf if cap is None else cap) + 5 - 2).all()
    out[:] = 0


for shape, cap in (((16, (3, None)), None), ((16, (3, None)), float("inf")), ((8, (5, None)), 9.5)):
    every.one[16 // shape[0]](out, x, 16, (5, 2), MODE="one:Mode.FAST", SHAPE=shape, CAP=cap)
    check("FAST", shape, cap)
    with every.serve():
        one.one[(16 // shape[0],)](out, x, 16, one.Mode.FAST, shape, cap, 5, 2)
        check("FAST", shape, cap)
every.one[1](out, x, 16, (5, 2), MODE="one:Mode.SLOW", SHAPE="(16,(3,none))", CAP="none")
check("SLOW", (16, (3, None)), None)
with pytest.raises(every.LaunchError, match="has no grid in its spec"):
    every.one(out, x, 16, (5, 2), MODE="one:Mode.SLOW", SHAPE=(16, (3, None)), CAP=None)
with every.serve(), pytest.raises(RuntimeError) as caught:
    one.one[(1,)](out, x, 16, one.Mode.SLOW, (4, ("none", 1e-3)), "none", 5, 2)
print(str(caught.value).partition("this would make it:")[2])
"""
LAUNCH = """\
#include <every.h>
#include <stdio.h>

int main(void) {
    every *release;
    float x[16] = {1}, out[16] = {0};
    every_one_axes axes = {
        .MODE = EVERY_ONE_MODE_ONE_MODE_FAST, .SHAPE = EVERY_ONE_SHAPE__16__3_NONE__, .CAP = EVERY_ONE_CAP_NONE};
    precast_grid grid = {1, 1, 1};
    if (every_open(NULL, &release) || every_one_grid(release, PRECAST_CPU, axes, grid, out, x, 16, 5, 2))
        return puts(every_error()), 1;
    return !(out[0] == 11 && out[1] == 9);
}
"""


def run(folder, *command):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def precast(folder, *words):
    done = run_precast(folder, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_kind_of_constexpr_without_a_grid(tmp_path, sconstruct):
    (tmp_path / "kernels").mkdir()
    for name, text in {"pyproject.toml": SETTINGS, "kernels/one.py": KERNEL, "kernels/one.toml": SPEC,
                       "run.py": PROGRAM, "launch.c": LAUNCH, "SConstruct": sconstruct}.items():  # fmt: skip
        (tmp_path / name).write_text(text)
    precast(tmp_path, "build")
    fragment = run(tmp_path, sys.executable, "run.py")
    release = os.path.realpath(tmp_path / "generated/every/current")
    flags = (f"-I{release}/include", f"-L{release}/lib", "-levery", f"-Wl,-rpath,{release}/lib")
    run(tmp_path, "cc", "-std=c11", "-Werror", "-Wall", "launch.c", *flags, "-o", "launch")
    run(tmp_path, "./launch")
    (tmp_path / "kernels/two.toml").write_text(fragment)
    planned = precast(tmp_path, "plan", "--kernel", "one_2")
    assert "one_2:out%16,x%16,n%16@cpu:x86-64-v2" in planned  # as the arguments were
