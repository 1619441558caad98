"""A folder as the place of a cache, on this machine or a file system that several share.

The files lie as a web server that keeps a Bazel cache has them, `cas/<sha256>` and `ac/<key>`: such a server's folder
can be looked after from here.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from precast.bounded import IrregularFileError, read_bounded
from precast.cache.place import KINDS, NAME, CacheFault, Item
from precast.errors import ToolError
from precast.store import is_draft, reason_of, write_file

ABANDONED_SECONDS = 24 * 3600  # after which nobody still writes a draft, whatever its clock says


class FolderPlace:
    """A place in the folder `root`, which is made when first written to."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def get(self, kind: str, name: str, most: int) -> bytes | None:
        data = self.look(kind, name, most)
        if data is not None:
            with contextlib.suppress(OSError):  # it was used now: what is used least goes first
                os.utime(f"{self.root}/{kind}/{name}")
        return data

    def look(self, kind: str, name: str, most: int) -> bytes | None:
        try:
            return read_bounded(f"{self.root}/{kind}/{name}", most)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except IrregularFileError:
            return b""  # nothing that a cache keeps: told as damaged
        except OSError as error:
            raise CacheFault(reason_of(error)) from None

    def put(self, kind: str, name: str, data: bytes) -> None:
        try:
            write_file(f"{self.root}/{kind}/{name}", data)
        except ToolError as error:
            raise CacheFault(error.message, refused=True) from None

    def items(self) -> Iterator[Item]:
        if not os.path.isdir(self.root):
            raise CacheFault("it is no folder" if os.path.lexists(self.root) else "there is no such folder")
        for kind in KINDS:
            with _telling_faults(), os.scandir(self.root / kind) as files:
                for file in files:
                    try:
                        status = file.stat()
                    except FileNotFoundError:  # gone meanwhile
                        continue
                    if file.is_file() and NAME.fullmatch(file.name):
                        yield Item(kind, file.name, status.st_size, status.st_mtime)

    def remove(self, item: Item) -> None:
        with _telling_faults():
            (self.root / item.kind / item.name).unlink()

    def remove_abandoned(self) -> None:
        now = time.time()
        for kind in KINDS:
            with _telling_faults(), os.scandir(self.root / kind) as files:
                for file in files:
                    with _telling_faults():
                        if is_draft(file.name) and now - file.stat(follow_symlinks=False).st_mtime > ABANDONED_SECONDS:
                            os.unlink(file.path)


@contextlib.contextmanager
def _telling_faults() -> Iterator[None]:
    """What the system refuses is a fault of the place; what is not there, or is gone meanwhile, is none."""
    try:
        yield
    except FileNotFoundError:
        pass
    except OSError as error:
        raise CacheFault(reason_of(error)) from None
