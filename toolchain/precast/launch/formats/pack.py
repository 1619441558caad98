"""Packs: the GPU images of one kernel and target in one file that is mapped, never unpacked.

In: (unit, image) pairs. Out: the file's bytes; and back, the entries of a pack.

Layout, little-endian: a 64-byte header (magic `PRECPACK`, schema, entry count, image count, size of the whole), one
64-byte record for each entry sorted by unit text (sha256, offset, size, offset of the unit's text), the texts, each
ended by a NUL, and then each distinct image once at a multiple of 4096 bytes, in order of first use.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from precast.errors import ReleaseError
from precast.launch.formats.values import SCHEMA

MAGIC = b"PRECPACK"
PAGE = 4096
_HEADER = struct.Struct("<8sIIIIQ32x")
_ENTRY = struct.Struct("<32sQQQ8x")


@dataclass(frozen=True)
class PackEntry:
    """One unit's image in a pack: bytes `offset` to `offset + size`, and their sha256 hex."""

    unit: str
    offset: int
    size: int
    digest: str


def write_pack(images: Sequence[tuple[str, bytes]]) -> bytes:
    """The pack that holds each unit's image; equal images are stored once. Units must be distinct."""
    ordered = sorted(images, key=lambda image: image[0])
    names = b"".join(unit.encode() + b"\0" for unit, _ in ordered)
    names_start = _HEADER.size + _ENTRY.size * len(ordered)
    places: dict[bytes, int] = {}
    body: list[bytes] = []
    end = _aligned(names_start + len(names))
    padding_from = names_start + len(names)
    for _, image in ordered:
        digest = hashlib.sha256(image).digest()
        if digest not in places:
            body += [bytes(end - padding_from), image]
            places[digest] = end
            padding_from = end + len(image)
            end = _aligned(padding_from)
    records = []
    name_at = names_start
    for unit, image in ordered:
        digest = hashlib.sha256(image).digest()
        records.append(_ENTRY.pack(digest, places[digest], len(image), name_at))
        name_at += len(unit.encode()) + 1
    header = _HEADER.pack(MAGIC, SCHEMA, len(ordered), len(places), 0, padding_from)
    return b"".join([header, *records, names, *body])


def read_pack(data: bytes, name: str = "pack") -> tuple[PackEntry, ...]:
    """The entries of a pack, sorted by unit; `ReleaseError` when it is damaged or of another schema.

    A pack has one form: it is what `write_pack` makes of the images in it, and holds not a byte more.
    """
    if len(data) < _HEADER.size or data[:8] != MAGIC:
        raise ReleaseError(f"{name} is not a pack")
    _, schema, count, _, _, size = _HEADER.unpack_from(data)
    if schema != SCHEMA:
        raise ReleaseError(f"{name} has schema {schema}, this Precast reads schema {SCHEMA}")
    if size != len(data) or _HEADER.size + count * _ENTRY.size > size:
        raise ReleaseError(f"{name} is {len(data)} bytes long, its header says {size}")
    entries = tuple(_read_entry(data, name, number) for number in range(count))
    if sum(entry.size for entry in {entry.digest: entry for entry in entries}.values()) > size or data != write_pack(
        [(entry.unit, data[entry.offset : entry.offset + entry.size]) for entry in entries]
    ):
        raise ReleaseError(f"{name} is damaged: it is not in the form that Precast writes")
    return entries


def _read_entry(data: bytes, name: str, number: int) -> PackEntry:
    digest, offset, size, name_at = _ENTRY.unpack_from(data, _HEADER.size + number * _ENTRY.size)
    end = data.find(b"\0", name_at)
    if end < 0 or offset + size > len(data):
        raise ReleaseError(f"{name} is damaged: entry {number} points outside it")
    if hashlib.sha256(data[offset : offset + size]).digest() != digest:
        raise ReleaseError(f"{name} is damaged: an image's digest does not match")
    try:
        return PackEntry(data[name_at:end].decode(), offset, size, digest.hex())
    except UnicodeDecodeError:
        raise ReleaseError(f"{name} is damaged: entry {number} has no name") from None


def _aligned(offset: int) -> int:
    return -(-offset // PAGE) * PAGE
