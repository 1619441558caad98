"""What the processes of a program say of their launches: a line of JSON for each thing, in a file of each process.

In: notes. Out: lines, and notes again. A line is written at once and whole, so that a process that is killed has said
all that it launched until then.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeAlias


@dataclass(frozen=True)
class Function:
    """A jit function where a spec may find it."""

    module: str
    file: str  # absolute
    name: str  # by which its module has it: `kernel`, `Class.kernel`; empty where nothing leads to it
    qualified: str
    gluon: bool = False

    @property
    def shown(self) -> str:
        return f"{Path(self.file).name}:{self.qualified}"


@dataclass(frozen=True)
class Tuned:
    """For what a tuner chose a launch, and what else it measured: constexprs and options of each. `sizes` are the
    integers of its key that a launch gives."""

    key: str
    others: tuple[tuple[Mapping[str, Any], Mapping[str, Any]], ...]
    sizes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Launch:
    """A variant that was launched; its values are as TOML has them. `resolved`: options that it did not name."""

    function: Function
    types: Mapping[str, str]
    constants: Mapping[str, Any]
    options: Mapping[str, Any]
    resolved: Mapping[str, Any]
    hints: tuple[str, ...]
    range32: tuple[str, ...]
    tuned: Tuned | None = None
    backend: str = ""


@dataclass(frozen=True)
class Sample:
    """The grid of one launch, with the integers that it may be computed from; `read`: those that its function read."""

    function: Function
    values: Mapping[str, int]
    grid: tuple[int, ...]
    read: tuple[str, ...] = ()


@dataclass(frozen=True)
class Unsaid:
    """What no spec can say, or what could not be recorded."""

    what: str
    reason: str


Note: TypeAlias = Launch | Sample | Unsaid
_KINDS: dict[str, Any] = {"launch": Launch, "sample": Sample, "unsaid": Unsaid}
_NAMES = {kind: name for name, kind in _KINDS.items()}


class Notebook:
    """The notes of this process; of a forked child, its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process = 0
        self._path = folder
        self._written: set[str] = set()

    def write(self, note: Note) -> None:
        """Writes a note that has not been written yet; without a word where the disk refuses."""
        text = json.dumps([_NAMES[type(note)], asdict(note)])
        if text in self._written:
            return
        self._written.add(text)
        if self._process != os.getpid():
            self._process = os.getpid()
            self._path = self._folder / f"{time.time_ns():020}-{self._process}.jsonl"
        try:
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            try:
                os.write(descriptor, f"{text}\n".encode())
            finally:
                os.close(descriptor)
        except OSError:
            pass  # the program is not to end for it: the recording is short of a line


def read_notes(folder: Path) -> Iterator[Note]:
    """All notes, process by process in the order in which they began to write."""
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_bytes().splitlines(keepends=True):
            if line.endswith(b"\n"):
                yield _read_note(*json.loads(line))


def _read_note(kind: str, fields: dict[str, Any]) -> Note:
    if "function" in fields:
        fields["function"] = Function(**fields["function"])
    if fields.get("tuned"):
        tuned = fields["tuned"]
        fields["tuned"] = Tuned(tuned["key"], tuple(map(tuple, tuned["others"])), tuned["sizes"])
    for name in ("hints", "range32", "grid", "read"):
        if name in fields:
            fields[name] = tuple(fields[name])
    note: Note = _KINDS[kind](**fields)
    return note
