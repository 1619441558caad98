"""The snapshot: all that a finished build rested on and left, in one file that is read at once.

In: the files of a build, the plan's other reads, who asked. Out: whether all of that is as it was, asked of the system
without a plan, and without SCons, Triton or most of Precast. It can only say that nothing moved; whatever else there
is to say, a new plan and the index say. Sealed under its own digest; losing it costs time and nothing else.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path

from precast.bounded import MOST_FILE_BYTES, read_bounded
from precast.digest import FileState, digest_text, look_at, seal, unseal
from precast.errors import PrecastError
from precast.graph.request import Request
from precast.graph.unfinished import holds_unfinished
from precast.layout import INDEX_FILE, SNAPSHOTS
from precast.reads import Read, digest_now, parse_read
from precast.store import write_file

_FORMAT = 2
_COLUMNS = ("Q", "q", "q", "q")  # inode, size, mtime, ctime
_DIGEST_BYTES = 32


class FileTable:
    """Files by folder (which ends in `/`), with their states in columns: thousands are read and compared at once."""

    def __init__(self, folders: list[tuple[str, list[str]]], columns: list[array[int]], digests: bytearray) -> None:
        self.folders = folders
        self._columns = columns
        self._digests = digests

    @staticmethod
    def of(states: Mapping[str, FileState]) -> FileTable:
        """The table of files by path."""
        folders: dict[str, list[str]] = {}
        for path in states:
            cut = path.rfind("/") + 1
            folders.setdefault(path[:cut], []).append(path[cut:])
        found = [states[folder + name] for folder, names in folders.items() for name in names]
        rows = zip(*((each.inode, each.size, each.mtime, each.ctime) for each in found), strict=True)
        columns = [array(kind, column) for kind, column in zip(_COLUMNS, rows, strict=bool(found))]
        digests = bytearray(bytes.fromhex("".join(each.digest for each in found)))
        return FileTable([*folders.items()], columns or [array(kind) for kind in _COLUMNS], digests)

    @property
    def data(self) -> bytes:
        return b"".join(column.tobytes() for column in self._columns) + self._digests

    @staticmethod
    def parse(folders: list[tuple[str, list[str]]], data: bytes) -> FileTable:
        """The table of the names in `folders` and of what `data` was of it."""
        count = sum(len(names) for _, names in folders)
        columns, position = [], 0
        for kind in _COLUMNS:
            column = array(kind)
            end = position + count * column.itemsize
            column.frombytes(data[position:end])
            columns.append(column)
            position = end
        return FileTable(folders, columns, bytearray(data[position : position + count * _DIGEST_BYTES]))

    def paths(self) -> Iterator[str]:
        return (folder + name for folder, names in self.folders for name in names)

    def select(self, wanted: AbstractSet[str]) -> dict[str, FileState]:
        """The states of some of the files."""
        inodes, sizes, mtimes, ctimes = self._columns
        return {
            path: FileState(sizes[each], mtimes[each], ctimes[each], inodes[each], self._digest(each))
            for each, path in self._find(wanted)
        }

    def _find(self, wanted: Iterable[str]) -> Iterator[tuple[int, str]]:
        """Number and path of those of the files that are here; folders without any cost next to nothing."""
        names_of: dict[str, set[str]] = {}
        for path in wanted:
            cut = path.rfind("/") + 1
            names_of.setdefault(path[:cut], set()).add(path[cut:])
        first = 0
        for folder, names in self.folders:
            found = names_of.get(folder)
            if found is not None:
                yield from ((first + number, folder + name) for number, name in enumerate(names) if name in found)
            first += len(names)

    def replaced(self, gone: AbstractSet[str], states: Mapping[str, FileState]) -> FileTable:
        """The table without the files that are `gone`, and with others, which may be there already."""
        drop = [each for each, _ in self._find({*gone, *states})]
        more = FileTable.of(states)
        folders, first, dropped = [], 0, frozenset(drop)
        for folder, names in self.folders:
            after = first + len(names)
            if not dropped.isdisjoint(range(first, after)):
                names = [name for number, name in enumerate(names, first) if number not in dropped]
            folders += [(folder, names)] if names else []
            first = after
        columns = [array(column.typecode, column) for column in self._columns]
        digests = bytearray(self._digests)
        for start, end in reversed([*_spans(drop)]):
            for column in columns:
                del column[start:end]
            del digests[start * _DIGEST_BYTES : end * _DIGEST_BYTES]
        joined = [one + other for one, other in zip(columns, more._columns, strict=True)]
        return FileTable([*folders, *more.folders], joined, digests + more._digests)

    def _digest(self, number: int) -> str:
        return self._digests[number * _DIGEST_BYTES : (number + 1) * _DIGEST_BYTES].hex()

    def moved(self, root: str, ask: Callable[[str], os.stat_result]) -> Iterator[tuple[int, str]]:
        """Number and path of each file of which the system says something else; `OSError` when one is not there.

        The system is asked for one file after another: listing folders for that takes twice the time.
        """
        inodes, sizes, mtimes, ctimes = map(iter, self._columns)
        first = 0
        for folder, names in self.folders:
            prefix = folder if folder.startswith("/") else f"{root}/{folder}"
            for name, inode, size, mtime, ctime in zip(names, inodes, sizes, mtimes, ctimes, strict=False):
                now = ask(prefix + name)
                if now.st_ctime_ns != ctime or now.st_mtime_ns != mtime or now.st_size != size or now.st_ino != inode:
                    yield first + names.index(name), prefix + name
            first += len(names)

    def look(self, number: int, place: str) -> FileState | None:
        """The state of a file now, which the table then has, too; None when its content is not what it was."""
        state = look_at(place)
        if state.digest != self._digest(number):
            return None
        for column, value in zip(self._columns, (state.inode, state.size, state.mtime, state.ctime), strict=True):
            column[number] = value
        return state


def _spans(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Start and end of each run in sorted numbers."""
    start = end = -1
    for number in numbers:
        if number != end:
            if start >= 0:
                yield start, end
            start = number
        end = number + 1
    if start >= 0:
        yield start, end


@dataclass(frozen=True)
class Snapshot:
    """A finished build. Paths are relative to the project's folder, or absolute."""

    asker: str  # see `describe_asker`
    units: int
    release: str
    outputs: FileTable  # as they are themselves
    sources: FileTable  # as what they lead to
    reads: tuple[Read, ...]  # of other kinds, and links among the outputs
    plan: str = ""  # the digest of what is kept of the plan; "" where nothing is


@dataclass(frozen=True)
class Found:
    """What is known of an earlier build of the same: all that it left is as it was, and so is what it rested on, but
    for the files `moved`, named as in its table of sources."""

    snapshot: Snapshot
    moved: tuple[str, ...]
    stamp: tuple[int, ...]  # of the snapshot's file, by which one of a later build is told from it


def snapshot_path(request: Request) -> str:
    """Where the snapshot of what was asked for is kept."""
    return f"{SNAPSHOTS}/{digest_text(request.part)[:12] if request.part else 'all'}"


def describe_asker(root: Path, request: Request) -> str:
    """All that decides about a plan and is no file: the interpreter, where it finds modules, project and selection."""
    here = os.getcwd()
    path = [each for each in sys.path if each and each != here]
    return json.dumps([_FORMAT, sys.version, sys.prefix, path, os.environ.get("PYTHONPATH"), str(root), request.part])


def write_snapshot(path: Path, snapshot: Snapshot) -> None:
    """Keeps a snapshot. That it cannot be written is no error."""
    tables = (snapshot.outputs, snapshot.sources)
    head = {
        "asker": snapshot.asker,
        "units": snapshot.units,
        "release": snapshot.release,
        "reads": [(each.place, each.digest) for each in snapshot.reads],
        "plan": snapshot.plan,
        "folders": [each.folders for each in tables],
    }
    with contextlib.suppress(PrecastError):
        write_file(path, seal(b"\n".join((json.dumps(head).encode(), *_numbered(tables)))))


def _numbered(tables: tuple[FileTable, ...]) -> Iterator[bytes]:
    """How long the tables are, then the tables."""
    parts = [each.data for each in tables]
    yield " ".join(str(len(each)) for each in parts).encode()
    yield b"".join(parts)


def read_snapshot(path: Path, asker: str) -> Snapshot | None:
    """The snapshot that `asker` left; None when there is none, or it is damaged."""
    try:
        data = unseal(read_bounded(path, MOST_FILE_BYTES))
    except OSError:
        return None
    if data is None:
        return None
    head_line, lengths, body = data.split(b"\n", 2)
    head = json.loads(head_line)
    if head["asker"] != asker:
        return None
    first = int(lengths.split()[0])
    outputs, sources = head["folders"]
    return Snapshot(
        asker,
        head["units"],
        head["release"],
        FileTable.parse(outputs, body[:first]),
        FileTable.parse(sources, body[first:]),
        tuple(parse_read(place, digest) for place, digest in head["reads"]),
        head["plan"],
    )


def stamp_of(path: Path) -> tuple[int, ...]:
    """What tells a file from others that take its place; nothing where there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return ()
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def find_earlier(folder: Path, request: Request) -> Found | None:
    """The earlier build of the same of which nothing but sources has moved since; None when something else has, or
    there is none. To be asked by who holds the lock of the build folder."""
    root = folder.resolve()
    path = root / snapshot_path(request)
    if holds_unfinished(root):  # which the next build is to remove
        return None
    snapshot = read_snapshot(path, describe_asker(root, request))
    if snapshot is None or not all(digest_now(each, root, os.environ) == each.digest for each in snapshot.reads):
        return None
    touched: dict[str, FileState] = {}
    moved: list[str] = []
    for table, ask in ((snapshot.sources, os.stat), (snapshot.outputs, os.lstat)):
        try:
            for number, place in table.moved(str(root), ask):
                state = None if ask is os.lstat and os.path.islink(place) else table.look(number, place)
                name = place.removeprefix(f"{root}/")
                if state is not None:
                    touched[name] = state
                elif ask is os.stat:
                    moved.append(name)
                else:
                    return None
        except (OSError, ValueError):
            return None
    if touched:
        from precast.graph.index import remember_files  # SQLite, which is not needed where nothing was touched

        write_snapshot(path, snapshot)
        remember_files(root / INDEX_FILE, touched)
    return Found(snapshot, tuple(moved), stamp_of(path))
