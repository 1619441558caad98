"""The processes that a process started, and what those started. In: a process id. Out: ids, as /proc has them now."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path


def children_of(process: int) -> list[int]:
    """The children of every thread of a process; none of one that is gone."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{process}/task"):
            with contextlib.suppress(OSError):
                found += map(int, Path(f"/proc/{process}/task/{task}/children").read_text(encoding="utf-8").split())
    return found


def is_running(process: int) -> bool:
    """Whether a process is there and has not ended; one that nobody has waited for yet has."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] not in "ZX"
    return False


def tree_of(process: int) -> Iterator[int]:
    """A process, its children, theirs, and so on."""
    yield process
    for child in children_of(process):
        yield from tree_of(child)


def end_children() -> None:
    """Kills all children of this process, those that come to it because their parents end, too; returns when none is
    left. To be called where orphans come here: in a subreaper."""
    while True:
        for child in children_of(os.getpid()):
            with contextlib.suppress(OSError):
                os.kill(child, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return
