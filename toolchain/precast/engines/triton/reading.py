"""What a kernel's module reads while it is imported: files that it runs, opens, lists and asks about, and variables.

In: Python's audit events, the loader of sources, a mapping in the place of `os.environ`; functions in the places of
those of `os` that tell of files and raise no event. Out: `Read` values. What the import system, Triton and this
toolchain read for themselves does not count; nor do the machine's own pseudo files and the worker's private folders,
whose content is never the same.
"""

from __future__ import annotations

import contextlib
import os
import sys
import types
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any

from precast.passes.watching import (
    INSTALLED_FOLDERS,
    asked_path,
    database_file,
    hearing_questions,
    is_installed_code,
    is_shared,
    is_standard_library,
    path_of,
    source_of,
)
from precast.reads import (
    ABSENT,
    NO_PATHS,
    Read,
    ReadKind,
    digest_directory,
    digest_file,
    digest_package,
    digest_place,
    digest_variable,
    is_pseudo,
    places_of,
    refuse_bytes,
)
from precast.store import digest_bytes

PRIVATE = frozenset({"HOME", "TMPDIR"})  # a worker's own folder: another one each time
SILENT = frozenset({"triton", "precast", "traceback", "warnings"})
# What reads on behalf of its caller.
CARRIERS = frozenset({
    "os", "io", "pathlib", "codecs", "tokenize", "glob", "json", "_collections_abc", "genericpath", "linecache",
    "inspect", "sqlite3", "importlib", "_frozen_importlib", "_frozen_importlib_external", "zipimport",
})  # fmt: skip
IMPORT_SYSTEM = ("<frozen importlib", "<frozen zipimport")
LISTINGS = ("os.listdir", "os.scandir")
EVENTS = {
    "open": ReadKind.DATA,
    "ctypes.dlopen": ReadKind.DATA,
    "sqlite3.connect": ReadKind.DATA,
    "os.listdir": ReadKind.DIRECTORY,
    "os.scandir": ReadKind.DIRECTORY,
}


class NotTextError(Exception):
    """A name of a file that is no text; no `OSError`, for that is an answer where code asks whether a file is there."""


def _refuse_bytes(path: str) -> None:
    try:
        refuse_bytes(path)
    except OSError as error:
        raise NotTextError(f"{error.strerror}: {error.filename!r}") from None


class Recording:
    """What the modules of one loading have read so far, and what they changed of the environment."""

    def __init__(self, project: Path, private: Sequence[str]) -> None:
        self._project = project
        self._private = tuple(private)
        self._found: dict[tuple[ReadKind, str], str] = {}
        self._states: dict[str, FileState] = {}
        self.modules: set[str] = set()  # names of the modules that were executed
        self.packages: set[str] = set()  # top-level names that they import
        self.changed: dict[str, str | None] = {}  # variables that the modules set, or removed

    def note_source(self, path: str, data: bytes) -> None:
        """A file that is executed, with the bytes that are."""
        self._states[path] = file_state(path)
        self._found[(ReadKind.SOURCE, path)] = digest_bytes(data)

    def note(self, kind: ReadKind, path: str) -> None:
        """A file that is opened, or a folder that is listed, about now."""
        path = os.path.abspath(path)
        if (kind, path) in self._found or is_pseudo(path) or self._is_private(path):
            return
        _refuse_bytes(path)
        self._states[path] = file_state(path)
        digest = digest_directory(Path(path)) if kind is ReadKind.DIRECTORY else digest_file(Path(path))
        self._found[(kind, path)] = digest

    def note_places(self, folder: str, name: str) -> None:
        """Where a module was looked for that is not in a folder."""
        for place in map(os.fspath, places_of(Path(os.path.abspath(folder)), name)):
            if (ReadKind.PLACE, place) not in self._found:
                self._states[place] = file_state(place)
                self._found[(ReadKind.PLACE, place)] = digest_place(place)

    def note_question(self, path: str) -> None:
        """What is asked about, of a file all that it holds: its size may be asked. Folders around the project are."""
        path = os.path.abspath(path)
        if is_pseudo(path) or self._is_private(path) or self._project.is_relative_to(path):
            return
        if is_standard_library(Path(path)):  # in every key
            return
        _refuse_bytes(path)
        place = digest_place(path)
        if place == "file":
            self.note(ReadKind.DATA, path)
        elif (ReadKind.PLACE, path) not in self._found:
            self._found[(ReadKind.PLACE, path)] = place
            if place == ABSENT:
                self._states[path] = file_state(path)

    def note_variable(self, name: str, environment: Mapping[str, str]) -> None:
        """A variable that is asked for, be it not there. What the modules set themselves they do not read."""
        if name not in PRIVATE and name not in self.changed:
            self._found.setdefault((ReadKind.ENVIRONMENT, name), digest_variable(name, environment))

    def note_package(self, name: str) -> None:
        """A package of others that is imported, be it not there."""
        self._found.setdefault((ReadKind.PACKAGE, name), digest_package(name))

    def _is_private(self, path: str) -> bool:
        return not self._is_inside(path) and any(Path(path).is_relative_to(each) for each in self._private)

    def _is_inside(self, path: str) -> bool:
        return Path(path).is_relative_to(self._project)

    def reads(self) -> tuple[Read, ...]:
        """All that was read, sorted. A source that was also opened counts once."""
        ran = {name for kind, name in self._found if kind is ReadKind.SOURCE}
        kept = [key for key in self._found if key[0] is not ReadKind.DATA or key[1] not in ran]
        return tuple(sorted(Read(kind, self._show(kind, name), self._found[kind, name]) for kind, name in kept))

    def _show(self, kind: ReadKind, name: str) -> str:
        if kind in NO_PATHS or not self._is_inside(name):
            return name
        return Path(name).relative_to(self._project).as_posix()

    def is_current(self) -> bool:
        """Whether no file or folder has changed since it was read."""
        return all(file_state(path) == state for path, state in self._states.items())


FileState = tuple[int, int]


def file_state(path: str) -> FileState:
    """What a file looks like: mtime in ns, size; zeros when it is gone."""
    try:
        status = os.stat(path)
    except OSError:
        return (0, 0)
    return (status.st_mtime_ns, status.st_size)


class ReadRecorder:
    """Hears what code reads; one for a process, since Python keeps an audit hook for ever."""

    def __init__(self) -> None:
        self._recording: Recording | None = None
        is_shared(Path("/"))  # asked now: what it looks for must not be looked for while it is heard
        sys.addaudithook(self._hear)

    @contextlib.contextmanager
    def watching(self, recording: Recording) -> Iterator[None]:
        """Records what code reads in the block. What it changes of the environment holds in such blocks alone."""
        environment = os.environ
        before = dict(environment)
        _change(environment, recording.changed)
        os.environ = RecordedEnvironment(environment, recording)  # type: ignore[assignment]  # noqa: B003
        self._recording = recording
        try:
            with hearing_questions(self._answer):
                yield
        finally:
            self._recording = None
            os.environ = environment  # noqa: B003
            after = dict(environment)
            recording.changed = {
                name: after.get(name) for name in {**before, **after} if before.get(name) != after.get(name)
            }
            _change(environment, {name: before.get(name) for name in recording.changed})

    def _answer(self, function: Callable[..., Any], path: Any, *arguments: Any, **keywords: Any) -> Any:
        """What `function` answers, after code for kernels was heard to ask."""
        recording, folder = self._recording, keywords.get("dir_fd")
        is_told = folder is None and function.__name__ == "open"
        if recording is None or is_told or not is_asked_for_kernels(sys._getframe(1), recording):
            return function(path, *arguments, **keywords)
        self._recording = None
        try:
            _note_question(recording, path, folder)
            return function(path, *arguments, **keywords)
        finally:
            self._recording = recording

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Python's audit hook. Our own reading of what is recorded is none of the user's."""
        recording = self._recording
        if recording is None or event not in EVENTS or not arguments:
            return
        reader = sys._getframe(1)  # an event of its own
        if reader.f_code is ReadRecorder._answer.__code__ and reader.f_back:
            reader = reader.f_back
        if is_silent(reader, event):
            return
        path = _read_path(event, arguments, _is_import_system(reader))
        if path is None:
            return
        self._recording = None
        try:
            recording.note(EVENTS[event], path)
        finally:
            self._recording = recording


def _note_question(recording: Recording, path: Any, folder: int | None) -> None:
    if name := asked_path(path, folder):
        recording.note_question(name)


def _change(environment: MutableMapping[str, str], changed: Mapping[str, str | None]) -> None:
    for name, value in changed.items():
        environment.pop(name, None) if value is None else environment.update({name: value})


def _is_reading(flags: int) -> bool:
    return (flags & os.O_ACCMODE) != os.O_WRONLY


def _read_path(event: str, arguments: tuple[Any, ...], is_import: bool) -> str | None:
    """The path that an event says is about to be read; None for a descriptor, what is only written or in memory, and
    for modules that are in keys by other ways."""
    given = "." if arguments[0] is None else arguments[0]
    if event in LISTINGS and isinstance(given, int):
        given = path_of(given)
    if not isinstance(given, str | bytes | os.PathLike) or (event == "open" and not _is_reading(arguments[2])):
        return None
    path = os.fsdecode(given)
    if event == "sqlite3.connect":
        path = database_file(path)
    if not is_import:  # who shows code of Python's own reads nothing that is not in every key
        return None if not path or is_standard_library(Path(path)) else path
    code = source_of(Path(path))
    return None if is_installed_code(code) or is_shared(code) else str(code)


def is_asked_for_kernels(frame: types.FrameType | None, recording: Recording) -> bool:
    """Whether code for kernels asks at `frame`: the innermost that is not of Python's own library decides. Packages
    that are imported otherwise look around for themselves: they count by their version."""
    while frame is not None:
        name, file = str(frame.f_globals.get("__name__", "")), Path(frame.f_code.co_filename)
        if not file.name.startswith("<frozen") and not is_standard_library(file):
            is_installed = not INSTALLED_FOLDERS.isdisjoint(file.parts)
            return name.partition(".")[0] not in SILENT and (name in recording.modules or not is_installed)
        frame = frame.f_back
    return False


def is_silent(frame: types.FrameType | None, event: str = "") -> bool:
    """Whether what reads at `frame` is not the user's code: the innermost module that is no mere carrier decides.

    What the import system lists, it only looks around in.
    """
    while frame is not None:
        name = str(frame.f_globals.get("__name__", ""))
        if event in LISTINGS and (_is_import_system(frame) or name.startswith("importlib.metadata")):
            return True
        if name.partition(".")[0] not in CARRIERS:
            return name.partition(".")[0] in SILENT
        frame = frame.f_back
    return True


def _is_import_system(frame: types.FrameType) -> bool:
    return frame.f_code.co_filename.startswith(IMPORT_SYSTEM)


class RecordedEnvironment(MutableMapping[str, str]):
    """`os.environ` for the time of a load: tells which variables are asked for."""

    def __init__(self, environment: os._Environ[str], recording: Recording) -> None:
        self._environment = environment
        self._recording = recording

    def __getitem__(self, name: str) -> str:
        if isinstance(name, str) and not is_silent(sys._getframe(1)):
            self._recording.note_variable(name, self._environment)
        return self._environment[name]

    def __setitem__(self, name: str, value: str) -> None:
        self._environment[name] = value

    def __delitem__(self, name: str) -> None:
        del self._environment[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._environment)

    def __len__(self) -> int:
        return len(self._environment)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._environment, name)  # `encodekey` and other parts of Python's own class

    def copy(self) -> dict[str, str]:
        return dict(self)

    def __or__(self, other: Any) -> dict[str, str]:
        return dict(self) | dict(other)

    def __ror__(self, other: Any) -> dict[str, str]:
        return dict(other) | dict(self)
