"""A release whose spec pins arguments and says what each launch must meet: compiled for it, called, served, stubbed."""

import re
import subprocess
import sys

import pytest

KERNEL = """\
import triton
import triton.language as tl


@triton.jit
def one(out, x, n, row_stride, step, twice, scale=2.0, BLOCK: tl.constexpr = 64, FACTOR: tl.constexpr = 3):
    row = tl.program_id(0)
    places = tl.arange(0, BLOCK)
    value = tl.load(x + row * row_stride + places * step, mask=places < n)
    tl.store(out + row * BLOCK + places, value * scale * FACTOR + twice, mask=places < n)
"""
SPEC = """\
[kernel.one]
source = "one.py:one"
grid = ["2", "1", "1"]
requires = ["n <= BLOCK"]

[kernel.one.args]
out = "*fp32"
x = "*fp32"
n = "i32"
row_stride = { type = "i64", equal = "BLOCK * 2" }
step = { type = "i32", equal = 1 }
twice = { type = "i8", equal = -3 }
scale = "fp32"

[kernel.one.matrix]
BLOCK = [32, 64]
"""
SETTINGS = '[tool.precast]\nname = "pinned"\nversion = "1"\ntargets = ["cpu:x86-64-v2", "cuda:90"]\n'
PROGRAM = """\
import sys

import numpy
import pytest

sys.path[:0] = ["generated/pinned/current/python", "kernels"]
import one
import pinned

x = numpy.arange(256, dtype=numpy.float32)


def check(block, n, scale, call):
    out = numpy.zeros((2, block), numpy.float32)
    call(out)
    wanted = numpy.zeros((2, block), numpy.float32)
    wanted[:, :n] = 3 * scale * numpy.stack([x[:n], x[2 * block : 2 * block + n]]) - 3
    assert (out == wanted).all()


def refused(call, error):
    with pytest.raises(error) as caught:
        call()
    return str(caught.value)


check(32, 20, 2, lambda out: pinned.one(out, x, 20, 64, 1, -3))
check(64, 40, 2, lambda out: pinned.one(out, x, 40, 128, 1, -3, FACTOR=3))
check(64, 20, 5, lambda out: pinned.one(out, x, 20, 128, 1, -3, 5.0, BLOCK=64))
check(32, 32, 7, lambda out: pinned.one[(2,)](out, x, 32, 64, 1, -3, scale=7.0))
out = numpy.zeros(128, numpy.float32)
nearest = "no variant of `one` takes these arguments; nearest: one:BLOCK=64@cpu:x86-64-v2, which requires n <= BLOCK "
assert refused(lambda: pinned.one(out, x, 65, 128, 1, -3), pinned.LaunchError) == nearest + "(it is 65 <= 64)"
said = refused(lambda: pinned.one(out, x, 20, 64, 2, -3), pinned.LaunchError)
assert said == "argument `step` of `one` promises equal = 1, and it is 2"
said = refused(lambda: pinned.one(out, x, 20, 64, 1, -3, FACTOR=4), pinned.LaunchError)
assert said == "`one` has no variant with FACTOR=4; there are 3"
with pinned.serve():
    check(32, 20, 2, lambda out: one.one[(2,)](out, x, 20, 64, 1, -3, BLOCK=32))
    said = refused(lambda: one.one[(2,)](out, x, 65, 128, 1, -3, BLOCK=64), RuntimeError)
    assert said == f"the release cannot run `one`: {nearest}(it is 65 <= 64)"
    said = refused(lambda: one.one[(2,)](out, x, 20, 256, 1, -3, BLOCK=128), RuntimeError)
    assert 'grid = ["2", "1", "1"]\\nrequires = ["n <= BLOCK"]\\nonly = ["cpu:*"]\\nhints = [[' in said
    assert '"row_stride%16", "step==1"]]' in said
assert not out.any()
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory, sconstruct):
    folder = tmp_path_factory.mktemp("project")
    (folder / "kernels").mkdir()
    for name, text in {"pyproject.toml": SETTINGS, "kernels/one.py": KERNEL, "kernels/one.toml": SPEC,
                       "run.py": PROGRAM, "SConstruct": sconstruct}.items():  # fmt: skip
        (folder / name).write_text(text)
    run(folder, "-m", "precast", "build")
    return folder


def run(folder, *words):
    command = [sys.executable, *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_calls_are_checked_and_chosen(project):
    run(project, "run.py")


@pytest.mark.parametrize("target", ["cpu-x86-64-v2", "cuda-90"])
def test_pinned_arguments_are_constants_of_their_own_type(project, target):
    texts = [path.read_text() for path in sorted((project / "build/units" / target).glob("*/one.ttir"))]
    assert len(texts) == 2
    for text in texts:
        header, _, body = next(each for each in text.partition("tt.func public")[2:] if each).partition("{\n")
        places = re.findall(r"%\w+(?=: i(?:64|8))", header)
        assert len(places) == 2, "both stay parameters, the one that is 1 does not"
        assert not re.search("|".join(rf"{place}\b" for place in places), body), "nothing reads them"
        assert re.search(r"arith.constant (64|128) : i64", body), "64 bits as the argument has"


def test_stubs_have_defaults_and_constants(project):
    stub = (project / "generated/pinned/current/python/pinned/__init__.pyi").read_text()
    assert "        twice: int,\n        scale: float = 2.0,\n        *,\n" in stub
    assert "        BLOCK: Literal[32, 64] = ...,\n        FACTOR: Literal[3] = 3,\n" in stub


@pytest.mark.all
def test_a_changed_requirement_makes_a_release_and_no_unit(project):
    spec = project / "kernels/one.toml"
    spec.write_text(SPEC.replace("n <= BLOCK", "n < BLOCK"))
    assert "0 built, 4 reused, 0 failed" in run(project, "-m", "precast", "build")
    program = "import sys; sys.path.insert(0, 'generated/pinned/current/python'); import numpy, pinned\n"
    call = "out = numpy.zeros(128, 'f4')\npinned.one(out, out, 64, 128, 1, -3)"
    done = subprocess.run(
        [sys.executable, "-c", program + call], cwd=project, capture_output=True, text=True, timeout=300
    )
    assert "which requires n < BLOCK (it is 64 < 64)" in done.stderr
    spec.write_text(SPEC)
