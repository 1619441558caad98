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
from enum import Enum
from pathlib import Path
from types import TracebackType

from precast.store import telling_disk_faults

_PREFIX = "precast-scratch-"


class _Locked(Enum):
    HERE = "here"
    BY_OTHERS = "by others"
    NEVER = "never"  # on a file system that locks no folders, where none is removed either


class Scratch:
    """A folder of this process, from construction to `remove`, or for the length of a `with`. `ToolError` when there
    is no place for one."""

    def __init__(self) -> None:
        with telling_disk_faults(Path("temporary files")):
            while not self._make():
                pass

    def _make(self) -> bool:
        """Whether a fresh folder is ours: until it is locked, another build may take it for a dead one's."""
        self.name = tempfile.mkdtemp(prefix=_PREFIX)
        try:
            self._lock = os.open(self.name, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            return False
        if _lock(self._lock) is not _Locked.BY_OTHERS and os.path.isdir(self.name):
            return True
        os.close(self._lock)
        return False

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
            if os.fstat(descriptor).st_uid == os.getuid() and _lock(descriptor) is _Locked.HERE:
                shutil.rmtree(place, ignore_errors=True)
        finally:
            os.close(descriptor)


def _lock(descriptor: int) -> _Locked:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return _Locked.BY_OTHERS
    except OSError:
        return _Locked.NEVER
    return _Locked.HERE
