"""Libraries through the shared cache: what a C compiler and a linker made on one machine, another takes.

In: a step with the command lines that make it. Out: its files in place and recorded, or an entry in the cache. The key
of an entry is the digest of the step's own key, the commands, their environment and the compiler with all of its files;
nothing in what they make tells where it was made. A compiler whose files cannot be told takes and gives nothing.
"""

from __future__ import annotations

import contextlib
import json
import shlex
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from precast.cache.entries import Entry
from precast.graph.compiler_files import CompilerFiles, find_compiler_files
from precast.graph.running import note_made
from precast.graph.session import Session
from precast.graph.sharing import Sharing
from precast.graph.steps import Step
from precast.keyed import Keyed
from precast.launch.sources import system_headers
from precast.store import write_file

FORMAT = 1
TEMPORARY = "TMPDIR"  # decides nothing
_FILES = ("-o", "-c")  # what stands before files in a command line without any


@dataclass(frozen=True)
class LinkedInputs(Keyed):
    """All that decides what a compiler and a linker make. In `files` each has its digest."""

    step: str  # the step's key, with that of each file that it names
    commands: tuple[str, ...]
    outputs: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    said: str
    files: tuple[tuple[str, str], ...]
    format: int = FORMAT


@dataclass(frozen=True)
class Linked:
    """A step whose outputs a C compiler or a linker makes. `commands` are without the names of files, which the step
    says; `outputs` are all that is made, `tools` the programs that a record of it names."""

    step: Step
    commands: tuple[str, ...]
    outputs: tuple[str, ...]
    tools: tuple[str, ...]


class LinkedSharing:
    """What a build's cache has to do with libraries. `compile` and `link` are the command lines of the C builders."""

    def __init__(
        self, session: Session, sharing: Sharing, compile: str, link: str, environment: Mapping[str, str]
    ) -> None:
        self._session = session
        self._cache = sharing.cache
        self._compile, self._link = (_words(text) for text in (compile, link))
        self._environment = {name: str(value) for name, value in environment.items()}
        self._asking = threading.Lock()

    def prepare(self) -> None:
        """Has the compiler asked for its files, which takes a while in which something else can be done."""

        def ask() -> None:
            with contextlib.suppress(Exception):  # told where it is needed
                self._compiler  # noqa: B018

        threading.Thread(target=ask, name="precast-compiler", daemon=True).start()

    @property
    def _compiler(self) -> CompilerFiles | None:
        with self._asking:
            return self._found_compiler

    @cached_property
    def _found_compiler(self) -> CompilerFiles | None:
        folder = Path(self._session.scratch.name)
        return find_compiler_files(self._compile, self._link, system_headers(), self._environment, folder)

    @property
    def may_take(self) -> bool:
        """Whether it is worth asking."""
        return self._cache.reads and self._compiler is not None

    def key(self, linked: Linked) -> str:
        """The key of what the cache may have of a step; "" where that cannot be told."""
        compiler, session = self._compiler, self._session
        step = session.key_of(linked.step)
        if compiler is None or not step:
            return ""
        digests = [(path, session.index.digest(path) or "") for path in compiler.paths]
        environment = sorted(each for each in self._environment.items() if each[0] != TEMPORARY)
        return LinkedInputs(
            step, linked.commands, linked.outputs, tuple(environment), compiler.said, tuple(digests)
        ).key

    def take(self, linked: Linked) -> bool:
        """Puts what the cache has of a step in its place, and records it; whether it has that."""
        key = self.key(linked) if self._cache.reads else ""
        entry = self._cache.ask(lambda: self._cache.get(key)) if key else None
        if entry is None:
            return False
        if _read_names(entry) != list(linked.outputs) or len(entry.blobs) != len(linked.outputs):
            self._cache.tell_damaged(f"ac/{key}")
            return False
        session, step = self._session, linked.step
        with session.running(step):
            begun = session.key_of(step)
            for path, data in zip(linked.outputs, entry.blobs, strict=True):
                write_file(session.folder / path, data, mode=0o755 if path.endswith(".so") else 0o644)
            note_made(session, step, begun, linked.outputs, linked.tools)
            session.count(step, "reused")
        return True

    def give(self, linked: Linked, key: str) -> None:
        """Has the cache keep what was made of a step that had `key` when it began."""
        if key and self._cache.writes and self.key(linked) == key:
            folder = self._session.folder
            blobs = tuple((folder / path).read_bytes() for path in linked.outputs)
            entry = Entry(json.dumps(linked.outputs).encode(), blobs)
            self._cache.give(lambda: (key, entry, True))


def _read_names(entry: Entry) -> object:
    """What an entry says that its blobs are; None where it says nothing."""
    try:
        return json.loads(entry.value)
    except (ValueError, RecursionError):
        return None


def _words(text: str) -> tuple[str, ...]:
    return tuple(word for word in shlex.split(text) if word not in _FILES)
