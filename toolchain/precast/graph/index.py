"""The index: what every step was built from and what it left, so that "did anything move" is asked of one place.

In: finished steps. Out: whether a step is fresh. A file is known by size, mtime, ctime and inode, and its digest
is taken anew only when one of these moved; so edits within one second, edits that keep the mtime, and damaged
outputs are all noticed. Kept in one SQLite file: each finished step is committed at once, and a killed build
loses nothing that was done.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
import stat
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from precast.errors import ToolError

_VERSION = 1
_TABLES = """
CREATE TABLE IF NOT EXISTS files(
    path TEXT PRIMARY KEY, size INT, mtime INT, ctime INT, inode INT, digest TEXT) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS steps(
    name TEXT PRIMARY KEY, key TEXT, inputs TEXT, outputs TEXT, note TEXT) WITHOUT ROWID;
"""
# A file changed within this span before its digest was taken may change again without its times showing it.
_CLOCK_GRAIN_NS = 50_000_000


@dataclass(frozen=True)
class FileState:
    """A file as it was when its digest was taken; times in nanoseconds, `mtime` -1 when it was too fresh to trust."""

    size: int
    mtime: int
    ctime: int
    inode: int
    digest: str

    def matches(self, status: os.stat_result) -> bool:
        return (self.size, self.mtime, self.ctime, self.inode) == (
            status.st_size,
            status.st_mtime_ns,
            status.st_ctime_ns,
            status.st_ino,
        )


@dataclass(frozen=True)
class StepRecord:
    """One finished step: its key, and the digests of files it read beyond its key and of files it made, by path."""

    name: str
    key: str
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    note: str = ""


class Index:
    """The index in the file `path`, of files named relative to `root` (or absolute). Safe for threads."""

    def __init__(self, path: Path, root: Path) -> None:
        self._path = path
        self._root = root
        self._lock = threading.RLock()
        self._connection = _open(path)
        self._files, self._steps = _load(self._connection)

    def close(self) -> None:
        with self._lock, _telling_faults(self._path):
            self._connection.commit()
            self._connection.close()

    def step(self, name: str) -> StepRecord | None:
        """What is recorded of a step."""
        return self._steps.get(name)

    @property
    def steps(self) -> tuple[str, ...]:
        return tuple(self._steps)

    def is_fresh(self, name: str, key: str) -> bool:
        """Whether the step was built with `key`, from the inputs that are there now, and its outputs are intact."""
        record = self._steps.get(name)
        if record is None or record.key != key:
            return False
        return all(
            self.digest(path) == digest for files in (record.inputs, record.outputs) for path, digest in files.items()
        )

    def digest(self, path: str) -> str | None:
        """The digest of a file as it is now; None when it is not there. Links are read anew each time."""
        place = self._root / path
        try:
            status = os.lstat(place)
            if stat.S_ISLNK(status.st_mode):
                return digest_of_link(place)
        except OSError:
            return None
        known = self._files.get(path)
        if known is not None and known.matches(status):
            return known.digest
        return self._take_digest(path, place)

    def _take_digest(self, path: str, place: Path) -> str | None:
        now = time.time_ns()
        try:
            digest = digest_of_file(place)
            status = os.lstat(place)
        except OSError:
            return None
        settled = now - max(status.st_mtime_ns, status.st_ctime_ns) > _CLOCK_GRAIN_NS
        mtime = status.st_mtime_ns if settled else -1
        self._keep(path, FileState(status.st_size, mtime, status.st_ctime_ns, status.st_ino, digest))
        return digest

    def _keep(self, path: str, state: FileState) -> None:
        with self._lock, _telling_faults(self._path):
            self._files[path] = state
            row = (path, state.size, state.mtime, state.ctime, state.inode, state.digest)
            self._connection.execute("REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?)", row)

    def record(
        self, name: str, key: str, inputs: Mapping[str, str], outputs: Iterable[str], note: str = ""
    ) -> StepRecord:
        """Keeps a finished step and commits. `inputs` are digests taken before it ran (`digests`): what moved
        meanwhile shows at the next build. `ToolError` when an output is not there."""
        record = StepRecord(name, key, dict(inputs), self.digests(outputs), note)
        row = (name, key, json.dumps(record.inputs), json.dumps(record.outputs), note)
        with self._lock, _telling_faults(self._path):
            self._steps[name] = record
            self._connection.execute("REPLACE INTO steps VALUES (?, ?, ?, ?, ?)", row)
            self._connection.commit()
        return record

    def digests(self, paths: Iterable[str]) -> dict[str, str]:
        """The digests of files by path, in the order of their paths; `ToolError` when one is not there."""
        digests = {}
        for path in sorted(set(paths)):
            digest = self.digest(path)
            if digest is None:
                raise ToolError(f"{path} is gone", hint="run the same again")
            digests[path] = digest
        return digests

    def forget(self, names: Iterable[str]) -> None:
        """Drops steps that belong to nothing any more."""
        with self._lock, _telling_faults(self._path):
            for name in names:
                self._steps.pop(name, None)
                self._connection.execute("DELETE FROM steps WHERE name = ?", (name,))
            self._connection.commit()

    def forget_absent_files(self) -> None:
        """Drops the states of files that are not there any more."""
        with self._lock, _telling_faults(self._path):
            for path in [each for each in self._files if not os.path.lexists(self._root / each)]:
                del self._files[path]
                self._connection.execute("DELETE FROM files WHERE path = ?", (path,))
            self._connection.commit()


def digest_of_file(place: Path) -> str:
    """sha256 of a file's bytes."""
    with place.open("rb") as stream:
        return hashlib.sha256(stream.read()).hexdigest()


def digest_of_link(place: Path) -> str:
    """A digest of where a symbolic link leads and, when that is a file, of what is there."""
    digest = hashlib.sha256(b"link:" + os.fsencode(os.readlink(place)))
    if place.is_file():
        digest.update(place.read_bytes())
    return digest.hexdigest()


def _open(path: Path) -> sqlite3.Connection:
    """A connection to the index, made anew when the file there is damaged or of another version."""
    with _telling_faults(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            return _connect(path)
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                raise
            path.unlink()
            return _connect(path)


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, check_same_thread=False)
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version not in (0, _VERSION):
        connection.close()
        raise sqlite3.DatabaseError(f"index of version {version}")
    # Survives a killed process, which is what happens; after a power cut a damaged index is made anew.
    connection.execute("PRAGMA synchronous = OFF")
    connection.executescript(_TABLES)
    connection.execute(f"PRAGMA user_version = {_VERSION}")
    _load(connection)
    return connection


def _load(connection: sqlite3.Connection) -> tuple[dict[str, FileState], dict[str, StepRecord]]:
    files = {row[0]: FileState(*row[1:]) for row in connection.execute("SELECT * FROM files")}
    steps = {
        name: StepRecord(name, key, json.loads(inputs), json.loads(outputs), note)
        for name, key, inputs, outputs, note in connection.execute("SELECT * FROM steps")
    }
    return files, steps


@contextlib.contextmanager
def _telling_faults(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        hint = "free some space" if "full" in str(error) else "build in a copy that is writable"
        raise ToolError(f"cannot write {path}: {error}", hint=hint) from error
    except OSError as error:
        reason = os.strerror(error.errno or 0).lower()
        raise ToolError(f"cannot write {path}: {reason}", hint="build in a copy that is writable") from error
