"""The index: what every step was built from and what it left, so that "did anything move" is asked of one place.

In: finished steps. Out: whether a step is fresh. A file is known by size, mtime, ctime and inode, and its digest
is taken anew only when one of these moved (`digest.look_at`); so edits within one second, edits that keep the mtime,
and damaged outputs are all noticed. Kept in one SQLite file: each finished step is committed at once, and a killed
build loses nothing that was done. Each row carries a digest; a row that is damaged, or a whole file, is as if it had
never been.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
import stat
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from precast import collector
from precast.bounded import digest_bounded
from precast.digest import FileState, look_at, state_of_new
from precast.errors import ToolError
from precast.reads import ABSENT, FILES, Read, ReadKind, digest_file, digest_now, digest_package, parse_read
from precast.store import drop_irregular, reason_of

_VERSION = 2
_TABLES = """
CREATE TABLE IF NOT EXISTS files(
    path TEXT PRIMARY KEY, size INT, mtime INT, ctime INT, inode INT, digest TEXT, seal TEXT) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS steps(
    name TEXT PRIMARY KEY, key TEXT, inputs TEXT, outputs TEXT, note TEXT, seal TEXT) WITHOUT ROWID;
"""
_PUT_FILE = "REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?, ?)"
_PUT_STEP = "REPLACE INTO steps VALUES (?, ?, ?, ?, ?, ?)"
_JOINED = {count: "\0".join(["%s"] * count) for count in (5, 6)}  # values of a row
READ = "read:"
STEPS_TOGETHER = 100
# What SQLite says when the machine refuses; all else that it says is about what the file holds.
_REFUSALS = ("full", "unable to open", "locked", "out of memory")
# What SQLite says of disks, and also of files whose first bytes are damaged.
_REFUSALS_OR_DAMAGE = ("readonly", "disk I/O")

Row = tuple[str | int, ...]


@dataclass(frozen=True)
class StepRecord:
    """One finished step: its key, and by path the digests of files that it read beyond its key and that it made.

    What a user's code read stands among the inputs by `Read.place`, after `read:`.
    """

    name: str
    key: str
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    note: str = ""


class Index:
    """The index in the file `path`, of files named relative to `root` (or absolute). Safe for threads.

    One that is not opened `whole` reads the rows that are asked for, until something is asked of all of them.
    """

    def __init__(self, path: Path, root: Path, *, whole: bool = True) -> None:
        self._path = path
        self._root = root
        self._root_text = str(root)
        self._lock = threading.RLock()
        self._unwritten: dict[str, FileState] = {}
        self._packages: dict[str, str] = {}  # asked for by many steps, so once for a build
        self._unwritten_steps: dict[str, StepRecord] = {}
        self._together = 1  # steps that are committed at once
        self._recorded: set[str] = set()
        self._connection, self._files, self._steps = _open(path, whole)
        self._whole = whole

    def close(self) -> None:
        self._write(lambda connection: None)
        with contextlib.suppress(sqlite3.DatabaseError):  # what it would tell, the next build finds out
            self._connection.execute("PRAGMA journal_mode = DELETE")
        self._connection.close()

    def _write(self, change: Callable[[sqlite3.Connection], object]) -> None:
        """Makes and commits a change. A file that turns out to be damaged is made anew from what is known here."""
        with self._lock, _telling_faults(self._path):
            try:
                rows = [_file_row(*each) for each in self._unwritten.items()]
                self._connection.executemany(_PUT_FILE, rows)
                self._connection.executemany(_PUT_STEP, map(_step_row, self._unwritten_steps.values()))
                change(self._connection)
                self._connection.commit()
                self._unwritten.clear()
                self._unwritten_steps.clear()
            except sqlite3.DatabaseError as error:
                if _is_refusal(error, self._path):
                    raise
                self._connection.close()
                self._connection = _make_anew(self._path)
                self._connection.executemany(_PUT_FILE, [_file_row(*each) for each in self._files.items()])
                self._connection.executemany(_PUT_STEP, [_step_row(each) for each in self._steps.values()])
                self._connection.commit()
                self._unwritten.clear()
                self._unwritten_steps.clear()

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """What is recorded in the block is committed some steps at a time: for steps that are cheap to record again."""
        self._together = STEPS_TOGETHER
        try:
            yield
        finally:
            self._together = 1
            self._write(lambda connection: None)

    def step(self, name: str) -> StepRecord | None:
        """What is recorded of a step."""
        record = self._steps.get(name)
        if record is None and not self._whole:
            row = self._read_row("SELECT * FROM steps WHERE name = ?", name)
            if row is not None:
                record = self._steps[name] = _step_of(row)
        return record

    def _read_row(self, question: str, name: str) -> Row | None:
        """One row that is what it was when it was written."""
        with self._lock:
            try:
                row: Row | None = self._connection.execute(question, (name,)).fetchone()
            except sqlite3.DatabaseError:
                return None
        return row if row is not None and _is_sealed(row) else None

    def _read_rest(self) -> None:
        """Reads all rows that nobody has asked for yet."""
        with self._lock:
            if self._whole:
                return
            try:
                files, steps = _load(self._connection)
            except (sqlite3.DatabaseError, ValueError):
                files, steps = {}, {}
            self._files = {**files, **self._files}
            self._steps = {**steps, **self._steps}
            self._whole = True

    def know(self, states: Mapping[str, FileState]) -> None:
        """Takes files as somebody has just looked at them, and keeps nothing of it."""
        self._files.update(states)

    def reads(self, name: str) -> dict[str, str]:
        """What a user's code read for a step, by `Read.place`, with the digests."""
        record = self.step(name)
        inputs = record.inputs if record else {}
        return {each.removeprefix(READ): digest for each, digest in inputs.items() if each.startswith(READ)}

    def found(self, name: str) -> tuple[Read, ...]:
        """What a user's code read for a step, as it was found."""
        record = self.step(name)
        inputs = record.inputs.items() if record else ()
        return tuple(parse_read(place.removeprefix(READ), each) for place, each in inputs if place.startswith(READ))

    @property
    def steps(self) -> tuple[str, ...]:
        self._read_rest()
        return tuple(self._steps)

    def is_fresh(self, name: str, key: str) -> bool:
        """Whether the step was built with `key`, from the inputs that are there now, and its outputs are intact."""
        record = self.step(name)
        if record is None or record.key != key:
            return False
        return all(self._digest_input(path) == digest for path, digest in record.inputs.items()) and all(
            self.digest(path) == digest for path, digest in record.outputs.items()
        )

    def moved(self, name: str) -> tuple[str, ...]:
        """What is not as it was when the step was recorded: files that it read or made, by path, and `Read.place`s."""
        record = self.step(name)
        if record is None:
            return ()
        inputs = [path for path, digest in record.inputs.items() if self._digest_input(path) != digest]
        outputs = [path for path, digest in record.outputs.items() if self.digest(path) != digest]
        return tuple(path.removeprefix(READ) for path in (*inputs, *outputs))

    def _digest_input(self, path: str) -> str | None:
        """The digest of an input now; of what was read, those files are remembered that are no links."""
        if not path.startswith(READ):
            return self.digest(path)
        read = parse_read(path.removeprefix(READ))
        if read.kind is ReadKind.PACKAGE:
            if read.name not in self._packages:
                self._packages[read.name] = digest_package(read.name)
            return self._packages[read.name]
        return self.digest_content(read.name) if read.kind in FILES else digest_now(read, self._root, os.environ)

    def digest_content(self, path: str) -> str:
        """The digest of what a file holds now, and of what a link leads to; `ABSENT` when it is not there."""
        place = self._root / path
        return digest_file(place) if os.path.islink(place) else self.digest(path) or ABSENT

    def digest(self, path: str) -> str | None:
        """The digest of a file as it is now; None when it cannot be read. Links are read anew each time."""
        try:
            return self._look_at(path)
        except OSError:
            return None

    def _look_at(self, path: str) -> str:
        place = path if path.startswith("/") else f"{self._root_text}/{path}"
        status = os.lstat(place)
        known = self._files.get(path) or self.state(path)
        if known is not None and known.matches(status):  # thousands of times, so before all else
            return known.digest
        if stat.S_ISLNK(status.st_mode):
            return digest_of_link(Path(place))
        state = look_at(place, known, status)
        self._keep(path, state)
        return state.digest

    def last_digest(self, path: str) -> str | None:
        """The digest of a file as it was last looked at, if it was."""
        known = self.state(path)
        return known.digest if known is not None else self.digest(path)

    def state(self, path: str) -> FileState | None:
        """A file as it was when it was last looked at; of links nothing is remembered."""
        state = self._files.get(path)
        if state is None and not self._whole:
            row = self._read_row("SELECT * FROM files WHERE path = ?", path)
            if row is not None:
                state = self._files[path] = FileState._make(cast(Any, row[1:-1]))
        return state

    def _keep(self, path: str, state: FileState) -> None:
        """Remembers a file; committed with the next step."""
        with self._lock:
            self._files[path] = state
            self._unwritten[path] = state

    def record(
        self,
        name: str,
        key: str,
        inputs: Mapping[str, str],
        outputs: Iterable[str],
        note: str = "",
        reads: Iterable[Read] = (),
        made: Mapping[str, str] = MappingProxyType({}),
    ) -> StepRecord:
        """Keeps a finished step and commits (see `together`). `inputs` are digests taken before it ran (`digests`),
        `reads` what a user's code read: what moved meanwhile shows at the next build. Of outputs that are in `made`, by
        path, those are the digests that they were made with; the others are read. `ToolError` when one is not there."""
        read = {f"{READ}{each.place}": each.digest for each in reads}
        left = self.digests(set(outputs) - made.keys()) | {path: self._keep_made(path, made[path]) for path in made}
        record = StepRecord(name, key, {**inputs, **read}, left, note)
        with self._lock:
            self._recorded.add(name)
            self._steps[name] = self._unwritten_steps[name] = record
            if len(self._unwritten_steps) >= self._together:
                self._write(lambda connection: None)
        return record

    def is_new(self, name: str) -> bool:
        """Whether the step was recorded just now, and not by an earlier build."""
        return name in self._recorded

    def _keep_made(self, path: str, digest: str) -> str:
        """Remembers a file that was made with such a digest, unread: what became of it since shows when it is asked."""
        try:
            self._keep(path, state_of_new(os.lstat(f"{self._root_text}/{path}"), digest))
        except OSError:
            raise ToolError(f"{path} is gone", hint="run the same again") from None
        return digest

    def digests(self, paths: Iterable[str]) -> dict[str, str]:
        """The digests of files by path, in the order of their paths; `ToolError` when one cannot be read."""
        digests = {}
        for path in sorted(set(paths)):
            try:
                digests[path] = self._look_at(path)
            except (FileNotFoundError, NotADirectoryError):
                raise ToolError(f"{path} is gone", hint="run the same again") from None
            except OSError as error:
                raise ToolError(f"cannot read {path}: {reason_of(error)}") from error
        return digests

    def forget(self, names: Iterable[str]) -> None:
        """Drops steps that belong to nothing any more."""
        gone = [(name,) for name in names]
        with self._lock:
            for (name,) in gone:
                self._steps.pop(name, None)
                self._unwritten_steps.pop(name, None)
            self._write(lambda connection: connection.executemany("DELETE FROM steps WHERE name = ?", gone))

    def forget_absent_files(self, keep: AbstractSet[str] = frozenset()) -> None:
        """Drops the states of files that are not there any more; those of `keep` are not asked about."""
        self._read_rest()
        with self._lock:
            root, others = str(self._root), self._files.keys() - keep
            gone = [(path,) for path in others if not os.path.lexists(os.path.join(root, path))]
            for (path,) in gone:
                del self._files[path]
                self._unwritten.pop(path, None)
            self._write(lambda connection: connection.executemany("DELETE FROM files WHERE path = ?", gone))


def remember_files(path: Path, states: Mapping[str, FileState]) -> None:
    """Notes in the index at `path` how files are now, so that the next build need not read them. It may fail."""
    with contextlib.suppress(sqlite3.Error), contextlib.closing(_connect(path)) as connection:
        connection.executemany(_PUT_FILE, [_file_row(*each) for each in states.items()])
        connection.commit()


def digest_of_link(place: Path) -> str:
    """A digest of where a symbolic link leads and, when that is a file, of what is there."""
    digest = hashlib.sha256(b"link:" + os.fsencode(os.readlink(place)))
    with contextlib.suppress(OSError):
        digest.update(digest_bounded(place).encode())
    return digest.hexdigest()


def _open(path: Path, whole: bool) -> tuple[sqlite3.Connection, dict[str, FileState], dict[str, StepRecord]]:
    """The index, and what it holds if the `whole` is asked for; made anew when it is damaged or of another version."""
    with _telling_faults(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        for file in _files_of(path):
            drop_irregular(file)  # SQLite would wait for a pipe
            if file.is_dir():
                raise ToolError(f"{file} is a folder, and a file belongs there", hint="move it away")
        try:
            connection = _connect(path)
            return (connection, *_load(connection)) if whole else (connection, {}, {})
        except (sqlite3.DatabaseError, ValueError) as error:
            if isinstance(error, sqlite3.DatabaseError) and _is_refusal(error, path):
                raise
            return _make_anew(path), {}, {}


def _make_anew(path: Path) -> sqlite3.Connection:
    for leftover in _files_of(path):
        leftover.unlink(missing_ok=True)
    return _connect(path)


def _files_of(path: Path) -> tuple[Path, ...]:
    """The database, and what SQLite keeps beside it."""
    return (path, *(path.with_name(f"{path.name}{each}") for each in ("-journal", "-wal", "-shm")))


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, check_same_thread=False)
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version not in (0, _VERSION):
        connection.close()
        raise sqlite3.DatabaseError(f"index of version {version}")
    # Survives a killed process, which is what happens; after a power cut a damaged index is made anew.
    connection.execute("PRAGMA synchronous = OFF")
    # A file that each step makes and deletes has file systems look for inodes that were not deleted just now.
    connection.execute("PRAGMA journal_mode = PERSIST")
    connection.executescript(_TABLES)
    connection.execute(f"PRAGMA user_version = {_VERSION}")
    return connection


@collector.resting()
def _load(connection: sqlite3.Connection) -> tuple[dict[str, FileState], dict[str, StepRecord]]:
    """All rows that are what they were when they were written."""
    files = {row[0]: FileState._make(row[1:-1]) for row in connection.execute("SELECT * FROM files") if _is_sealed(row)}
    steps = {row[0]: _step_of(row) for row in connection.execute("SELECT * FROM steps") if _is_sealed(row)}
    return files, steps


def _step_of(row: Row) -> StepRecord:
    name, key, inputs, outputs, note = map(str, row[:-1])
    return StepRecord(name, key, json.loads(inputs), json.loads(outputs), note)


def _file_row(path: str, state: FileState) -> Row:
    return _sealed((path, *state))


def _step_row(record: StepRecord) -> Row:
    return _sealed((record.name, record.key, json.dumps(record.inputs), json.dumps(record.outputs), record.note))


def _sealed(values: Row) -> Row:
    return (*values, _seal_of(values))


def _is_sealed(row: Row) -> bool:
    return row[-1] == _seal_of(row[:-1])


def _seal_of(values: Row) -> str:
    text = _JOINED[len(values)] % values
    return hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=10).hexdigest()


def _is_refusal(error: sqlite3.DatabaseError, path: Path) -> bool:
    """Whether the system refuses what SQLite asks of it, so that a new index would fare no better."""
    if any(words in str(error) for words in _REFUSALS_OR_DAMAGE):
        return not _is_usable(path)
    return any(words in str(error) for words in _REFUSALS)


def _is_usable(path: Path) -> bool:
    """Whether the system reads and writes the file, and so what it holds is at fault."""
    try:
        with path.open("r+b") as file:
            return len(file.read()) == file.seek(0, os.SEEK_END)
    except OSError:
        return False


@contextlib.contextmanager
def _telling_faults(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.DatabaseError as error:
        hint = "free some space" if "full" in str(error) else "build in a copy that is writable"
        raise ToolError(f"cannot write {path}: {error}", hint=hint) from error
    except OSError as error:
        raise ToolError(f"cannot write {path}: {reason_of(error)}", hint="build in a copy that is writable") from error
