"""A program of PyTorch and Triton is recorded without a device; what is written builds, and serves what it launched."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import tomlkit

PROGRAM = Path(__file__).parent / "on_torch.py"
SETTINGS = '[tool.precast]\nname = "demo"\nversion = "1.0"\ntargets = ["cuda:90"]\npythonpath = ["."]\n'
FLOATS = {"type": "*fp32", "align": 16}
KERNELS = {
    "scale_rows": {
        "configs": [
            {"dtype": "fp32", "weight_type": "*fp32", "BLOCK": 128},
            {"dtype": "bf16", "weight_type": "*bf16", "BLOCK": 128},
            {"dtype": "fp32", "weight_type": "none", "BLOCK": 4096},
            {"dtype": "fp32", "weight_type": "none", "BLOCK": 1024},
        ],
        "hints": [[], ["stride%16", "n%16"]],
    },
    "add": {
        "configs": [
            {"BLOCK": 128, "EVEN": True, "num_warps": 4},
            {"BLOCK": 256, "EVEN": True, "num_warps": 8},
            {"BLOCK": 128, "EVEN": False, "num_warps": 4},
            {"BLOCK": 256, "EVEN": False, "num_warps": 8},
        ],
        "hints": [["n%16"], []],
        "args": {"x": "*fp32", "y": FLOATS, "out": FLOATS, "n": "i32"},
    },
    "gather": {
        "args": {"x": FLOATS, "places": {"type": "*i64", "align": 16}, "out": FLOATS, "count": "i32"},
        "constants": {"LIMIT": 32},
    },
    "tile": {
        "args": {"source": "tensordesc<bf16[16,32]>", "out": FLOATS},
        "constants": {"ROWS": 16, "COLUMNS": 32},
    },
    "halve": {"configs": [{"dtype": "fp64"}, {"dtype": "fp32"}]},
}  # fmt: skip
READS = "it reads values of a tensor, which only a device computes: it goes on with others"


def line_of(text: str) -> int:
    return next(number for number, line in enumerate(PROGRAM.read_text().splitlines(), 1) if text in line)


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TRITON_")}
    environment = {**kept, "TRITON_CACHE_DIR": str(folder / "cache"), "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, "-m", "precast", *words]
    return subprocess.run(command, cwd=folder, env=environment, text=True, capture_output=True, timeout=900)


def record(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return run(folder, "record", "--no-device", "cuda:90", "--", sys.executable, "on_torch.py", *words)


@pytest.fixture
def folder(tmp_path: Path, sconstruct: str) -> Path:
    (tmp_path / "pyproject.toml").write_text(SETTINGS)
    (tmp_path / "SConstruct").write_text(sconstruct)
    (tmp_path / "on_torch.py").write_text(PROGRAM.read_text())
    return tmp_path


@pytest.mark.all
def test_a_training_program_is_recorded_and_its_release_serves_it(folder, torch):
    ran = record(folder)
    assert (ran.returncode, ran.stdout) == (0, ""), ran.stderr
    assert ran.stderr == (
        "recorded 12 variants of 5 kernels as assumed for cuda:90, without a device; new: scale_rows, add, gather, "
        "tile, halve in kernels/recorded.toml\n"
    )
    specs = folder / "kernels" / "recorded.toml"
    text = specs.read_text()
    found = tomlkit.parse(text).unwrap()["kernel"]
    assert {name: {key: found[name].get(key) for key in kernel} for name, kernel in KERNELS.items()} == KERNELS
    assert text.count("]  # assumed: recorded for cuda:90 without a device\n") == len(found) == len(KERNELS)
    assert record(folder).returncode == 0 and specs.read_text() == text
    built = run(folder, "build")
    assert built.returncode == 0, built.stdout + built.stderr
    covered = run(folder, "coverage", "generated/demo/current", "kernels/recorded.toml")
    count, assumed = covered.stdout.splitlines()
    assert (covered.returncode, count.split()[0]) == (0, count.split()[2]), covered.stdout
    assert assumed == f"{count.split()[0]} of them belong to kernels that were recorded without a device, as assumed"


@pytest.mark.all
def test_what_depends_on_values_is_told_and_not_guessed(folder, torch):
    ran = record(folder, "read")
    assert ran.returncode == 0, ran.stderr
    assert sorted(ran.stderr.splitlines()[1:]) == sorted([
        "not recorded: on_torch.py:gather: argument `count` depends on values of a tensor: what is recorded takes any "
        "number",
        "not recorded: on_torch.py:gather: constexpr `LIMIT` depends on values of a tensor, which only a device "
        "computes",
        f"not recorded: on_torch.py:{line_of('count = (out')}: {READS}",
        f"not recorded: on_torch.py:{line_of('places = (out')}: the size of a tensor depends on values, which only a "
        "device computes: it goes on with another",
        f"not recorded: on_torch.py:{line_of('LIMIT=triton.next_power_of_2((out')}: {READS}",
        f"not recorded: on_torch.py:{line_of('isnan(out)')}: {READS}",
    ])  # fmt: skip
    gather = tomlkit.parse((folder / "kernels" / "recorded.toml").read_text()).unwrap()["kernel"]["gather"]
    assert gather["configs"] == [{"LIMIT": 32}, {"LIMIT": 64}] and "hints" not in gather
