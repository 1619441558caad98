"""Whatever a program launches: what is recorded plans, has the launch's own unit, and stays as it is the next time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent / "drawn_programs.py"


def draw(folder: Path, seed: int, rounds: int) -> None:
    command = [sys.executable, "-W", "ignore", str(PROGRAM), str(folder), str(seed), str(rounds)]
    ran = subprocess.run(command, text=True, capture_output=True, timeout=900)
    assert ran.returncode == 0, f"{' '.join(command)}\n{ran.stdout}{ran.stderr}"


def test_what_programs_launch_is_recorded_as_the_jit_specialised_it(tmp_path):
    draw(tmp_path, 0, 4)


@pytest.mark.all
@pytest.mark.parametrize("seed", [1000, 1020, 1040])
def test_more_programs(tmp_path, seed):
    draw(tmp_path, seed, 20)
