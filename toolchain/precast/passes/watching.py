"""What a plugin's Python code reads while it runs: files, folders, and variables of the environment.

In: code that runs in `Watch.watching`. Out: `Read` values with digests as of the moment of reading. Python raises an
audit event for every file that it opens and every folder that it lists, and none for the environment, which is a
recording mapping meanwhile. What native code and other programs read is not seen.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from precast.reads import Read, ReadKind, digest_directory, digest_file, digest_place, digest_variable

OWN_FOLDERS = ("build", "generated")  # of the project: what is made, not what is read
SYSTEM_FOLDERS = ("/proc", "/dev", "/sys", "/etc", "/usr/lib", "/lib", "/usr/share")
INSTALLED_FOLDERS = frozenset(("site-packages", "dist-packages"))
LISTINGS = ("os.listdir", "os.scandir")
EVENTS = frozenset({"open", "import", "ctypes.dlopen", "sqlite3.connect", *LISTINGS})
CODE = (".py", ".pyc", ".so", ".pyd")
PRIVATE_VARIABLES = ("TMPDIR", "HOME")  # a process's own: they say where its scratch folder is


class Watch:
    """The reads of one plugin; names are relative to the folder `project` where they are inside."""

    def __init__(self, project: Path) -> None:
        self._project = project.resolve()
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
                is_folder = path.is_dir()
                name = path.relative_to(self._project) if path.is_relative_to(self._project) else path
                digest = digest_directory(path) if is_folder else digest_file(path)
                kind = ReadKind.DIRECTORY if is_folder else ReadKind.DATA
                self._found.setdefault((kind, name.as_posix()), digest)
        finally:
            self._busy = False

    def see_place(self, path: Path) -> None:
        """Remembers where a module was looked for."""
        if self._counts(path):
            name = path.relative_to(self._project) if path.is_relative_to(self._project) else path
            self._found.setdefault((ReadKind.PLACE, name.as_posix()), digest_place(path))

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
