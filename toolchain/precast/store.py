"""The content-addressed store: what a stage made, found again by digest or by stage key.

In: bytes from workers. Out: the same bytes, verified at every read, or nothing. Entries are written beside their
place and renamed, so that a reader never sees half of one and two writers of one entry agree. Layout:
`objects/ab/cdef…` holds bytes under their own sha256; `records/ab/cdef…` holds small values under a key, sealed with
the key, and maybe others that came with it. Everything else in the build that writes a file uses `write_file` as well.
What a killed process or a bad disk leaves of that, `remove_drafts` finds.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from precast.bounded import MOST_FILE_BYTES, IrregularFileError, read_bounded
from precast.digest import seal, unseal
from precast.errors import ToolError

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_CLOSED = {errno.EROFS, errno.EACCES, errno.EPERM}
_ABSENT = {errno.ENOENT, errno.ENOTDIR}
_NO_LINKS = {errno.EXDEV, errno.EMLINK, errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS}
_SYNCS = 16  # at once
_NO_SYNC = {errno.EINVAL, errno.ENOTSUP}  # of file systems that know no such thing, for folders


def digest_bytes(data: bytes) -> str:
    """The address of `data`: its sha256 in hex."""
    return hashlib.sha256(data).hexdigest()


def reason_of(error: OSError) -> str:
    """Why the system refused, as the end of a sentence."""
    return (error.strerror or str(error)).lower()


@contextlib.contextmanager
def telling_disk_faults(path: Path) -> Iterator[None]:
    """Turns what a disk refuses while `path` is written (no space, no permission, no such place, a fault of the
    device) into a `ToolError`."""
    try:
        yield
    except OSError as error:
        raise _tell_disk_fault(error, path) from error


def _tell_disk_fault(error: OSError, path: Path | str) -> ToolError:
    if error.errno in _FULL:
        return ToolError(f"no space left to write {path}", hint="free some space, then run the same again")
    hint = "build in a copy that is writable" if error.errno in _CLOSED else None
    return ToolError(f"cannot write {path}: {reason_of(error)}", hint=hint)


def drop_irregular(path: Path, most: int = MOST_FILE_BYTES, *, follow: bool = True) -> None:
    """Removes what stands where a file of ours of at most so many bytes belongs, and is neither that nor a folder,
    which may hold somebody's files: a pipe, a device, a hole, a link that leads to none. With `follow`, a link to a
    file is one."""
    try:
        status = os.stat(path, follow_symlinks=follow)
        ours = stat.S_ISDIR(status.st_mode) or (stat.S_ISREG(status.st_mode) and status.st_size <= most)
    except OSError:
        ours = not path.is_symlink()
    if not ours:
        path.unlink(missing_ok=True)


def is_draft(name: str) -> bool:
    """Whether a file or folder of this name was to be renamed when it was complete."""
    return name.endswith(".tmp") and name.startswith(".")


def remove_drafts(folder: Path, *, deep: bool = True) -> None:
    """Removes all drafts in a folder in which nobody writes, and with `deep` in those in it. One that cannot be removed
    stays for the next time."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
        for entry in entries:
            is_folder = entry.is_dir(follow_symlinks=False)
            if is_draft(entry.name):
                with contextlib.suppress(OSError):
                    remove(Path(entry.path))
            elif is_folder and deep:
                remove_drafts(Path(entry.path))


def remove(path: Path) -> None:
    """Removes a file, a link, or a folder with all that is in it, be it closed to who owns it."""
    if path.is_symlink() or not path.is_dir():
        path.unlink()
        return
    try:
        shutil.rmtree(path)
    except PermissionError:
        _open_folders(path)
        shutil.rmtree(path)


def _open_folders(path: Path) -> None:
    path.chmod(0o700)
    for place, folders, _ in os.walk(path):
        for each in (Path(place, name) for name in folders):
            if not each.is_symlink():
                each.chmod(0o700)


def _place(path: Path | str, make: Callable[[str], None]) -> None:
    """What `make` leaves under a fresh name beside `path` becomes `path`, or nothing does."""
    folder, name = os.path.split(path)  # very often, so without what `Path` and context managers cost
    folder = folder or os.curdir
    draft = f"{folder}/.{name[:100]}.{secrets.token_hex(6)}.tmp"
    try:
        if not os.path.isdir(folder):
            os.makedirs(folder, exist_ok=True)
        make(draft)
        os.replace(draft, path)
    except BaseException as error:
        with contextlib.suppress(OSError):  # what went wrong before is what counts
            os.unlink(draft)
        if isinstance(error, OSError):
            raise _tell_disk_fault(error, path) from error
        raise


def write_new(path: Path | str, data: bytes, *, mode: int = 0o644, durable: bool = False) -> None:
    """Writes a file that is not there yet, where nobody looks for it before it is whole."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb", buffering=0) as stream:
        rest = memoryview(data)
        while rest:
            rest = rest[stream.write(rest) :]
        if durable:
            os.fsync(stream.fileno())


def write_file(path: Path | str, data: bytes, *, mode: int = 0o644, durable: bool = False) -> None:
    """Writes `data` to `path` by rename: afterwards `path` is as it was, or complete. `ToolError` on a bad disk.

    A killed process changes nothing of that. A `durable` file is so after a power cut, too.
    """
    _place(path, lambda draft: write_new(draft, data, mode=mode, durable=durable))
    if durable:
        sync(Path(path).parent)


def sync(path: Path) -> None:
    """Has the disk keep a file's bytes, or which files a folder has, before anything that is done later."""
    with telling_disk_faults(path):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        except OSError as error:
            if error.errno not in _NO_SYNC:
                raise
        finally:
            os.close(descriptor)


def sync_tree(folder: Path, needs: Callable[[Path], bool] = lambda path: True) -> None:
    """`sync` for every file in a folder that `needs` it, for all folders in it, and the folder; many at once, for the
    disk then writes them together."""
    from concurrent.futures import ThreadPoolExecutor  # not for a build that has nothing to do

    tree = [(place, [Path(place, name) for name in names]) for place, _, names in os.walk(folder)]
    with ThreadPoolExecutor(_SYNCS, "precast-sync") as threads:
        list(threads.map(sync, (path for _, paths in tree for path in paths if needs(path))))
        list(threads.map(sync, (Path(place) for place, _ in tree)))


def link_file(source: Path, path: Path) -> None:
    """Makes `path` the same file as `source`, or a copy where the file system has no hard links, by rename."""
    _place(path, lambda draft: link_new(source, draft))


def link_new(source: Path, path: Path | str) -> None:
    """As `link_file`, where nothing is yet and nobody looks."""
    try:
        os.link(source, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        Path(path).write_bytes(source.read_bytes())


class Store:
    """A store in the folder `root`, made when first written. Safe for many processes at once."""

    def __init__(self, root: Path | str) -> None:
        self.root = Path(root)
        self._text = str(root)

    def put(self, data: bytes, digest: str = "") -> str:
        """Keeps `data` and returns its digest, which may be known; a damaged entry is replaced, a good one is left as
        it is."""
        digest = digest or digest_bytes(data)
        if self.get(digest) is None:
            write_file(self._object(digest), data, mode=0o444)
        return digest

    def get(self, digest: str) -> bytes | None:
        """The bytes of `digest`; None when absent, or damaged: a damaged entry is removed."""
        path = self._object(digest)
        data = _read(path)
        if data is not None and digest_bytes(data) != digest:
            _remove(path)
            return None
        return data

    def link(self, digest: str, path: Path | str) -> None:
        """Makes the file `path` of a kept entry; `ToolError` when the entry is gone or damaged."""
        data = self.get(digest)
        if data is None:
            raise ToolError(f"the store has lost {digest[:12]}, meant for {path}", hint="run the same again")
        link_file(self.object_path(digest), Path(path))

    def put_record(self, key: str, data: bytes) -> None:
        """Keeps the value `data` under `key`; a later value replaces an earlier one."""
        self.put_records({key: data})

    def put_records(self, records: Mapping[str, bytes]) -> None:
        """As `put_record`, of values that come together: they are written as one file that has several names."""
        head = " ".join(f"{key}:{len(data)}" for key, data in records.items())
        first, *others = (Path(self._record(key)) for key in records)
        write_file(first, seal(head.encode() + b"\n" + b"".join(records.values())))
        for path in others:
            try:
                os.link(first, path)
            except OSError:  # there is one, there is no folder, or there are no links
                link_file(first, path)

    def get_record(self, key: str) -> bytes | None:
        """The value under `key`; None when absent, or damaged: a damaged record is removed."""
        path = self._record(key)
        content = _read(path)
        if content is None:
            return None
        data = _find_record(unseal(content) or b"", key.encode())
        if data is None:
            _remove(path)
        return data

    def object_path(self, digest: str) -> Path:
        return Path(self._object(digest))

    def record_path(self, key: str) -> Path:
        return Path(self._record(key))

    # Asked for very often, so without what `Path` costs.
    def _object(self, digest: str) -> str:
        return f"{self._text}/objects/{digest[:2]}/{digest[2:]}"

    def _record(self, key: str) -> str:
        return f"{self._text}/records/{key[:2]}/{key[2:]}"


def _find_record(content: bytes, key: bytes) -> bytes | None:
    """The value of a key among those in a file, whose first line says which they are and how long."""
    head, _, data = content.partition(b"\n")
    place = 0
    for words in head.split():
        owner, _, size = words.partition(b":")
        end = place + int(size or b"0")
        if owner == key and size:
            return data[place:end]
        place = end
    return None


def _read(path: str) -> bytes | None:
    """What an entry's file holds; None when it is not there, or cannot be one of ours: then it is removed."""
    try:
        return read_bounded(path, MOST_FILE_BYTES)
    except OSError as error:
        if isinstance(error, IrregularFileError) or error.errno == errno.ELOOP:
            _remove(path)
            return None
        if error.errno in _ABSENT:
            return None
        raise ToolError(f"cannot read {path}: {reason_of(error)}") from error


def _remove(place: str) -> None:
    path = Path(place)
    with telling_disk_faults(path), contextlib.suppress(FileNotFoundError):
        remove(path)
