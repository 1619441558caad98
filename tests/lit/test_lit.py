"""Runs the lit files of this folder: the command line of passes, and each shipped plugin on good and bad input."""

import os
import subprocess
import sys
from pathlib import Path


def test_lit_files_pass(tmp_path: Path):
    command = [str(Path(sys.executable).parent / "lit"), "-j2", "-v", str(Path(__file__).parent)]
    environment = {**os.environ, "PRECAST_LIT_OUTPUT": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
