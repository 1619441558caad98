"""Tuning against drivers whose clock stands still but for launches: every time is known, and so is the choice."""

import json
import struct
import subprocess
from pathlib import Path

import pytest
from tuned_project import make_candidates, run

HERE = Path(__file__).parent
pytestmark = pytest.mark.all

SETTINGS = """
[tool.precast]
name = "shop"
targets = ["%s"]
"""

KERNEL = """
import triton
import triton.language as tl


@triton.jit
def add(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, i < n), i < n)
"""

SPEC = """
[kernel.add]
source = "add.py:add"
grid = ["cdiv(n, BLOCK)"]
configs = [
    { BLOCK = 32, num_warps = 1 }, { BLOCK = 64, num_warps = 2 }, { BLOCK = 128, num_warps = 4 }, { BLOCK = 256 },
]

[kernel.add.args]
x = { type = "*{dtype}", align = 16 }
out = { type = "*{dtype}", align = 16 }
n = "i32"

[kernel.add.matrix]
dtype = ["fp16", "fp32"]

[[kernel.add.problem]]
dtype = "fp16"
n = [100, 5000]
x = "n"
out = "n"
"""

CHOOSE = """
import ctypes, sys
sys.path.insert(0, "generated/shop/current/python")
if sys.argv[1] == "cuda":
    cuda, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
    cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    cuda.cuCtxSetCurrent(context)
import shop
for dtype in ("fp16", "fp32"):
    unit, _, _, row = shop.add.choose(1 << 40, 1 << 41, 100, dtype=dtype)
    print(unit, row)
"""
KINDS = {  # of a device: its target, its driver's file, how the driver calls itself
    "cuda": ("cuda:90", "libcuda.so.1", "CUDA 13.0"), "hip": ("hip:gfx942", "libamdhip64.so.7", "HIP 7.0"),
}  # fmt: skip


def microseconds(image: bytes) -> int:
    """As `timed_cuda.c` has them."""
    total, (sections,) = 0, struct.unpack_from("<Q", image, 40)
    for byte in image[:sections]:
        total = (total * 31 + byte) % 2**32
    return 1 + total % 1000


@pytest.fixture(scope="module", params=KINDS)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def driver(tmp_path_factory, kind):
    """What is in the environment of processes that find the driver."""
    folder = tmp_path_factory.mktemp("driver")
    flags = ["-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-o", str(folder / KINDS[kind][1])]
    subprocess.run(["cc", *flags, str(HERE / f"timed_{kind}.c")], check=True)
    return {"LD_LIBRARY_PATH": str(folder)}


@pytest.fixture(scope="module")
def project(tmp_path_factory, kind):
    files = {"pyproject.toml": SETTINGS % KINDS[kind][0], "kernels/add.py": KERNEL, "kernels/add.toml": SPEC}
    return make_candidates(tmp_path_factory.mktemp("tuned"), files)


def read_expected(project):
    """Microseconds of the fp16 units by BLOCK."""
    release = project / "generated/shop/candidates/current"
    units = json.loads((release / "manifest.json").read_text())["units"]
    images = {each["unit"]: (release / each["file"]).read_bytes()[each["offset"] :] for each in units}
    return {
        block: microseconds(next(data for name, data in images.items() if f"dtype=fp16,BLOCK={block}" in name
                                 or (f"BLOCK={block}" in name and "dtype=fp16" in name)))
        for block in (32, 64, 128, 256)
    }  # fmt: skip


@pytest.mark.parametrize("cache", ["warm", "flushed"])
def test_times_are_those_of_the_launches_alone(project, driver, kind, cache):
    run(project, "-m", "precast", "tune", "-o", f"found/{cache}", "--cache", cache, "--rounds", "3", **driver)
    evidence = json.loads((project / f"found/{cache}/add.fake-h1.json").read_text())
    expected = read_expected(project)
    assert (evidence["device"], evidence["driver"], evidence["target"]) == ("Fake H1", KINDS[kind][2], KINDS[kind][0])
    timer = {"warm": f"{kind} graph", "flushed": "events"}[cache]
    assert evidence["method"] == {"cache": cache, "rounds": 3, "timer": timer, "unit": "us"}
    for problem in evidence["problems"]:
        assert problem["axes"] == {"dtype": "fp16"}
        blocks = [config["BLOCK"] for config in evidence["configs"]]
        assert dict(zip(blocks, problem["times"], strict=True)) == pytest.approx(expected, rel=2e-3)


def test_a_device_takes_its_own_rows_and_another_of_its_target_the_first_ones(project, driver, kind):
    """Rows of other types than those that were measured are the default's."""
    times = {"Fake H1": [9.0, 1.0, 9.0, 9.0], "Other H2": [9.0, 9.0, 1.0, 9.0]}
    configs = [{"BLOCK": 32, "num_warps": 1}, {"BLOCK": 64, "num_warps": 2}, {"BLOCK": 128, "num_warps": 4}]
    (project / "tuning").mkdir()
    for device, row in times.items():
        problems = [{"axes": {"dtype": "fp16"}, "sizes": {"n": 100}, "times": row[:3]}]
        evidence = {"schema": 1, "kernel": "add", "target": KINDS[kind][0], "device": device,
                    "axes": ["BLOCK", "num_warps"], "configs": configs, "problems": problems}  # fmt: skip
        (project / f"tuning/add.{device[:5].strip().lower()}.json").write_text(json.dumps(evidence))
    run(project, "-m", "precast", "build")
    for name, block, file in (("Fake H1", 64, "fake"), ("Other H2", 128, "other"), ("Third H3", 64, "fake")):
        lines = run(project, "-c", CHOOSE, kind, **driver, DEVICE_NAME=name).stdout.splitlines()
        assert [f"BLOCK={block}," in line for line in lines] == [True, True], (name, lines)
        assert [line.split(" ", 1)[1] for line in lines] == [
            f"exact, n == 100 (tuning/add.{file}.json)", f"default (tuning/add.{file}.json)",
        ]  # fmt: skip
