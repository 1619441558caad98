"""What is recorded without a device, and without PyTorch: specs as with one, marked as assumed. Nothing is compiled."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent / "on_arrays.py"
SPEC = """# What a program launched, as `precast record` found it. Another run adds what is missing.

[kernel.tuned]  # assumed: recorded for cuda:90 without a device
source = "on_arrays.py:tuned"
grid = ["cdiv(n, BLOCK)"]
configs = [
    { BLOCK = 128, EVEN = true, num_warps = 2 },
    { BLOCK = 64, EVEN = true, num_warps = 4 },
    { BLOCK = 128, EVEN = false, num_warps = 2 },
    { BLOCK = 64, EVEN = false, num_warps = 4 },
]
hints = [
    ["n%16"],
    [],
]
tune = ["BLOCK", "num_warps"]
problem = [
    { EVEN = true, x = 4096, out = 4096, n = 256 }, # 1 launch
    { EVEN = false, x = 4096, out = 4096, n = 1000 }, # 1 launch
]

[kernel.tuned.args]
x = "*bf16"
bias = "none"
out = { type = "*fp32", align = 16 }
n = "i32"

[kernel.tuned.options]
num_ctas = 1
num_stages = 3

[kernel.parts]  # assumed: recorded for cuda:90 without a device
source = "on_arrays.py:parts"
grid = ["1"]

[kernel.parts.args]
pair = "(*i32, *i32)"
source = "tensordesc<fp32[16,32]>"

[kernel.parts.constants]
SMS = 132

[kernel.failing]  # assumed: recorded for cuda:90 without a device
source = "on_arrays.py:failing"

[kernel.failing.args]
out = { type = "*fp32", align = 16 }
"""


def record(folder: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TRITON_")}
    environment = {**kept, "TRITON_CACHE_DIR": str(folder / "cache"), "PYTHONWARNINGS": "ignore", **more}
    command = [sys.executable, "-m", "precast", "record", *words, "--", sys.executable, "on_arrays.py"]
    return subprocess.run(command, cwd=folder, env=environment, text=True, capture_output=True, timeout=300)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("arrays")
    (folder / "on_arrays.py").write_text(PROGRAM.read_text())
    return folder


def test_a_program_runs_up_to_its_launches(folder):
    ran = record(folder, "--no-device", "cuda:90", "-o", "recorded.toml")
    assert (ran.returncode, ran.stdout) == (0, "GPUTarget(backend='cuda', arch=90, warp_size=32) 4 0\n"), ran.stderr
    assert ran.stderr.splitlines() == [
        "recorded 6 variants of 3 kernels as assumed for cuda:90, without a device; new: tuned, parts, failing in "
        "recorded.toml",
    ]
    assert (folder / "recorded.toml").read_text() == SPEC
    assert not list((folder / "cache").rglob("*.json")), "a tuner's choice that nobody measured is kept"


def test_again_and_for_an_amd_device(folder):
    (folder / "recorded.toml").write_text(SPEC.replace("  # assumed: recorded for cuda:90 without a device", "", 1))
    before = (folder / "recorded.toml").read_bytes()
    ran = record(folder, "--no-device", "cuda:90", "-o", "recorded.toml")
    assert ran.returncode == 0 and (folder / "recorded.toml").read_bytes() == before
    ran = record(folder, "--no-device", "hip:gfx942", "-o", "recorded.toml")
    assert ran.stdout == "GPUTarget(backend='hip', arch='gfx942', warp_size=64) 4 0\n", ran.stderr
    text = (folder / "recorded.toml").read_text()
    assert "[kernel.parts]  # assumed: recorded for hip:gfx942 without a device; recorded for cuda:90 with" in text
    assert "configs = [\n    { SMS = 132" in text and "    { SMS = 304" in text


@pytest.mark.parametrize(
    ("target", "said"),
    [
        (
            "cpu:x86-64-v3",
            "error: every machine has a CPU, so that a program is recorded on it\nhint: leave out `--no-device`\n",
        ),
        (
            "cuda:91",
            "error: nobody can build for target `cuda:91`\n"
            "hint: cuda has 75, 80, 86, 87, 89, 90, 100, 103, 107, 110, 120, 121\n",
        ),
        ("", "error: unknown target ``\nhint: targets are written as `cuda:90`, `hip:gfx942`, `cpu:x86-64-v3`\n"),
    ],
)
def test_a_device_that_nobody_can_stand_in_for(tmp_path, target, said):
    ran = record(tmp_path, "--no-device", target)
    assert (ran.returncode, ran.stdout, ran.stderr) == (1, "", said)
