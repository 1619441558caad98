"""One build at a time in a project, and in a build folder that several projects may share through links.

In: the build folder. Out: two locks that the kernel gives back however the process ends. One is on the project's
folder itself, so that removing the build folder takes no lock away. The other is on a file in the build folder, which
says who builds; whoever gets it makes sure that the file is still the one that others see.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from precast.bounded import read_bounded
from precast.errors import ToolError
from precast.store import drop_irregular, telling_disk_faults

LOCK_FILE = "lock"


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Holds the lock of the build folder `folder`; `ToolError` at once when another process holds it."""
    path = folder / LOCK_FILE
    with ExitStack() as held:
        with telling_disk_faults(path):
            project = _open(held, folder.parent, os.O_RDONLY | os.O_DIRECTORY)
            _take(project, path, optional=True)
            descriptor = _take_file(held, path)
            os.truncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield


def _open(held: ExitStack, path: Path, flags: int) -> int:
    descriptor = os.open(path, flags, 0o644)
    held.callback(os.close, descriptor)
    return descriptor


def _take_file(held: ExitStack, path: Path) -> int:
    """The descriptor of the locked file that is at `path`; one that was removed meanwhile locks nobody out."""
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        drop_irregular(path, follow=False)
        descriptor = _open(held, path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW)
        _take(descriptor, path)
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                return descriptor


def _take(descriptor: int, path: Path, *, optional: bool = False) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ToolError(
            f"another build is running in {path.parent} (process {_holder(path)})",
            hint="wait for it, or build in another copy",
        ) from None
    except OSError:
        if not optional:  # some file systems lock no folders
            raise


def remove_locked(folder: Path) -> None:
    """Removes the lock's file and, with it, the build folder that only it is left in; a link to one stays.

    For who holds the lock. Another one that already waits for the file finds that it is gone, and makes a new one.
    """
    (folder / LOCK_FILE).unlink(missing_ok=True)
    if not folder.is_symlink():
        with contextlib.suppress(OSError):  # somebody has put something there, or is about to build
            folder.rmdir()


def _holder(path: Path) -> str:
    with contextlib.suppress(OSError):
        return read_bounded(path, 64)[:20].decode("ascii", "replace").strip() or "unknown"
    return "unknown"
