"""Random block programs against the NumPy evaluator of `cpu_fuzz`: levels drawn at random, fixed seeds.

A batch runs in a process of its own, so that a crash names its program. What fails is reduced and printed.
"""

import subprocess
import sys
from pathlib import Path

import pytest
from cpu_fuzz.__main__ import level_of, report

BATCH = 54
HERE = Path(__file__).parent


def run_batch(first: int, count: int) -> None:
    command = [sys.executable, "-W", "ignore", "-m", "cpu_fuzz", str(first), str(count)]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True)
    print(f"seeds {first} to {first + count - 1}")
    if done.returncode < 0:
        seed = int([line for line in done.stdout.splitlines() if line.startswith("at ")][-1].split()[1])
        pytest.fail(report(seed, level_of(seed)) or f"seed {seed}: signal {-done.returncode}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith(f"{count} programs, 0 failed\n")


@pytest.mark.parametrize("batch", range(4))
def test_programs(batch):
    run_batch(batch * BATCH, BATCH)


@pytest.mark.parametrize("seed", [10176, 10510, 708740])
def test_programs_that_failed_once(seed):
    run_batch(seed, 1)


@pytest.mark.all
@pytest.mark.parametrize("batch", range(8))
def test_more_programs(batch):
    run_batch(10_000 + batch * 110, 110)


@pytest.mark.soak
@pytest.mark.parametrize("batch", range(100))
def test_many_programs(batch):
    run_batch(100_000 + batch * 500, 500)
