"""A bucket of an object store as the place of a cache: `s3://`, `gs://`, `az://`, through fsspec.

In: an address; credentials from where the vendor's own tools look. Objects lie as files of a folder do. The library of
each vendor is an extra of Precast's own name.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import fsspec

from precast.cache.place import KINDS, NAME, CacheFault, Item
from precast.cache.settings import BUCKETS
from precast.errors import ToolError, printable

CONNECT_SECONDS, ANSWER_SECONDS = 5, 10
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

    def get(self, kind: str, name: str, most: int) -> bytes | None:
        try:
            return bytes(self._files.cat_file(self._path(kind, name), start=0, end=most + 1))
        except FileNotFoundError:
            return None
        except Exception as error:
            if "range" in str(error).lower():  # of an object without bytes no range can be had
                return b""
            raise _fault(error) from None

    look = get

    def put(self, kind: str, name: str, data: bytes) -> None:
        try:
            self._files.pipe_file(self._path(kind, name), data)
        except Exception as error:
            raise _fault(error) from None

    def items(self) -> Iterator[Item]:
        found = {kind: self._list(kind) for kind in KINDS}
        if not any(found.values()):
            self._refuse_absent()
        for kind in KINDS:
            for path, about in found[kind].items():
                if not NAME.fullmatch(path.rpartition("/")[2]):
                    continue
                used = about.get("LastModified") or about.get("last_modified") or about.get("updated")
                seconds = used.timestamp() if isinstance(used, datetime) else 0.0
                yield Item(kind, path.rpartition("/")[2], int(about.get("size") or 0), seconds)

    def _refuse_absent(self) -> None:
        try:
            is_there = self._files.exists(self._root.partition("/")[0])
        except Exception as error:
            raise _fault(error) from None
        if not is_there:
            raise CacheFault("there is no such bucket")

    def _list(self, kind: str) -> dict[str, dict[str, Any]]:
        try:
            return dict(self._files.find(f"{self._root}/{kind}", detail=True))
        except FileNotFoundError:
            return {}
        except Exception as error:
            raise _fault(error) from None

    def remove(self, item: Item) -> None:
        try:
            self._files.rm_file(self._path(item.kind, item.name))
        except FileNotFoundError:
            pass
        except Exception as error:
            raise _fault(error) from None

    def remove_abandoned(self) -> None:
        """Nothing: an object is there when all of it is."""

    def _path(self, kind: str, name: str) -> str:
        return f"{self._root}/{kind}/{name}"


def _fault(error: Exception) -> CacheFault:
    """A vendor's exception as one of ours; each library has its own kinds, of which these two are common to all."""
    return CacheFault(_reason(error), refused=isinstance(error, PermissionError))


def _reason(error: Exception) -> str:
    return printable(str(error).partition("\n")[0] or type(error).__name__, 120)
