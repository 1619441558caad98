"""The digest of the code that makes packs, launchers and releases: when it changes, these are made anew.

In: this package's files. Out: one digest without any path of this machine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import precast
from precast.errors import BugError

_FOLDERS = ("launch", "release", "graph")
_SUFFIXES = {".py", ".c", ".h", ".j2", ".json", ".so"}


def digest_toolchain(digest: Callable[[str], str | None]) -> str:
    """sha256 over names and contents; `digest` gives a file's content digest by its path."""
    root = Path(precast.__file__).parent
    total = hashlib.sha256(precast.__version__.encode())
    for path in sorted(path for folder in _FOLDERS for path in (root / folder).rglob("*") if path.suffix in _SUFFIXES):
        content = digest(str(path))
        if content is None:
            raise BugError(f"{path} vanished")
        total.update(f"{path.relative_to(root).as_posix()}\0{content}\n".encode())
    return total.hexdigest()
