"""Files of a release that may be anything: what `bounded` refuses, as sentences.

In: paths. Out: bytes and digests, or a `ReleaseError` of one sentence. No link is followed, and no more is read than
was to be expected.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from io import FileIO
from pathlib import Path

from precast.bounded import IrregularFileError, chunks_of, digest_stream, open_bounded
from precast.errors import ReleaseError, printable

MOST_MANIFEST_BYTES = 256 << 20
MOST_KEY_BYTES = 1 << 20
_NO_LIMIT = 1 << 63
_IRREGULAR = {errno.ELOOP: "no file of its own, but a link", errno.EFBIG: "longer than it was when it was opened"}


@contextlib.contextmanager
def _opened(path: Path, follow: bool) -> Iterator[tuple[FileIO, int]]:
    """A file that is one, and its size."""
    name = printable(path)
    try:
        with open_bounded(path, _NO_LIMIT, follow=follow) as stream:
            yield stream, os.fstat(stream.fileno()).st_size
    except IrregularFileError as error:
        raise ReleaseError(f"{name} is {_IRREGULAR.get(error.errno or 0, 'no file')}") from None
    except (FileNotFoundError, NotADirectoryError):
        raise ReleaseError(f"{name} is absent") from None
    except OSError as error:
        raise ReleaseError(f"cannot read {name}: {os.strerror(error.errno or 0).lower()}") from None


def read_file(path: Path, most: int, *, follow: bool = False) -> bytes:
    """The bytes of a file that has at most `most`; with `follow` it may be a link."""
    with _opened(path, follow) as (stream, size):
        if size > most:
            raise ReleaseError(f"{printable(path)} is {size} bytes long, more than the {most} that it may have")
        data = b"".join(chunks_of(stream, path, size))
    if len(data) != size:
        raise ReleaseError(f"{printable(path)} became shorter while it was read")
    return data


def digest_file(path: Path, size: int) -> str:
    """sha256 hex of a file of `size` bytes; another size is told without reading it."""
    with _opened(path, follow=False) as (stream, found):
        if found != size:
            raise ReleaseError(f"{printable(path)} is damaged: {found} bytes, the manifest says {size}")
        return digest_stream(stream, path, size)
