"""Reading files of a release that may be anything: their kind and size first, then their bytes.

In: paths. Out: bytes and digests, or a `ReleaseError` of one sentence. Nothing here waits for a pipe or a device,
follows a link, or reads more than it was told to expect.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from precast.errors import ReleaseError, printable

MOST_MANIFEST_BYTES = 256 << 20
MOST_FILE_BYTES = 4 << 30  # of any file that a release may list: as `runtime/file.h`
MOST_KEY_BYTES = 1 << 20
_CHUNK = 1 << 20


@contextlib.contextmanager
def _opened(path: Path, follow: bool) -> Iterator[tuple[BinaryIO, int]]:
    """A file that is one, and its size."""
    name = printable(path)
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    try:
        kind = (path.stat() if follow else path.lstat()).st_mode
        if not stat.S_ISREG(kind):
            raise ReleaseError(f"{name} is no file{' of its own, but a link' if stat.S_ISLNK(kind) else ''}")
        with os.fdopen(os.open(path, flags), "rb") as stream:
            status = os.fstat(stream.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise ReleaseError(f"{name} is no file")
            yield stream, status.st_size
    except (FileNotFoundError, NotADirectoryError):
        raise ReleaseError(f"{name} is absent") from None
    except OSError as error:
        raise ReleaseError(f"cannot read {name}: {os.strerror(error.errno or 0).lower()}") from None


def read_file(path: Path, most: int, *, follow: bool = False) -> bytes:
    """The bytes of a file that has at most `most`; with `follow` it may be a link."""
    with _opened(path, follow) as (stream, size):
        if size > most:
            raise ReleaseError(f"{printable(path)} is {size} bytes long, more than the {most} that it may have")
        data = stream.read(size)
    if len(data) != size:
        raise ReleaseError(f"{printable(path)} became shorter while it was read")
    return data


def digest_file(path: Path, size: int) -> str:
    """sha256 hex of a file of `size` bytes; another size is told without reading it."""
    digest = hashlib.sha256()
    with _opened(path, follow=False) as (stream, found):
        if found != size:
            raise ReleaseError(f"{printable(path)} is damaged: {found} bytes, the manifest says {size}")
        while size and (chunk := stream.read(min(size, _CHUNK))):
            digest.update(chunk)
            size -= len(chunk)
    return digest.hexdigest()
