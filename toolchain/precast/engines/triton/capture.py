"""What native code writes to standard error, read back where it lies. In: file descriptor 2. Out: text.

A worker's standard error is a file that its parent keeps, so that the last words of a crash are not lost: nothing is
redirected then. Elsewhere the text goes to a file for as long as the block lasts.
"""

from __future__ import annotations

import contextlib
import faulthandler
import fcntl
import os
import stat
import sys
import tempfile
from collections.abc import Iterator

TRACE_SECONDS = 1.5


class Written:
    """Reads what was written to standard error since it was made."""

    def __init__(self) -> None:
        self._start = os.fstat(2).st_size

    def read(self) -> str:
        sys.stderr.flush()
        size = os.fstat(2).st_size - self._start
        return os.pread(2, max(size, 0), self._start).decode(errors="replace")


def _can_be_read_back(descriptor: int) -> bool:
    """Whether it is a file open for reading too, as a worker's is; a shell's `2> file` is for writing only."""
    access = fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE
    return stat.S_ISREG(os.fstat(descriptor).st_mode) and access == os.O_RDWR


@contextlib.contextmanager
def traced() -> Iterator[None]:
    """In a worker: what Python runs in the block is written down when the process crashes, and every few seconds.

    A pass that hangs is ended from outside: its line is then in the last words.
    """
    if not _can_be_read_back(2):
        yield
        return
    was_enabled = faulthandler.is_enabled()
    faulthandler.enable(2)
    faulthandler.dump_traceback_later(TRACE_SECONDS, repeat=True, file=2)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        if not was_enabled:
            faulthandler.disable()


@contextlib.contextmanager
def capture_errors() -> Iterator[Written]:
    """What the block writes to standard error, readable inside the block."""
    sys.stderr.flush()
    if _can_be_read_back(2):
        yield Written()
        return
    saved = os.dup(2)
    try:
        with tempfile.TemporaryFile() as file:
            os.dup2(file.fileno(), 2)
            try:
                yield Written()
            finally:
                sys.stderr.flush()
                os.dup2(saved, 2)
    finally:
        os.close(saved)


def first_error(text: str) -> str:
    """What the first native error says, without the place before it."""
    for line in text.splitlines():
        _, found, message = line.partition("error: ")
        if found and not line.startswith("Fatal Python error"):
            return message.strip()
        if line.startswith("LLVM ERROR: "):
            return line.strip()
    return ""
