"""What every place of a cache can do, and how one fails.

In: a kind of name (`cas`, `ac`) and the name. Out: bytes, None for what is not there, or `CacheFault` for a place that
does not do its part.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

BLOBS, MESSAGES = "cas", "ac"
KINDS = (BLOBS, MESSAGES)
NAME = re.compile("[0-9a-f]{64}")  # of anything that a cache keeps


class CacheFault(Exception):
    """The place fails; `cause` is the end of a sentence. `refused`: it knows what was asked, and does not let us."""

    def __init__(self, cause: str, *, refused: bool = False) -> None:
        super().__init__(cause)
        self.cause = cause
        self.refused = refused


@dataclass(frozen=True)
class Item:
    """Something that a place holds; `used` is when it was last written or, where the place notes that, read."""

    kind: str
    name: str
    size: int
    used: float


class Place(Protocol):
    """A place that holds bytes under names; safe for several threads."""

    def get(self, kind: str, name: str, most: int) -> bytes | None:
        """The bytes under a name; None when there are none. Of more than `most` bytes, one more than that are enough:
        no digest fits them."""

    def put(self, kind: str, name: str, data: bytes) -> None:
        """Keeps bytes under a name, in place of others; nobody ever sees half of them."""


class Listed(Place, Protocol):
    """A place that can say what it holds."""

    def items(self) -> Iterator[Item]:
        """All that a cache keeps there; files of other names are none of its own."""

    def look(self, kind: str, name: str, most: int) -> bytes | None:
        """As `get`, but that is no use of it."""

    def remove(self, item: Item) -> None: ...

    def remove_abandoned(self) -> None:
        """Removes what writers left that were killed, and is nothing that `items` gives."""
