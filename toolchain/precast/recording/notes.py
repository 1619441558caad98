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
    integers of its key that a launch gives, `axes` what its configs set to other values."""

    key: str
    others: tuple[tuple[Mapping[str, Any], Mapping[str, Any]], ...]
    sizes: Mapping[str, int] = field(default_factory=dict)
    axes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Launch:
    """A variant that was launched; its values are as TOML has them. `resolved`: options that it did not name.
    `assumed`: the target of the device that was not there when it was."""

    function: Function
    types: Mapping[str, str]
    constants: Mapping[str, Any]
    options: Mapping[str, Any]
    resolved: Mapping[str, Any]
    hints: tuple[str, ...]
    range32: tuple[str, ...]
    tuned: Tuned | None = None
    backend: str = ""
    assumed: str = ""


@dataclass(frozen=True)
class Sample:
    """The grid of one launch, with the integers that it may be computed from; `read`: those that its function read;
    `types`: those of its arguments."""

    function: Function
    values: Mapping[str, int]
    grid: tuple[int, ...]
    read: tuple[str, ...] = ()
    types: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Problem:
    """What launches of a variant were given that tuning needs: integers, reals and truths by argument, of tensors how
    many elements they reach over, of descriptors the tensor's shape. `unknown` are arguments that say neither.

    `number` is its own in a process, `count` how many such launches there were in it until then.
    """

    launch: Launch
    numbers: Mapping[str, int | float | bool]
    shapes: Mapping[str, tuple[int, ...]]
    telling: tuple[str, ...]  # the integers that tell one from another
    unknown: tuple[str, ...] = ()
    number: int = 0
    count: int = 1


@dataclass(frozen=True)
class Unsaid:
    """What no spec can say, or what could not be recorded."""

    what: str
    reason: str


Note: TypeAlias = Launch | Sample | Problem | Unsaid
_KINDS: dict[str, Any] = {"launch": Launch, "sample": Sample, "problem": Problem, "unsaid": Unsaid}
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
        if self._process != os.getpid():
            self._process = os.getpid()
            self._written.clear()
            self._path = self._folder / f"{time.time_ns():020}-{self._process}.jsonl"
        if text in self._written:
            return
        self._written.add(text)
        try:
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            try:
                os.write(descriptor, f"{text}\n".encode())
            finally:
                os.close(descriptor)
        except OSError:
            pass  # the program is not to end for it: the recording is short of a line


def read_notes(folder: Path) -> Iterator[Note]:
    """All notes, process by process in the order in which they began to write. Of what a process counted, how much it
    was in the end."""
    for path in sorted(folder.glob("*.jsonl")):
        counted: dict[int, Problem] = {}
        for line in path.read_bytes().splitlines(keepends=True):
            if line.endswith(b"\n"):
                note = _read_note(*json.loads(line))
                if isinstance(note, Problem):
                    counted[note.number] = note
                else:
                    yield note
        yield from counted.values()


def _read_note(kind: str, fields: dict[str, Any]) -> Note:
    if "launch" in fields:
        fields["launch"] = _read_note("launch", fields["launch"])
        fields["shapes"] = {name: tuple(shape) for name, shape in fields["shapes"].items()}
    if "function" in fields:
        fields["function"] = Function(**fields["function"])
    if fields.get("tuned"):
        tuned = fields["tuned"]
        others, axes = tuple(map(tuple, tuned["others"])), tuple(tuned["axes"])
        fields["tuned"] = Tuned(tuned["key"], others, tuned["sizes"], axes)
    for name in ("hints", "range32", "grid", "read", "telling", "unknown"):
        if name in fields:
            fields[name] = tuple(fields[name])
    note: Note = _KINDS[kind](**fields)
    return note
