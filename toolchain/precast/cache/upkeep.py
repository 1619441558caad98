"""Looking after a cache's place: what it holds, what of it is damaged, and what goes when it grows too large.

In: a place that can say what it holds. Out: counts, and less. Whoever finds an entry whose blob is gone has found none,
so anything may go at any time, while others read and write.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from precast.cache.entries import MOST_BLOB_BYTES, MOST_MESSAGE_BYTES, parse_message
from precast.cache.place import BLOBS, Item, Listed
from precast.store import digest_bytes


@dataclass(frozen=True)
class Holdings:
    """How much a place holds."""

    entries: int
    blobs: int
    bytes: int


def count_items(place: Listed) -> Holdings:
    """All that is there."""
    items = list(place.items())
    blobs = sum(item.kind == BLOBS for item in items)
    return Holdings(len(items) - blobs, blobs, sum(item.size for item in items))


def shrink(place: Listed, limit: int) -> Holdings:
    """Removes what was used longest ago until at most `limit` bytes are left; what has gone."""
    items = sorted(place.items(), key=lambda item: (-item.used, item.kind, item.name))
    place.remove_abandoned()
    left, gone = 0, []
    for item in items:
        left += item.size
        if left > limit:
            place.remove(item)
            gone.append(item)
    blobs = sum(item.kind == BLOBS for item in gone)
    return Holdings(len(gone) - blobs, blobs, sum(item.size for item in gone))


def find_damaged(place: Listed) -> Iterator[Item]:
    """What is not what its name says."""
    for item in place.items():
        most = MOST_BLOB_BYTES if item.kind == BLOBS else MOST_MESSAGE_BYTES
        data = place.look(item.kind, item.name, most)
        if data is not None and not _is_good(item, data):
            yield item


def _is_good(item: Item, data: bytes) -> bool:
    if item.kind == BLOBS:
        return digest_bytes(data) == item.name
    try:
        parse_message(item.name, data)
    except ValueError:
        return False
    return True
