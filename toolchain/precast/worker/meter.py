"""What a stage takes: its time, and the most memory that this process and a program that it ran held at once.

In: the moment when a meter is made. Out: seconds and bytes since then. The kernel forgets its high-water mark of this
process when it is told to (what it says is then at least what an image held that this process had before an `exec`),
and of programs that have ended it knows the largest of all: where one ran, that counts.
"""

from __future__ import annotations

import contextlib
import os
import resource
import time

_FORGET_PEAK = b"5"  # what `clear_refs` calls it


class Meter:
    """Measures from now on."""

    def __init__(self) -> None:
        with contextlib.suppress(OSError):  # then the mark is that of its whole life: too much, never too little
            _forget_peak()
        self._started = time.monotonic()
        self._ran = _children_seconds()

    @property
    def seconds(self) -> float:
        return round(time.monotonic() - self._started, 4)

    @property
    def peak_bytes(self) -> int:
        children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss if _children_seconds() != self._ran else 0
        return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss + children) << 10


def _forget_peak() -> None:
    marks = os.open("/proc/self/clear_refs", os.O_WRONLY)
    try:
        os.write(marks, _FORGET_PEAK)
    finally:
        os.close(marks)


def _children_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
