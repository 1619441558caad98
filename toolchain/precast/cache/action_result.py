"""`ActionResult` of Bazel's remote execution protocol as bytes, as far as Precast fills one: standard output and files.

In: a frozen value. Out: the message, and back. Written by hand: five fields are not worth generated code and its
library. Servers may add fields of their own; these are passed over.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
# Numbers of fields: of an ActionResult, of an OutputFile in it, of a Digest in that.
_OUTPUT_FILES, _STDOUT_RAW = 2, 5
_PATH, _DIGEST = 1, 2
_HASH, _SIZE = 1, 2
_MOST_VARINT_BYTES = 10


@dataclass(frozen=True)
class OutputFile:
    """A file that the blob `digest` (sha256 hex) of `size` bytes holds."""

    path: str
    digest: str
    size: int


@dataclass(frozen=True)
class ActionResult:
    """What an action gave."""

    stdout: bytes = b""
    files: tuple[OutputFile, ...] = ()


def encode_action_result(result: ActionResult) -> bytes:
    """The message."""
    files = (_field(_OUTPUT_FILES, _file(each)) for each in result.files)
    return b"".join(files) + _field(_STDOUT_RAW, result.stdout)


def parse_action_result(data: bytes) -> ActionResult:
    """The value of a message; `ValueError` when it is none."""
    stdout, files = b"", []
    for number, value in _fields(data):
        if number == _STDOUT_RAW:
            stdout = _bytes(value)
        elif number == _OUTPUT_FILES:
            files.append(_parse_file(_bytes(value)))
    return ActionResult(stdout, tuple(files))


def _file(file: OutputFile) -> bytes:
    digest = _field(_HASH, file.digest.encode()) + _varint(_SIZE << 3 | _VARINT) + _varint(file.size)
    return _field(_PATH, file.path.encode()) + _field(_DIGEST, digest)


def _field(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | _BYTES) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _parse_file(data: bytes) -> OutputFile:
    fields = dict(_fields(data))
    digest = dict(_fields(_bytes(fields.get(_DIGEST, b""))))
    size = digest.get(_SIZE, 0)
    if not isinstance(size, int):
        raise ValueError("a size is a number")
    return OutputFile(_bytes(fields.get(_PATH, b"")).decode(), _bytes(digest.get(_HASH, b"")).decode(), size)


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError("a number stands where bytes should")
    return value


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Every field of a message, in order: a number, or the bytes of anything else."""
    place = 0
    while place < len(data):
        tag, place = _read_varint(data, place)
        kind = tag & 7
        if kind == _VARINT:
            value, place = _read_varint(data, place)
            yield tag >> 3, value
            continue
        if kind == _BYTES:
            size, place = _read_varint(data, place)
        elif kind in (_FIXED32, _FIXED64):
            size = 4 if kind == _FIXED32 else 8
        else:
            raise ValueError(f"there is no kind {kind} of fields")
        if place + size > len(data):
            raise ValueError("it ends within a field")
        yield tag >> 3, data[place : place + size]
        place += size


def _read_varint(data: bytes, place: int) -> tuple[int, int]:
    value = 0
    for number in range(_MOST_VARINT_BYTES):
        if place + number >= len(data):
            raise ValueError("it ends within a number")
        byte = data[place + number]
        value |= (byte & 0x7F) << 7 * number
        if byte < 0x80:
            return value, place + number + 1
    raise ValueError("a number without end")
