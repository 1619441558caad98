"""What a stage takes: its time, and the most memory that this process and a program that it ran held at once.

In: the moment when a meter is made. Out: seconds and bytes since then. The kernel forgets its high-water mark of this
process when it is told to, and of programs that have ended it knows the largest of all: where one ran, that counts.
"""

from __future__ import annotations

import contextlib
import resource
import time
from pathlib import Path

_FORGET_PEAK = "5"  # what `clear_refs` calls it


class Meter:
    """Measures from now on."""

    def __init__(self) -> None:
        with contextlib.suppress(OSError):  # then the mark is that of its whole life: too much, never too little
            Path("/proc/self/clear_refs").write_text(_FORGET_PEAK, encoding="utf-8")
        self._started = time.monotonic()
        self._ran = _children_seconds()

    @property
    def seconds(self) -> float:
        return round(time.monotonic() - self._started, 4)

    @property
    def peak_bytes(self) -> int:
        children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss if _children_seconds() != self._ran else 0
        return (_own_peak() + children) << 10


def _children_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _own_peak() -> int:
    """In KiB."""
    with contextlib.suppress(OSError, IndexError, ValueError):
        return int(Path("/proc/self/status").read_text(encoding="utf-8").partition("VmHWM:")[2].split()[0])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
