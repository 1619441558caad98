"""A bucket of an object store as the place of a cache: `s3://`, `gs://`, `az://`, through fsspec.

In: an address; credentials from where the vendor's own tools look. Objects lie as files of a folder do. The library of
each vendor is an extra of Precast's own name.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from datetime import datetime
from typing import Any

import fsspec
from fsspec.asyn import sync
from fsspec.exceptions import FSTimeoutError

from precast.cache.place import KINDS, NAME, CacheFault, Item
from precast.cache.settings import BUCKETS
from precast.errors import ToolError, printable

CONNECT_SECONDS, ANSWER_SECONDS = 5, 10
CALL_SECONDS = 25.0  # for all of a call; some libraries try again for minutes
TIMES = ("LastModified", "last_modified", "mtime")  # of an object, as the libraries name it
NO_BUCKET = "there is no such bucket"
LOGGERS = {"s3": "s3fs", "gs": "gcsfs", "az": "azure"}
# What only the vendor's library understands: no wait without end, and no long row of retries.
_OPTIONS: dict[str, dict[str, Any]] = {
    "s3": {
        "config_kwargs": {
            "connect_timeout": CONNECT_SECONDS,
            "read_timeout": ANSWER_SECONDS,
            "retries": {"max_attempts": 1},
        }
    }
}


class BucketPlace:
    """A place below a bucket."""

    def __init__(self, url: str) -> None:
        scheme, _, root = url.partition("://")
        self._root = root.rstrip("/")
        try:
            self._files: Any = fsspec.filesystem(scheme, use_listings_cache=False, **_OPTIONS.get(scheme, {}))
        except ImportError:
            extra = BUCKETS[scheme]
            raise ToolError(
                f"a cache at `{scheme}://` needs a library that is not installed",
                hint=f"pip install 'precast[{extra}]'",
            ) from None
        except Exception as error:  # whatever a vendor's library says of its settings
            raise CacheFault(_reason(error)) from None
        logging.getLogger(LOGGERS[scheme]).setLevel(logging.CRITICAL + 1)  # what it says is said in our words

    def _ask(self, call: Callable[..., Awaitable[Any]], *arguments: Any, **options: Any) -> Any:
        """What a call of the vendor's library gives, in time; `FileNotFoundError` or a `CacheFault`."""
        try:
            return sync(self._files.loop, call, *arguments, timeout=CALL_SECONDS, **options)
        except FSTimeoutError:
            raise CacheFault(f"it has not answered for {CALL_SECONDS:g} s") from None
        except FileNotFoundError:
            raise
        except Exception as error:
            raise _fault(error) from None

    def get(self, kind: str, name: str, most: int) -> bytes | None:
        try:
            return bytes(self._ask(self._files._cat_file, self._path(kind, name), start=0, end=most + 1))
        except FileNotFoundError:
            return None
        except CacheFault as fault:
            if "range" in fault.cause.lower():  # of an object without bytes no range can be had
                return b""
            raise

    look = get

    def put(self, kind: str, name: str, data: bytes) -> None:
        try:
            self._ask(self._files._pipe_file, self._path(kind, name), data)
        except FileNotFoundError:
            raise CacheFault(NO_BUCKET) from None

    def items(self) -> Iterator[Item]:
        found = {kind: self._list(kind) for kind in KINDS}
        if not any(found.values()):
            self._refuse_absent()
        for kind in KINDS:
            for path, about in found[kind].items():
                if not NAME.fullmatch(path.rpartition("/")[2]):
                    continue
                used = next((about[name] for name in TIMES if about.get(name)), None)
                seconds = used.timestamp() if isinstance(used, datetime) else 0.0
                yield Item(kind, path.rpartition("/")[2], int(about.get("size") or 0), seconds)

    def _refuse_absent(self) -> None:
        if not self._ask(self._files._exists, self._root.partition("/")[0]):
            raise CacheFault(NO_BUCKET)

    def _list(self, kind: str) -> dict[str, dict[str, Any]]:
        try:
            return dict(self._ask(self._files._find, f"{self._root}/{kind}", detail=True))
        except FileNotFoundError:
            return {}

    def remove(self, item: Item) -> None:
        with suppress(FileNotFoundError):
            self._ask(self._files._rm_file, self._path(item.kind, item.name))

    def remove_abandoned(self) -> None:
        """Nothing: an object is there when all of it is."""

    def _path(self, kind: str, name: str) -> str:
        return f"{self._root}/{kind}/{name}"


def _fault(error: Exception) -> CacheFault:
    """A vendor's exception as one of ours; each library has its own kinds, of which these two are common to all."""
    return CacheFault(_reason(error), refused=isinstance(error, PermissionError))


def _reason(error: Exception) -> str:
    return printable(str(error).partition("\n")[0] or type(error).__name__, 120)
