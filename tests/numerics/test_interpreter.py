"""Kernels in Triton's interpreter against NumPy in float64: the kernels are right, whatever an engine makes of them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from kernel_cases import CASES

# What the interpreter of Triton 3.9 cannot run, or not judge.
NOT_INTERPRETED = {
    "dependent_scale": "it has no grid dependency control",
    "echo_scalars": "it takes Python's numbers, not the spec's types",
    "gluon_transpose": "it has no Gluon",
    "grid_normalize": "it runs programs one after another, so a barrier over the grid never opens",
    "quantize_fp8": "it rounds to fp8 without carrying into the exponent",
}
# It rounds fp32 to bf16 towards zero: up to twice the error of rounding to nearest.
ALLOWED_SHARE = {"bf16": 2.0}

# Triton's interpreter takes torch's tensors.
pytestmark = [pytest.mark.all, pytest.mark.usefixtures("torch")]


@pytest.mark.parametrize("kernel", sorted(set(CASES) - set(NOT_INTERPRETED)))
def test_kernel_in_the_interpreter(kernel: str) -> None:
    program = Path(__file__).with_name("interpret.py")
    done = subprocess.run([sys.executable, program, kernel], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(results) >= len(CASES[kernel].shapes)
    wrong = [result for result in results if max(result["shares"].values()) > allowed_share(result["unit"])]
    assert not wrong


def allowed_share(unit: str) -> float:
    return max((share for element, share in ALLOWED_SHARE.items() if f"dtype={element}" in unit), default=1.0)
