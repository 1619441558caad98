"""A test that takes PyTorch is skipped where there is none, and fails where the second tier has installed it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).parents[1] / "conftest.py"


@pytest.mark.parametrize(("interop", "summary"), [("", "1 passed, 1 skipped"), ("1", "1 passed, 1 error")])
def test_absence_of_pytorch(tmp_path, interop, summary):
    shutil.copy(CONFTEST, tmp_path)
    (tmp_path / "torch.py").write_text("raise ImportError('not here')\n")
    (tmp_path / "test_one.py").write_text("def test_with(torch):\n    pass\n\n\ndef test_without():\n    pass\n")
    command = [sys.executable, "-m", "pytest", "-rfEs", "-p", "no:cacheprovider", "--rootdir", tmp_path, tmp_path]
    environment = {**os.environ, "PRECAST_INTEROP": interop, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, env=environment, text=True, capture_output=True, check=False)
    assert summary in done.stdout and not done.stderr, done.stdout + done.stderr
    assert "it takes PyTorch: pip install 'precast[interop]' (not here)" in done.stdout
