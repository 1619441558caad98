"""What a plugin's Python code reads while it runs: files, folders, and variables of the environment.

In: code that runs in `Watch.watching`. Out: `Read` values with digests as of the moment of reading. Python raises an
audit event for every file that it opens and every folder that it lists; none for the environment, which is a recording
mapping meanwhile, nor for what is only asked of a file, where other functions stand in the places of those of `os`.
What native code and other programs read is not seen.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
import sysconfig
import tempfile
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from precast.reads import (
    Read,
    ReadKind,
    digest_directory,
    digest_file,
    digest_place,
    digest_variable,
    is_pseudo,
    refuse_bytes,
)

OWN_FOLDERS = ("build", "generated")  # of the project: what is made, not what is read
SYSTEM_FOLDERS = ("/etc", "/usr/lib", "/lib", "/usr/share")
INSTALLED_FOLDERS = frozenset(("site-packages", "dist-packages"))
LISTINGS = ("os.listdir", "os.scandir")
EVENTS = frozenset({"open", "import", "ctypes.dlopen", "sqlite3.connect", *LISTINGS})
CODE = (".py", ".pyc", ".so", ".pyd")
# Functions of `os` that raise no event, or one without the folder that a path is relative to.
QUESTIONS = ("stat", "lstat", "access", "readlink", "open")
SILENT = frozenset({"precast", "mlir", "triton"})  # what they ask is no question of a plugin's
PRIVATE_VARIABLES = ("TMPDIR", "HOME")  # a process's own: they say where its scratch folder is


@contextmanager
def hearing_questions(answer: Callable[..., Any]) -> Iterator[None]:
    """Has `answer(function, path, …)` answer in the place of each function that tells of files."""
    before = {name: getattr(os, name) for name in QUESTIONS}
    for name, function in before.items():
        setattr(os, name, functools.wraps(function)(functools.partial(answer, function)))
    try:
        yield
    finally:
        for name, function in before.items():
            setattr(os, name, function)


def asked_path(path: Any, folder: int | None) -> str | None:
    """The path that a question is about, which may be relative to an open folder; None for an open file."""
    if not isinstance(path, str | bytes | os.PathLike):
        return None
    name = os.fsdecode(path)
    return name if folder is None else os.path.join(path_of(folder), name)


def path_of(descriptor: int) -> str:
    """What a descriptor was opened by."""
    return os.readlink(f"/proc/self/fd/{descriptor}")


class Watch:
    """The reads of one plugin; names are relative to the folder `project` where they are inside. `own` are the names of
    its modules, wherever these are installed."""

    def __init__(self, project: Path, own: frozenset[str] = frozenset()) -> None:
        self._project, self._own = project.resolve(), own
        # Asked now: an audit hook must wait for no lock that what it hears may hold.
        self._scratch = tempfile.gettempdir()
        is_shared(self._project)
        self._found: dict[tuple[ReadKind, str], str] = {}
        self._busy = False

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Sees what the block reads, in this thread and others."""
        _install()
        _WATCHES.append(self)
        environments = [(each, type(each)) for each in (os.environ, os.environb)]
        for environment, kind in environments:
            if kind is os._Environ:
                environment.__class__ = _RecordingEnvironment
        try:
            with hearing_questions(self._answer):
                yield
        finally:
            for environment, kind in environments:
                environment.__class__ = kind
            _WATCHES.remove(self)

    @property
    def reads(self) -> tuple[Read, ...]:
        """What was read so far, sorted."""
        return tuple(sorted(Read(kind, name, digest) for (kind, name), digest in self._found.items()))

    def see_path(self, path: Path) -> None:
        """Remembers a file or folder that is about to be read; one of the interpreter's or the machine's is not."""
        if self._busy:
            return
        self._busy = True  # looking at the file is no reading of the plugin's
        try:
            path = source_of(Path(os.path.abspath(path)))
            if self._counts(path):
                refuse_bytes(str(path))
                is_folder = path.is_dir()
                name = path.relative_to(self._project) if path.is_relative_to(self._project) else path
                digest = digest_directory(path) if is_folder else digest_file(path)
                kind = ReadKind.DIRECTORY if is_folder else ReadKind.DATA
                self._found.setdefault((kind, name.as_posix()), digest)
        finally:
            self._busy = False

    def see_place(self, path: Path) -> None:
        """Remembers where a module was looked for, and what was asked about and is no file."""
        if self._counts(path):
            name = path.relative_to(self._project) if path.is_relative_to(self._project) else path
            self._found.setdefault((ReadKind.PLACE, name.as_posix()), digest_place(path))

    def _answer(self, function: Callable[..., Any], path: Any, *arguments: Any, **keywords: Any) -> Any:
        """What `function` answers, after the plugin's code was heard to ask."""
        folder = keywords.get("dir_fd")
        is_told = folder is None and function.__name__ == "open"
        if not is_told and not self._busy and self._is_asked_at(sys._getframe(1)):
            self._see_question(asked_path(path, folder))
        return function(path, *arguments, **keywords)

    def _is_asked_at(self, frame: types.FrameType | None) -> bool:
        """Whether the plugin's code asks at `frame`: the innermost that is not of Python's own library decides. Other
        packages look around for themselves: they count by their version."""
        while frame is not None:
            name, file = str(frame.f_globals.get("__name__", "")).partition(".")[0], Path(frame.f_code.co_filename)
            if not file.name.startswith("<frozen") and not is_standard_library(file):
                return name not in SILENT and (name in self._own or not _is_installed(file))
            frame = frame.f_back
        return False

    def _see_question(self, name: str | None) -> None:
        """Remembers what is asked about, of a file all that it holds: its size may be asked. Of the folders around the
        project nothing is."""
        path = Path(os.path.abspath(name or "/"))
        if self._project.is_relative_to(path):
            return
        if digest_place(path) == "file":
            self.see_path(path)
        else:
            self.see_place(path)

    def see_variable(self, name: str) -> None:
        """Remembers a variable of the environment that was asked for."""
        if not self._busy and name not in PRIVATE_VARIABLES:
            self._busy = True
            try:
                value = os.environb.get(os.fsencode(name))
            finally:
                self._busy = False
            known = {} if value is None else {name: os.fsdecode(value)}
            self._found.setdefault((ReadKind.ENVIRONMENT, name), digest_variable(name, known))

    def _counts(self, path: Path) -> bool:
        if path.is_relative_to(self._project):
            return path.relative_to(self._project).parts[:1] not in [(each,) for each in OWN_FOLDERS]
        return not path.is_relative_to(self._scratch) and not is_shared(path)


def source_of(path: Path) -> Path:
    """The source of a bytecode file; any other file itself."""
    if path.suffix == ".pyc" and path.parent.name == "__pycache__":
        with suppress(ValueError):  # a name that Python does not give
            return Path(importlib.util.source_from_cache(str(path)))
    return path


def is_installed_code(path: Path) -> bool:
    """Whether a file is a module of an installed package."""
    return path.suffix in CODE and _is_installed(path)


def is_shared(path: Path) -> bool:
    """Whether a file is in keys by other ways, or belongs to the machine: the interpreter, the compilers, Precast."""
    if any(path.is_relative_to(each) for each in _package_folders(("precast", "mlir", "triton"))):
        return True
    if is_pseudo(str(path)):
        return True
    return not _is_installed(path) and any(path.is_relative_to(each) for each in _system_folders())


def is_standard_library(path: Path) -> bool:
    """Whether a file is one of Python's own modules."""
    return path.suffix in CODE and not _is_installed(path) and any(map(path.is_relative_to, _library_folders()))


def _is_installed(path: Path) -> bool:
    return not INSTALLED_FOLDERS.isdisjoint(path.parts)


@functools.cache
def _package_folders(packages: tuple[str, ...]) -> tuple[str, ...]:
    specs = [importlib.util.find_spec(name) for name in packages]
    return tuple(each for spec in specs if spec for each in spec.submodule_search_locations or ())


@functools.cache
def _system_folders() -> tuple[str, ...]:
    return (*SYSTEM_FOLDERS, *_library_folders())


@functools.cache
def _library_folders() -> tuple[str, ...]:
    return (sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"))


class _RecordingEnvironment(os._Environ[Any]):
    """`os.environ` and `os.environb` while a plugin's code runs: the same objects, which tell what is asked of them."""

    def __getitem__(self, name: Any) -> Any:
        if isinstance(name, str | bytes):  # Python itself asks for either, to learn which kind there is
            for watch in _WATCHES:
                watch.see_variable(os.fsdecode(name))
        return super().__getitem__(name)


# An audit hook cannot be taken away again: there is one for the process, and it tells whoever watches at the time.
_WATCHES: list[Watch] = []


@functools.cache
def _install() -> None:
    sys.addaudithook(_hear)


def _hear(event: str, arguments: tuple[Any, ...]) -> None:
    if _WATCHES and event in EVENTS:
        path = _read_path(event, arguments)
        if path is not None:
            for watch in _WATCHES:
                watch.see_path(Path(path))


def _read_path(event: str, arguments: tuple[Any, ...]) -> str | None:
    """The path that an audit event says is about to be read; None for a descriptor, or what is only written."""
    caller = sys._getframe(1).f_back
    if event in LISTINGS and caller and caller.f_code.co_filename.startswith("<frozen importlib"):
        return None  # the import system looks around; what it then opens counts
    path = arguments[1] if event == "import" else arguments[0]
    if event == "open":
        _, mode, flags = arguments
        written = mode[:1] in "wxa" if mode else flags & os.O_ACCMODE == os.O_WRONLY
        path = None if written else path
    if path is None:
        path = "." if event in LISTINGS else None
    if not isinstance(path, str | bytes | os.PathLike):
        return None
    text = os.fsdecode(path)
    return (database_file(text) if event == "sqlite3.connect" else text) or None


def database_file(name: str) -> str:
    """The file of an SQLite database by the name or address that it is opened with; empty for one in memory."""
    path = unquote(name.removeprefix("file:").partition("?")[0]) if name.startswith("file:") else name
    return "" if path == ":memory:" else path
