"""What a user's Python code read while it ran: values, and what the same read would find now.

In: what a worker saw of a kernel's module. Out: `Read` values, and their digests, by which a build knows whether
one of them would come out differently.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from precast.digest import digest_text

ABSENT = ""  # the digest of what is not there
# What processes that run a user's code take over from the machine; the rest of their environment is fixed or set.
INHERITED = ("PATH", "LD_LIBRARY_PATH", "SYSTEMROOT")
PASSED_OVER = frozenset({"__pycache__"})  # what comes and goes in a folder without meaning


class ReadKind(str, Enum):
    """How it was read: a source was executed, data opened, a directory's names listed, a variable asked for."""

    SOURCE = "source"
    DATA = "data"
    DIRECTORY = "directory"
    ENVIRONMENT = "environment"


@dataclass(frozen=True, order=True)
class Read:
    """One file, folder or variable that was read. Of a source, the digest is that of the very bytes that ran."""

    kind: ReadKind
    name: str  # a path, relative to the project where it is inside; a variable's name
    digest: str  # sha256 hex; empty for what is not there

    @property
    def place(self) -> str:
        """What was read, without what was found; `parse_read` is its inverse."""
        return f"{self.kind.value}:{self.name}"


def parse_read(place: str, digest: str = ABSENT) -> Read:
    """The read of a `place`, with what was found there."""
    kind, _, name = place.partition(":")
    return Read(ReadKind(kind), name, digest)


def digest_file(path: Path) -> str:
    """The digest of a file's content, or `ABSENT`."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ABSENT


def digest_directory(path: Path) -> str:
    """The digest of the names in a folder, or `ABSENT`."""
    try:
        return digest_text("\n".join(sorted(set(os.listdir(path)) - PASSED_OVER)))
    except OSError:
        return ABSENT


def digest_variable(name: str, environment: Mapping[str, str]) -> str:
    """The digest of a variable's value, or `ABSENT`."""
    return digest_text(environment[name]) if name in environment else ABSENT


def digest_now(read: Read, project: Path, environment: Mapping[str, str]) -> str:
    """The digest that `read` would have now: it is stale when this differs from its own."""
    if read.kind is ReadKind.ENVIRONMENT:
        return digest_variable(read.name, environment)
    path = project / read.name
    return digest_directory(path) if read.kind is ReadKind.DIRECTORY else digest_file(path)
