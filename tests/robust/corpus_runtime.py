"""What once did harm to the runtime, or would without a check of its own, as files in place of a good release's.

An entry is made of the release, for its digests are right. Indexes are those of `wrong_indexes`, and grids at the edge
of what a number can be.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from index_file import IndexFile
from wrong_images import damaged
from wrong_indexes import CASES, unit_of

PACK = "targets/cuda-90/steady.pack"
LEAST, MOST = -(2**63), 2**63 - 1
# Postfix programs: opcode and operand; 0 is a number, 1 an argument, 2 to 9 operators.
GRIDS = {
    "the least over minus one": [(0, LEAST), (0, -1)],
    "the least minus one": [(0, LEAST), (0, 1)],
    "the most plus one": [(0, MOST), (0, 1)],
    "the least by minus one": [(0, -1), (0, LEAST)],
    "over nothing": [(0, 1), (0, 0)],
    "the most by itself": [(0, MOST), (0, MOST)],
}
TEXTS = {
    "nothing but a brace": b"{",
    "an end in a string": b'{"content": "',
    "an end in an escape": b'{"content": "\\',
    "an end in a code": b'{"content": "\\u12',
    "half of a pair": b'{"content": "\\ud800"}',
    "deep": b"[" * 100_000,
    "deep objects": b'{"a":' * 100_000,
    "a number without end": b'{"schema": ' + b"9" * 100_000,
    "zeros": bytes(4096),
    "no text": b"\xff\xfe" * 100,
    "a key twice": b'{"name": "small", "name": "other", "files": [], "files": {}}',
}


def list_entries(release: Path) -> Iterator[Mapping[str, bytes]]:
    """Each entry: files by name, in place of the release's."""
    whole = (release / "index.bin").read_bytes()
    for change in (*CASES.values(), *(set_grid(steps, opcode) for steps in GRIDS.values() for opcode in range(2, 10))):
        index = IndexFile(whole)
        try:
            change(index)
        except LookupError:  # of a kernel that this release does not have
            continue
        yield {"index.bin": index.sealed()}
    yield from list_images(release)
    for name in ("manifest.json", "manifest.json.sig", "ring"):
        text = (release / name).read_bytes()
        yield from ({name: data} for data in TEXTS.values())
        yield from ({name: text[:size]} for size in (1, 2, len(text) // 2, len(text) - 1))
        yield {name: text.replace(b"\n", b"\0")}
        yield {name: text.replace(b" ", b"")}
        yield {name: text * 3}
    yield {"index.bin": whole[:255]}
    yield {"index.bin": whole + whole}


def set_grid(steps: list[tuple[int, int]], opcode: int) -> Callable[[IndexFile], None]:
    """The first grid of `scale` becomes a short program."""

    def change(index: IndexFile) -> None:
        number, unit = unit_of(index, "scale")
        for place, (code, operand) in enumerate([*steps, (opcode, 0)], unit["grid_x"]):
            index.set("steps", place, opcode=code, operand=operand)
        index.set("units", number, steps_x=3)

    return change


def list_images(release: Path) -> Iterator[Mapping[str, bytes]]:
    """Images that say that they have what they have not, under digests that are right."""
    whole, pack = (release / "index.bin").read_bytes(), (release / PACK).read_bytes()
    index = IndexFile(whole)
    number = unit_of(index, "steady", arch=90)[1]["image"]
    image = index.get("images", number)
    start, end = image["offset"], image["offset"] + image["size"]
    for _, data in damaged(pack[start:end]):
        changed = pack[:start] + data + pack[end:]
        index = IndexFile(whole)
        index.set("images", number, digest=hashlib.sha256(data).digest())
        index.set("files", image["file"], digest=hashlib.sha256(changed).digest())
        yield {"index.bin": index.sealed(), PACK: changed}
