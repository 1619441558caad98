"""Where the shared cache is and what may be done with it: `[tool.precast.cache]`, or words of a command line.

In: an address as the user writes it. Out: `CacheSettings`, or a sentence about what is wrong with it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

WEB = ("http", "https")
BUCKETS = {"s3": "s3", "gs": "gs", "az": "az"}  # scheme → extra that reads it
ADDRESS_HINT = "a folder, or an address that begins with http://, https://, s3://, gs:// or az://"
SIZE_HINT = "write it as `500MB`, `10GB` or `2GiB`"
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}


@dataclass(frozen=True)
class CacheSettings:
    """A shared cache; without an address there is none. `limit`: bytes that `precast cache gc` leaves; 0: none set."""

    url: str = ""
    read: bool = True
    write: bool = True
    limit: int = 0


@dataclass(frozen=True)
class CacheWish:
    """What a command line says of the cache; None where it leaves that to the project."""

    url: str | None = None
    read: bool | None = None
    write: bool | None = None

    def over(self, settings: CacheSettings) -> CacheSettings:
        """The settings with this instead of what they say."""
        return replace(
            settings,
            url=settings.url if self.url is None else self.url,
            read=settings.read if self.read is None else self.read,
            write=settings.write if self.write is None else self.write,
        )


def find_address_fault(url: str) -> str:
    """What is wrong with an address; "" for nothing."""
    scheme, separator, rest = url.partition("://")
    if any(character < " " for character in url):
        return "it holds a control character"
    if not separator:
        begins = url.partition(":")[0]
        if begins != url and begins in (*WEB, *BUCKETS, "file"):
            return f"two slashes come after `{begins}:`"
        return "" if url else "it is empty"
    if scheme == "file":
        return "" if rest.startswith("/") else "a folder's address is its path, or begins with `file:///`"
    if scheme not in (*WEB, *BUCKETS):
        return f"`{scheme}://` is no place that Precast knows"
    from urllib.parse import urlsplit  # not for a build that has no such address

    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return "it is no address"
    if scheme in WEB and (parts.query or parts.fragment):
        return "it has more than a path: entries have names below one"
    return "" if parts.hostname else "it names no host or bucket"


def shown(url: str, *, whole: bool = True) -> str:
    """An address for messages: without the password that it may hold. Of one that is not `whole` nobody knows where
    a password ends."""
    if not whole:
        return re.sub(r"^(\w+:/*).*@", r"\1", url)
    scheme, separator, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{separator}{host.rpartition('@')[2]}{slash}{path}" if separator else url


def parse_size(text: str) -> int:
    """Bytes of `500M`, `10GB`, `2GiB`; `ValueError` for another text."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?I?)B?", text.strip().upper())
    if not found or found[2] not in _UNITS:
        raise ValueError(text)
    return int(float(found[1]) * _UNITS[found[2]])


def format_size(size: float) -> str:
    """A number of bytes for people."""
    if size < 1000:
        return f"{size:.0f} B"
    units = iter(("kB", "MB", "GB", "TB"))
    unit = next(units)
    size /= 1000
    while size >= 1000 and unit != "TB":
        unit, size = next(units), size / 1000
    return f"{size:.1f} {unit}"
