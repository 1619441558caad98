"""Projects whose candidates are built, and programs that run in them."""

import os
import subprocess
import sys
from pathlib import Path


def run(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess:
    """A run of Python, which must end well."""
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, capture_output=True, text=True, timeout=300, env=os.environ | environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def make_candidates(folder: Path, files: dict[str, str]) -> Path:
    """Writes a project's files, builds its candidates, and gives its folder."""
    (folder / "kernels").mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    run(folder, "-m", "precast", "build", "--candidates")
    return folder
