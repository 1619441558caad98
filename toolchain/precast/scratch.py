"""Temporary folders that go even when the process that made them could not remove them.

In: nothing. Out: folders in the system's temporary folder, each locked by its owner for as long as it lives. What is
not locked belongs to nobody: the next build removes it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from types import TracebackType

from precast.store import telling_disk_faults

_PREFIX = "precast-scratch-"


class Scratch:
    """A folder of this process, from construction to `remove`, or for the length of a `with`. `ToolError` when there
    is no place for one."""

    def __init__(self) -> None:
        with telling_disk_faults(Path("temporary files")):
            while True:
                self.name = tempfile.mkdtemp(prefix=_PREFIX)
                self._lock = os.open(self.name, os.O_RDONLY | os.O_DIRECTORY)
                _try_lock(self._lock)
                if os.path.isdir(self.name):  # nobody took it for a dead one's between these lines
                    return
                os.close(self._lock)

    def __enter__(self) -> Path:
        return Path(self.name)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()

    def remove(self) -> None:
        shutil.rmtree(self.name, ignore_errors=True)
        os.close(self._lock)


def remove_abandoned() -> None:
    """Removes the folders of processes that were killed."""
    with contextlib.suppress(OSError):  # there is no such folder
        for place in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
            _remove_abandoned(place)


def _remove_abandoned(place: Path) -> None:
    with contextlib.suppress(OSError):  # another user's, or gone
        descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            if os.fstat(descriptor).st_uid == os.getuid() and _try_lock(descriptor):
                shutil.rmtree(place, ignore_errors=True)
        finally:
            os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # locked, or on a file system that locks no folders, where nothing is removed either
        return False
    return True
