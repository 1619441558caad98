"""Images that say of themselves what is not so. In: an ELF file, as `wrap_image` makes one. Out: it, changed."""

from __future__ import annotations

import struct
from collections.abc import Iterator

SECTION, SEGMENT = 64, 56  # bytes of a record


def with_segment(image: bytes) -> bytes:
    """The image with a table of one segment, which is all of it, at its end."""
    table = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, len(image), len(image), 1)
    header = image[:32] + struct.pack("<Q", len(image)) + image[40:54] + struct.pack("<HH", SEGMENT, 1) + image[58:64]
    return header + image[64:] + table


def put(image: bytes, place: int, layout: str, value: int) -> bytes:
    data = bytearray(image)
    struct.pack_into(layout, data, place, value)
    return bytes(data)


def damaged(image: bytes) -> Iterator[tuple[str, bytes]]:
    """Each way in which an image can say what is not so."""
    table, segments, size = (*struct.unpack_from("<Q", image, 40), *struct.unpack_from("<Q", image, 32), len(image))
    far = (size, size - 1, 1 << 32, (1 << 64) - 1, (1 << 64) - 64)
    for place, name in ((40, "sections"), (32, "segments")):
        yield from ((f"{name} at {value}", put(image, place, "<Q", value)) for value in far)
    for place, name in ((60, "sections"), (56, "segments"), (62, "names")):
        yield from ((f"{name}: {value}", put(image, place, "<H", value)) for value in (200, 0xFF00, 0xFFFF))
    yield "no sections that are somewhere", put(image, 60, "<H", 0)  # their count would be elsewhere
    yield "names: 0", put(image, 62, "<H", 0)
    for place, name in ((58, "section"), (54, "segment")):
        yield from ((f"{name} of {value}", put(image, place, "<H", value)) for value in (0, 1, 63, 65, 0xFFFF))
    for number in (1, 2):
        record = table + SECTION * number
        yield from ((f"section {number} at {value}", put(image, record + 24, "<Q", value)) for value in far)
        yield f"section {number} of all", put(image, record + 32, "<Q", size + 1)
        yield f"section {number} of what overflows", put(image, record + 32, "<Q", (1 << 64) - 64)
        yield f"name of section {number}", put(image, record, "<I", size)
    yield "names without an end", put(image, table - 1, "<B", 65)
    yield "segment of more", put(image, segments + 32, "<Q", size + 1000)
    yield "segment beyond", put(image, segments + 8, "<Q", 1 << 63)
    yield "32 bits", put(image, 4, "<B", 1)
    yield "big end first", put(image, 5, "<B", 2)
    yield "no ELF", b"\0" + image[1:]
