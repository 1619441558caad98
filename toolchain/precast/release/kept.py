"""What a release says of files with images, kept from one build to the next under the key of what it is made from.

In: parts. Out: the same parts, or nothing where another key was meant, or a bit has changed. Losing them costs time.
A file has a line of JSON, and below it the units' texts as they are, which are most of it.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import astuple
from pathlib import Path
from typing import Any

from precast.bounded import MOST_FILE_BYTES, read_bounded
from precast.digest import digest_text, seal, unseal
from precast.errors import PrecastError
from precast.launch.formats import ImagePlace, ReleaseFile
from precast.launch.formats.index import IndexEntry
from precast.release.contents import ImagesPart, UnitPart
from precast.release.manifest import UnitTexts
from precast.store import write_file

_DESCRIPTION = IndexEntry._fields.index("description")  # JSON itself, which reads slowly as a text in JSON


def part_name(place: str) -> str:
    """The name of the file that keeps what is said of the one at `place` in the release."""
    return digest_text(place)[:16]


def read_part(path: Path, key: str) -> ImagesPart | None:
    try:
        head, _, texts = (unseal(read_bounded(path, MOST_FILE_BYTES)) or b"").partition(b"\n")
        found, file, units = json.loads(head)
    except (OSError, ValueError):
        return None
    return ImagesPart(ReleaseFile(*file), tuple(_read_units(units, texts))) if found == key else None


def _read_units(units: Iterable[Any], texts: bytes) -> Iterator[UnitPart]:
    position = 0
    for entry, image, reproducible, shown, compact, description in units:
        middle = position + shown
        end = middle + compact
        found = UnitTexts(texts[position:middle], texts[middle:end])
        position = end + description
        entry[_DESCRIPTION] = texts[end:position].decode()
        yield UnitPart(IndexEntry(*entry), ImagePlace(*image), found, reproducible)


def write_part(path: Path, key: str, part: ImagesPart) -> None:
    """Keeps a part. That it cannot be written is no error."""
    texts = [(*each.texts, each.entry.description.encode()) for each in part.units]
    units = [
        (each.entry._replace(description=""), each.image, each.reproducible, *map(len, own))
        for each, own in zip(part.units, texts, strict=True)
    ]
    head = json.dumps((key, astuple(part.file), units), separators=(",", ":")).encode()
    with contextlib.suppress(PrecastError):
        write_file(path, seal(b"".join([head, b"\n", *(text for own in texts for text in own)])))


def drop_others(folder: Path, names: Iterable[str]) -> None:
    """Removes what is kept of files that a release does not have any more."""
    keep = set(names)
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.name not in keep:
            path.unlink(missing_ok=True)
