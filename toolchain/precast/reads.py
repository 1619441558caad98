"""What was read while something was made: values, and what the same read would find now.

In: what a worker saw of a kernel's module, what a plan asked of the machine. Out: `Read` values, and their digests, by
which a build knows whether one of them would come out differently.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from importlib.machinery import EXTENSION_SUFFIXES, SOURCE_SUFFIXES, PathFinder
from operator import attrgetter
from pathlib import Path

from precast.bounded import digest_bounded
from precast.digest import FileState, digest_text
from precast.target import read_native_level

ABSENT = ""  # the digest of what is not there
# What processes that run a user's code take over from the machine; the rest of their environment is fixed or set.
INHERITED = ("PATH", "LD_LIBRARY_PATH", "SYSTEMROOT")
PASSED_OVER = frozenset({"__pycache__"})  # what comes and goes in a folder without meaning


class ReadKind(str, Enum):
    """How it was read: a source was executed, data opened, a directory's names listed, a variable asked for. The
    others are what plans ask beyond that."""

    SOURCE = "source"
    DATA = "data"
    DIRECTORY = "directory"
    ENVIRONMENT = "environment"
    PLACE = "place"  # whether a path is a file, a folder, or neither
    LINK = "link"  # where a path leads to
    GLOB = "glob"  # the files that a glob below the project matches
    PACKAGES = "packages"  # what the packages that are installed in a folder say of themselves
    PACKAGE = "package"  # what is installed under a top-level module's name
    MACHINE = "machine"  # the feature level of this machine's processor


FILES = (ReadKind.SOURCE, ReadKind.DATA)
NO_PATHS = (ReadKind.ENVIRONMENT, ReadKind.MACHINE, ReadKind.PACKAGE)  # whose names are none
# Where packages are installed, for every process of a build alike: neither PYTHONPATH nor the folder that a command
# runs in is a worker's.
_NOT_INSTALLED = {os.getcwd(), *os.environ.get("PYTHONPATH", "").split(os.pathsep)}
_PACKAGE_FOLDERS = tuple(each for each in sys.path if each and each not in _NOT_INSTALLED)
_VERSION_FILES = ("version.py", "_version.py")


@dataclass(frozen=True, order=True)
class Read:
    """One file, folder or variable that was read. Of a source, the digest is that of the very bytes that ran."""

    kind: ReadKind
    name: str  # a path, relative to the project where it is inside; a variable's name
    digest: str  # sha256 hex; empty for what is not there

    @property
    def place(self) -> str:
        """What was read, without what was found; `parse_read` is its inverse."""
        return f"{self.kind.value}:{self.name}"


@dataclass(frozen=True)
class Looks:
    """What something rests on: files as they were when they were looked at, by path, and all else that was read."""

    files: Mapping[str, FileState] = field(default_factory=dict)
    reads: tuple[Read, ...] = ()


def parse_read(place: str, digest: str = ABSENT) -> Read:
    """The read of a `place`, with what was found there."""
    kind, _, name = place.partition(":")
    return Read(ReadKind(kind), name, digest)


def lasting(reads: Iterable[Read]) -> tuple[Read, ...]:
    """Those that another process meets again: of variables the machine's own, for the rest are a worker's or set."""
    return tuple(each for each in reads if each.kind is not ReadKind.ENVIRONMENT or each.name in INHERITED)


def digest_file(path: Path) -> str:
    """The digest of a file's content, or `ABSENT`; of one that is too large to be read, that of its size and time."""
    try:
        return digest_bounded(path)
    except OSError as error:
        return _digest_of_large(path) if error.errno == errno.EFBIG else ABSENT


def _digest_of_large(path: Path) -> str:
    status = path.stat()
    return digest_text(f"{status.st_size} {status.st_mtime_ns}")


def digest_directory(path: Path | str) -> str:
    """The digest of the names in a folder, or `ABSENT`."""
    try:
        return digest_names(os.listdir(path))
    except OSError:
        return ABSENT


def digest_names(names: Iterable[str]) -> str:
    """The digest of all names in a folder."""
    return digest_text("\n".join(sorted(set(names) - PASSED_OVER)))


def digest_place(path: Path | str) -> str:
    """`file`, `folder`, or `ABSENT`; a link is what it leads to."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return ABSENT
    return "file" if stat.S_ISREG(mode) else "folder" if stat.S_ISDIR(mode) else ABSENT


def places_of(folder: Path, name: str) -> Iterator[Path]:
    """Where an import looks in a folder for the module or package of a plain name."""
    yield from (folder / name, folder / name / "__init__.py")
    yield from (folder / f"{name}{suffix}" for suffix in (*EXTENSION_SUFFIXES, *SOURCE_SUFFIXES))


def digest_glob(folder: Path, pattern: str) -> str:
    """The digest of the names of all files that a glob below a folder matches."""
    return digest_found(folder, find_files(folder, pattern))


def digest_found(folder: Path, files: Iterable[Path]) -> str:
    """The digest of the names of files that a glob below a folder has matched."""
    return digest_text("\n".join(relative_path(path, folder) for path in files))


def refuse_bytes(path: str) -> None:
    """`OSError` for a path that is no text, as other systems' disks may have: nothing could say what was read."""
    try:
        path.encode()
    except UnicodeEncodeError:
        raise OSError(errno.EILSEQ, "its name is not UTF-8", path) from None


def is_pseudo(path: str) -> bool:
    """Whether a path is of the kernel's own file systems: processes, devices. What lies in `/dev/shm` is a file."""
    return f"{path}/".startswith(("/proc/", "/sys/", "/dev/")) and not path.startswith("/dev/shm/")


def relative_path(path: Path | str, folder: Path) -> str:
    """As `os.path.relpath`, which asks where the process is, even where the texts alone tell."""
    text, start = str(path), f"{folder}/" if folder.parts else ""
    if ".." not in text and (text.startswith(start) if start else not text.startswith("/")):
        return text[len(start) :]
    return os.path.relpath(path, folder)


def find_files(folder: Path, pattern: str) -> list[Path]:
    """What a glob below a folder matches and is no folder, sorted."""
    return sorted((path for path in folder.glob(pattern) if not path.is_dir()), key=attrgetter("parts"))


def digest_packages(folder: Path) -> str:
    """The digest of the names and versions of all packages that are installed in a folder, of the entry points that
    they have, and of the files by which other folders are on the path."""
    return digest_text("\n".join(f"{name} {digest}" for name, digest in sorted(_describe_packages(folder))))


def _describe_packages(folder: Path) -> Iterator[tuple[str, str]]:
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        if name.endswith((".dist-info", ".egg-info")):
            yield name, digest_file(folder / name / "entry_points.txt")
        elif name.endswith((".pth", ".egg-link")) or name.startswith("__editable__"):
            yield name, digest_file(folder / name)


def digest_package(name: str) -> str:
    """The digest of what says which version of a package an import of the top-level module `name` finds, or `ABSENT`:
    the bytes of its first file and of those that hold versions, and the names of distributions called like it."""
    spec = PathFinder.find_spec(name, _PACKAGE_FOLDERS)
    if spec is None or spec.origin is None:
        return ABSENT
    origin = Path(spec.origin)
    is_package = spec.submodule_search_locations is not None
    files = [origin, *(origin.with_name(each) for each in (_VERSION_FILES if is_package else ()))]
    return digest_text("\n".join((*map(digest_file, files), *_find_distributions(name, origin.parents[is_package]))))


def _find_distributions(name: str, folder: Path) -> list[str]:
    """The names of the folders that describe a package, without their paths."""
    start = f"{name.lower()}_"
    known = (each for each in os.listdir(folder) if each.endswith((".dist-info", ".egg-info")))
    return sorted(each for each in known if re.sub(r"[-.]+", "_", each).lower().startswith(start))


def digest_variable(name: str, environment: Mapping[str, str]) -> str:
    """The digest of a variable's value, or `ABSENT`."""
    return digest_text(environment[name]) if name in environment else ABSENT


_DIGESTS = {
    ReadKind.SOURCE: digest_file,
    ReadKind.DATA: digest_file,
    ReadKind.DIRECTORY: digest_directory,
    ReadKind.PLACE: digest_place,
    ReadKind.LINK: lambda path: digest_text(os.path.realpath(path)),
    ReadKind.PACKAGES: digest_packages,
}


def read_variable(name: str) -> Read:
    """A variable of this process's environment."""
    return Read(ReadKind.ENVIRONMENT, name, digest_variable(name, os.environ))


def digest_now(read: Read, project: Path, environment: Mapping[str, str]) -> str:
    """The digest that `read` would have now: it is stale when this differs from its own."""
    if read.kind is ReadKind.ENVIRONMENT:
        return digest_variable(read.name, environment)
    if read.kind is ReadKind.GLOB:
        return digest_glob(project, read.name)
    if read.kind is ReadKind.PACKAGE:
        return digest_package(read.name)
    if read.kind is ReadKind.MACHINE:
        return read_native_level() or ABSENT
    return _DIGESTS[read.kind](project / read.name)
