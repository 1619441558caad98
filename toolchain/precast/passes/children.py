"""Child processes that run a plugin author's code: away from the project's folder, with a worker's environment.

In: a module of ours and its arguments. Out: the finished process. A file `random.py` in the current folder must not
take the place of the standard library's, and what a plugin prints must not reach anything that is parsed.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass

from precast.reads import INHERITED
from precast.scratch import Scratch

# Isolated mode knows neither PYTHONPATH nor the current folder, on every version of Python.
_START = "import json, runpy, sys; sys.path[:] = json.loads(sys.argv[1]); del sys.argv[1]; " + (
    "runpy.run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)"
)
FIXED = {"PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8", "TRITON_BACKENDS_IN_TREE": "1"}
LAST_WORDS = 2000


@dataclass(frozen=True)
class Finished:
    """How a child ended; `words` is the end of what it printed. `code` is None when it did not end in time."""

    code: int | None
    words: str

    @property
    def ending(self) -> str:
        """How it ended, in words."""
        if self.code is not None and self.code < 0:
            return signal.Signals(-self.code).name
        return f"exit code {self.code}"


def run_child(module: str, arguments: Sequence[str], time_limit_s: float) -> Finished:
    """Runs `python -m module arguments` in an empty folder; whatever it started ends with it."""
    command = [sys.executable, "-I", "-c", _START, json.dumps(search_path()), module, *arguments]
    with Scratch() as folder, tempfile.TemporaryFile() as output:
        environment = {name: os.environ[name] for name in INHERITED if name in os.environ}
        environment |= FIXED | {"HOME": str(folder), "TMPDIR": str(folder)}
        child = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=os.getsid(0) != os.getpid(),  # a child's own children go with it
        )
        try:
            code: int | None = child.wait(time_limit_s)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            _end(child)
        output.seek(max(0, output.seek(0, os.SEEK_END) - LAST_WORDS))
        return Finished(code, output.read().decode(errors="replace").strip())


def _end(child: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.kill()
    child.wait()


def search_path() -> list[str]:
    """Where this process finds modules, without the folder that it happened to be started in."""
    first, *rest = sys.path or [""]
    named = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    accidental = first == "" or (os.path.realpath(first) == os.path.realpath(os.curdir) and first not in named)
    return [each for each in (rest if accidental else [first, *rest]) if each]
