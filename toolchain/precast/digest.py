"""Content digests of files, remembered by what the file system says of them.

In: paths. Out: sha256 hex, and records that were made from a content and are kept under its digest. `look_at` is the
one rule by which a file is taken for what it was; the memory of a plan is here, that of a build in its index. What is
remembered lives in one JSON file of the build folder, under a digest of its own; losing it costs time and nothing
else.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from precast.bounded import MOST_FILE_BYTES, digest_stream, open_bounded, read_bounded

FORMAT = 2
# Times of files count in steps, of 2 s on the coarsest file systems. A file whose times are no older than a step when
# it is read may change again without its times showing it. A little more is for clocks that lag.
SETTLING_NS = 2_100_000_000
_UNSETTLED = -1


def digest_text(text: str) -> str:
    """sha256 hex of a text's UTF-8 bytes."""
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()


def digest_pairs(pairs: Iterable[tuple[str, str]]) -> str:
    """One digest over names and their digests, in the order given."""
    return digest_text("".join(f"{name}\0{digest}\n" for name, digest in pairs))


def seal(data: bytes) -> bytes:
    """`data` under a line with its own digest, for files that are read back later."""
    return hashlib.sha256(data).hexdigest().encode() + b"\n" + data


def unseal(content: bytes) -> bytes | None:
    """What `seal` was given; None when a bit of it has changed."""
    head, _, data = content.partition(b"\n")
    return data if head == hashlib.sha256(data).hexdigest().encode() else None


class FileState(NamedTuple):
    """A file as it was when its digest was taken; times in nanoseconds, `mtime` -1 when it was too fresh to trust."""

    size: int
    mtime: int
    ctime: int
    inode: int
    digest: str

    @property
    def settled(self) -> bool:
        return self.mtime != _UNSETTLED

    def matches(self, status: os.stat_result) -> bool:
        return (self.size, self.mtime, self.ctime, self.inode) == (
            status.st_size,
            status.st_mtime_ns,
            status.st_ctime_ns,
            status.st_ino,
        )


def state_of_new(status: os.stat_result, digest: str) -> FileState:
    """The state of a file that was made just now of bytes with that digest: too fresh to trust."""
    return FileState(status.st_size, _UNSETTLED, status.st_ctime_ns, status.st_ino, digest)


def look_at(place: str | Path, known: FileState | None = None, status: os.stat_result | None = None) -> FileState:
    """The state of a file now: `known` when that is still true, else what reading it gives. `status` saves asking.

    `OSError`, with the file's name, when it cannot be read, or is no file that `bounded` reads.
    """
    now = time.time_ns()
    status = status or os.stat(place)
    if known is not None and known.matches(status):
        return known
    with open_bounded(place) as stream:
        digest = digest_stream(stream, place)
        status = os.fstat(stream.fileno())
    settled = now - max(status.st_mtime_ns, status.st_ctime_ns) > SETTLING_NS
    mtime = status.st_mtime_ns if settled else _UNSETTLED
    return FileState(status.st_size, mtime, status.st_ctime_ns, status.st_ino, digest)


class FileDigests:
    """Digests of files; `memory` is the file that remembers them between runs, None to remember nothing.

    A file is looked at once: what is made with one of these is made of one state of it. A `shared` memory belongs to
    several projects: what this run did not use stays in it, while its file is there.
    """

    def __init__(self, memory: Path | None = None, *, shared: bool = False) -> None:
        self._memory = memory
        self._shared = shared
        self._files: dict[str, FileState] = {}
        self._records: dict[str, Any] = {}
        self._used: set[str] = set()
        self._looked: dict[str, FileState] = {}
        self._changed = False
        self._read()

    def _read(self) -> None:
        if self._memory is None:
            return
        try:
            data = json.loads(unseal(read_bounded(self._memory, MOST_FILE_BYTES)) or b"{}")
            if data.get("format") == FORMAT:
                self._files = {name: FileState(**state) for name, state in data["files"].items()}
                self._records = dict(data["records"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return  # absent or damaged: everything is digested anew

    def digest(self, path: str | Path) -> str:
        """sha256 hex of the file's content; `OSError` when it cannot be read."""
        name = str(path)
        if name not in self._looked:
            known = self._files.get(name)
            state = look_at(path, known)
            self._looked[name] = state
            if state is not known:
                self._remember(name, state)
        return self._looked[name].digest

    @property
    def looked(self) -> Mapping[str, FileState]:
        """Every file that this run asked for, as it was then."""
        return self._looked

    def _remember(self, name: str, state: FileState) -> None:
        if state.settled:
            self._files[name] = state
            self._changed = True
        elif self._files.pop(name, None):
            self._changed = True

    def record(self, kind: str, path: Path, make: Callable[[bytes], Any]) -> Any:
        """What `make` makes of the file's bytes (JSON-able), remembered under the digest of these very bytes."""
        key = f"{kind}:{self.digest(path)}"
        if key not in self._records:
            data = read_bounded(path)
            key = f"{kind}:{hashlib.sha256(data).hexdigest()}"  # the file may have moved since
            self._records[key] = make(data)
            self._changed = True
        self._used.add(key)
        return self._records[key]

    def save(self) -> None:
        """Writes what was used in this run to the memory. A folder that cannot be written is no error."""
        if self._memory is None or not self._changed:
            return
        if self._shared:
            self._used |= {*self._records, *(name for name in self._files if os.path.exists(name))}
        self._used |= self._looked.keys()
        data = {
            "format": FORMAT,
            "files": {name: state._asdict() for name, state in self._files.items() if name in self._used},
            "records": {key: value for key, value in self._records.items() if key in self._used},
        }
        draft = self._memory.with_name(f".{self._memory.name}.{secrets.token_hex(6)}.tmp")
        try:
            self._memory.parent.mkdir(parents=True, exist_ok=True)
            draft.write_bytes(seal(json.dumps(data, separators=(",", ":")).encode()))
            os.replace(draft, self._memory)
        except OSError:
            with contextlib.suppress(OSError):
                draft.unlink(missing_ok=True)
        self._changed = False
