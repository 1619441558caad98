"""A place where units of the stand-in engine wait, so that a test does what it does while they are there: however fast
or slow a machine is, nothing is a matter of chance.
"""

from __future__ import annotations

import time

from tree import Tree

PATIENCE_S = 300.0  # ends a hang, and is no limit on how slow a machine may be
WAIT = """
import time
from pathlib import Path
Path({reached!r}).touch()
while not Path({opened!r}).exists():
    time.sleep(0.01)
"""


class Gate:
    """Where units of `kernels`, and others with the order `run gate.py`, wait in each stage until it is opened."""

    ORDER = "run gate.py"

    def __init__(self, tree: Tree, *kernels: str, name: str = "gate") -> None:
        self._reached, self._opened = tree.folder / f"{name}-reached", tree.folder / f"{name}-opened"
        tree.write(f"kernels/{name}.py", WAIT.format(reached=str(self._reached), opened=str(self._opened)))
        for kernel in kernels:
            tree.edit(f"kernels/{kernel}.py", "import triton\n", f"# stand-in: run {name}.py\nimport triton\n")

    def wait_until_reached(self) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not self._reached.exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def open(self) -> None:
        self._opened.touch()
