"""The file in which SCons keeps what it knows of C files: sealed under its own digest, as all state of a build is.

In: what SCons stores. Out: the same, or nothing where a bit of it has changed: then C is compiled again, for the index
knows better. SCons takes this as its database: bytes by folder, and `sync`.
"""

from __future__ import annotations

import contextlib
import pickle
from collections import UserDict
from pathlib import Path

from precast.bounded import MOST_FILE_BYTES, read_bounded
from precast.digest import seal, unseal
from precast.errors import PrecastError
from precast.store import write_file


class SignatureFile(UserDict[str, bytes]):
    """The signatures in the file `path`; none where it is absent or damaged."""

    def __init__(self, path: Path) -> None:
        super().__init__(_read(path))
        self._path = path
        self._kept = dict(self)

    def sync(self) -> None:
        """Writes them. What cannot be written costs time alone: the C files are then looked at again."""
        if self._kept == self.data:
            return
        with contextlib.suppress(PrecastError):
            write_file(self._path, seal(pickle.dumps(self.data)))
            self._kept = dict(self)


def _read(path: Path) -> dict[str, bytes]:
    try:
        data = unseal(read_bounded(path, MOST_FILE_BYTES))
    except OSError:
        return {}
    found: dict[str, bytes] = pickle.loads(data) if data is not None else {}  # it is as it was written
    return found
