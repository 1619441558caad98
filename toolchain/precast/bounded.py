"""Reading files that may be anything: their kind and size first, then their bytes. The one rule for what a build reads.

In: paths, and the most bytes that a file may have. Out: bytes and digests, or an `OSError` that says why not. Nothing
here waits for a pipe, opens a device or a socket, or reads what has no end; whoever calls need not look first.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path

MOST_TEXT_BYTES = 64 << 20  # of what people write
MOST_FILE_BYTES = 4 << 30  # of any other file: as `runtime/file.h`
_CHUNK = 1 << 20
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class IrregularFileError(OSError):
    """What lies there is a folder, a pipe, a device or a socket; a link, where none is followed; or too large."""


@contextmanager
def open_bounded(path: str | Path, most: int = MOST_FILE_BYTES, *, follow: bool = True) -> Iterator[FileIO]:
    """A regular file of at most `most` bytes, open to be read without a buffer; with `follow` it may be a link to one.

    `OSError` with the file's name; `IrregularFileError` for another kind or a larger one, with errno ELOOP for a link
    that is not followed and EFBIG for what is too large.
    """
    try:
        _check(os.stat(path, follow_symlinks=follow), path, most)  # before opening: that alone has devices do something
        descriptor = os.open(path, _FLAGS | (0 if follow else os.O_NOFOLLOW))
        with os.fdopen(descriptor, "rb", buffering=0) as stream:
            _check(os.fstat(descriptor), path, most)
            yield stream
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


def _check(status: os.stat_result, path: str | Path, most: int) -> None:
    kind = status.st_mode
    if stat.S_ISDIR(kind):
        raise IrregularFileError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(kind):
        raise IrregularFileError(errno.ELOOP if stat.S_ISLNK(kind) else errno.EINVAL, "not a regular file", str(path))
    if status.st_size > most:
        raise _too_large(path, most)


def _too_large(path: str | Path, most: int) -> IrregularFileError:
    return IrregularFileError(errno.EFBIG, f"larger than {most >> 20} MB", str(path))


def chunks_of(stream: FileIO, path: str | Path, most: int = MOST_FILE_BYTES) -> Iterator[bytes]:
    """What is in an open file, which may grow meanwhile, but not beyond `most`."""
    left = most
    while chunk := stream.read(_CHUNK):
        left -= len(chunk)
        if left < 0:
            raise _too_large(path, most)
        yield chunk


def digest_stream(stream: FileIO, path: str | Path, most: int = MOST_FILE_BYTES) -> str:
    """sha256 hex of what is in an open file."""
    total = hashlib.sha256()
    for chunk in chunks_of(stream, path, most):
        total.update(chunk)
    return total.hexdigest()


def read_bounded(path: str | Path, most: int = MOST_TEXT_BYTES, *, follow: bool = True) -> bytes:
    """The bytes of a file that has at most `most`; with `follow`, of what a link leads to."""
    with open_bounded(path, most, follow=follow) as stream:
        return b"".join(chunks_of(stream, path, most))


def digest_bounded(path: str | Path) -> str:
    """sha256 hex of what a file holds, and of what a link leads to."""
    with open_bounded(path) as stream:
        return digest_stream(stream, path)


def holds(path: str | Path, data: bytes, *, follow: bool = True) -> bool:
    """Whether there is a file that has just these bytes; with `follow` it may be a link to one."""
    try:
        return read_bounded(path, len(data), follow=follow) == data
    except OSError:
        return False
