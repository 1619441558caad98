"""What the cache keeps under a key: a value and its blobs, as one message that travels alone where it is small.

In: `Entry`. Out: the message for `ac/` and the blobs for `cas/`; and back. A message names its key and carries a digest
of its own, so that one that was damaged, or came under another name, is no entry.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import zstandard

from precast.cache.action_result import ActionResult, OutputFile, encode_action_result, parse_action_result
from precast.cache.place import NAME
from precast.digest import seal, unseal
from precast.store import digest_bytes

FORMAT = 1
MOST_INLINE_BYTES = 1 << 20  # of blobs, compressed, that a message itself carries
MOST_MESSAGE_BYTES = 8 << 20
MOST_BLOB_BYTES = 1 << 30
_LEVEL = 3


@dataclass(frozen=True)
class Entry:
    """A value (JSON text, say) and the blobs that belong to it, in order."""

    value: bytes
    blobs: tuple[bytes, ...] = ()


@dataclass(frozen=True)
class Message:
    """An entry as it is kept: `files` are the blobs that it names and does not hold."""

    entry: Entry
    files: tuple[OutputFile, ...] = ()


def pack_entry(key: str, entry: Entry, *, whole: bool) -> tuple[bytes, dict[str, bytes]]:
    """The message of an entry, and by digest the blobs that must be there before it.

    `whole`: the message holds the blobs itself, unless they are too large for one.
    """
    if whole:
        packed = _compress(entry.value, entry.blobs)
        if len(packed) <= MOST_INLINE_BYTES:
            return encode_action_result(ActionResult(_sealed(key, packed))), {}
    blobs = {digest_bytes(blob): blob for blob in entry.blobs}
    files = tuple(OutputFile(str(place), digest_bytes(blob), len(blob)) for place, blob in enumerate(entry.blobs))
    return encode_action_result(ActionResult(_sealed(key, _compress(entry.value, ())), files)), blobs


def parse_message(key: str, data: bytes) -> Message | None:
    """The entry in a message; None when it is of another format; `ValueError` when it is not one of `key`."""
    result = parse_action_result(data)
    owner, _, packed = (unseal(result.stdout) or b"").partition(b"\n")
    if owner != key.encode():
        raise ValueError("it is not the entry of its key")
    if any(not 0 <= file.size <= MOST_BLOB_BYTES or not NAME.fullmatch(file.digest) for file in result.files):
        raise ValueError("it names what can be no blob")
    entry = _decompress(packed)
    return Message(entry, result.files) if entry else None


def _sealed(key: str, packed: bytes) -> bytes:
    return seal(key.encode() + b"\n" + packed)


def _compress(value: bytes, blobs: tuple[bytes, ...]) -> bytes:
    head = json.dumps([FORMAT, len(value), *map(len, blobs)]).encode()
    return zstandard.ZstdCompressor(level=_LEVEL).compress(b"\n".join([head, value + b"".join(blobs)]))


def _decompress(packed: bytes) -> Entry | None:
    try:
        if zstandard.frame_content_size(packed) > MOST_BLOB_BYTES:
            raise ValueError("it is too large")
        data = zstandard.ZstdDecompressor().decompress(packed)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from None
    head, _, data = data.partition(b"\n")
    try:
        numbers = json.loads(head)
    except RecursionError:
        numbers = None
    if isinstance(numbers, list) and numbers and numbers[0] != FORMAT:
        return None
    sizes = numbers[1:] if isinstance(numbers, list) else []
    if not sizes or not all(isinstance(size, int) and size >= 0 for size in sizes):
        raise ValueError("its head is none")
    parts, place = [], 0
    for size in sizes:
        parts.append(data[place : place + size])
        place += size
    if place != len(data):
        raise ValueError("its parts are not what its head says")
    return Entry(parts[0], tuple(parts[1:]))
