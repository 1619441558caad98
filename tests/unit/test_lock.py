"""The build lock: one holder, told who it is, free again however it ended."""

import os
import subprocess
import sys

import pytest

from precast.errors import ToolError
from precast.graph.lock import locked

HOLD = """
import pathlib, sys
from precast.graph.lock import locked
with locked(pathlib.Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_second_build_is_told_who_holds_the_lock(tmp_path):
    command = [sys.executable, "-c", HOLD, str(tmp_path / "build")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        holder.stdout.readline()
        with pytest.raises(ToolError) as caught, locked(tmp_path / "build"):
            pass
        assert str(caught.value) == f"another build is running in {tmp_path / 'build'} (process {holder.pid})"
        holder.kill()
        holder.wait()
    with locked(tmp_path / "build"):
        assert (tmp_path / "build" / "lock").read_text() == f"{os.getpid()}\n"


def test_lock_is_free_after_an_error(tmp_path):
    with pytest.raises(ValueError), locked(tmp_path):
        raise ValueError
    with locked(tmp_path):
        pass
