"""One build at a time in a build folder.

In: the build folder. Out: a lock that the kernel gives back however the process ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from precast.errors import ToolError
from precast.store import telling_disk_faults

LOCK_FILE = "lock"


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Holds the lock of the build folder `folder`; `ToolError` at once when another process holds it."""
    path = folder / LOCK_FILE
    with telling_disk_faults(path):
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        _take(descriptor, folder)
        yield
    finally:
        os.close(descriptor)


def _take(descriptor: int, folder: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.read(descriptor, 20).decode("ascii", "replace").strip() or "unknown"
        raise ToolError(
            f"another build is running in {folder} (process {holder})", hint="wait for it, or build in another copy"
        ) from None
    with telling_disk_faults(folder / LOCK_FILE):
        os.truncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
