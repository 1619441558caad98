"""Runs the lit files of this folder: the command line of passes, and each shipped plugin on good and bad input."""

import os
import subprocess
import sys
import time
from pathlib import Path

import forking
import pytest

HERE = Path(__file__).parent


def run_lit(folder: Path, *files: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).parent / "lit"), "-j2", "-v", *(str(HERE / file) for file in files)]
    variables = {**os.environ, "PRECAST_LIT_OUTPUT": str(folder / "output"), **environment}
    return subprocess.run(command, capture_output=True, text=True, env=variables)


def test_lit_files_pass(tmp_path: Path):
    programs = tmp_path / "programs"
    forking.write_programs(programs)
    with subprocess.Popen([sys.executable, forking.__file__, str(programs)]) as server:
        try:
            while not (programs / "socket").exists():
                assert server.poll() is None
                time.sleep(0.05)
            done = run_lit(tmp_path, "opt", "plugins", PRECAST_LIT_PROGRAMS=str(programs))
        finally:
            server.kill()
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.all
def test_lit_files_pass_with_a_process_for_each_command(tmp_path: Path):
    done = run_lit(tmp_path, "opt", "plugins")
    assert done.returncode == 0, done.stdout + done.stderr
