"""What is recorded for a GPU, under this Triton and, in the second tier, under others: a driver launches nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import tomlkit

PROGRAM = Path(__file__).parent / "on_stand_in.py"
TUNED = {"num_warps": 4, "num_ctas": 1, "num_stages": 3}
SIZES = {"x": 4096, "out": 4096}
OUT = {"type": "*fp32", "align": 16}
KERNELS = {
    "add": {
        "grid": ["cdiv(n, BLOCK)"],
        "configs": [{"dtype": "fp32", "num_warps": 2}, {"dtype": "bf16", "num_warps": 4}],
        "hints": [["n%16"], ["out%16", "n==1"]],
        "tune": [],
        "problem": [
            {**SIZES, "dtype": "fp32", "num_warps": 2, "n": 256, "flag": True, "value": 2.0},
            {**SIZES, "dtype": "bf16", "num_warps": 4, "n": 1, "flag": False, "value": 1},
        ],
        "args": {
            "x": {"type": "*{dtype}", "align": 16}, "out": "*fp32", "n": "i32", "flag": "i1", "value": "fp32",
        },
        "constants": {"BLOCK": 64},
    },
    "tuned": {
        "args": {"pair": "(*fp32, *fp32)", "n": {"type": "i32", "align": 16}},
        "constants": {"BLOCK": 128, "EVEN": True},
        "options": {**TUNED, "num_warps": 2},
    },
    "library": {
        "grid": ["1"], "args": {"out": {"type": "*i64", "align": 16}}, "constants": {"BLOCK": 32}, "options": TUNED,
        "tune": [], "problem": [{"out": 4096}],
    },
    "warmed": {"args": {"out": OUT}, "constants": {"VALUE": 3.0}},
    "describe": {
        "grid": ["1"], "args": {"source": "tensordesc<fp32[16,32]>", "out": OUT},
        "tune": [], "problem": [{"source": [64, 64], "out": 4096}],
    },
}  # fmt: skip


def record(folder: Path, **more: str) -> tuple[str, list[str]]:
    """Which Triton it was, and what no spec can say."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TRITON_")}
    environment = {**kept, "TRITON_CACHE_DIR": str(folder / "cache"), **more}
    command = [sys.executable, str(PROGRAM), str(folder / "recorded.toml")]
    ran = subprocess.run(command, env=environment, text=True, capture_output=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    version, *unsaid = ran.stdout.splitlines()
    kernels = tomlkit.parse((folder / "recorded.toml").read_text()).unwrap()["kernel"]
    source = os.path.relpath(PROGRAM, folder)
    assert kernels == {name: {"source": f"{source}:{name}", **kernel} for name, kernel in KERNELS.items()}
    return version, unsaid


def test_what_a_program_would_launch_on_a_gpu(tmp_path):
    assert record(tmp_path)[1] == [
        "on_stand_in.py:tuned: that parts of the tuple `pair` are multiples of 16: a spec has no hints within tuples",
        "on_stand_in.py:passed: argument `function` is `3`, and the function does not declare it a constexpr",
        "what to tune `tuned` with: its grid is no expression of its arguments",
    ]


@pytest.mark.all
def test_it_is_the_same_under_each_triton(tmp_path, other_triton):
    version, folder = other_triton
    assert record(tmp_path, PYTHONPATH=str(folder))[0] == version
