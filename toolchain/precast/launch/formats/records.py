"""The records of `index.bin` as `struct` formats: the writer's half of `runtime/index.h`.

In: nothing. Out: formats whose sizes `runtime/index.h` asserts, and a string pool. All little-endian, all fields at
their natural alignment.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

MAGIC = b"PRECINDX"
HEADER = struct.Struct("<8sIIQ32s32sII160s")  # …, interface digest, own digest, name, reserved, sections
SECTION = struct.Struct("<II")  # offset, count

# Section names in file order, and the format of one record.
RECORDS = {
    "strings": struct.Struct("<c"),
    "kernels": struct.Struct(
        "<14I"
    ),  # name, source, then (first, count) of arguments, slots, axes, units, rules, constants
    "arguments": struct.Struct("<4Iq"),  # name, first slot, slots, kind of default, default
    "slots": struct.Struct("<IBBBBII"),  # name, type, constant, rank, dtype axis or 255, argument, flags
    "axes": struct.Struct("<4I"),  # name, kind, first value, values
    "axis_values": struct.Struct("<qII"),  # payload, text, reserved
    "files": struct.Struct("<IIQ32s"),  # path, reserved, size, digest
    "images": struct.Struct("<IIQQ32s"),  # file, reserved, offset, size, digest
    "units": struct.Struct("<4I2BHI16sI8I6I10I2i5I"),
    "slot_types": struct.Struct("<B"),
    "parameters": struct.Struct("<BBHI"),  # kind, type, slot, descriptor or buffer
    "hints": struct.Struct("<HHI"),  # slot, kind, divisor
    "descriptors": struct.Struct("<8B5I"),  # tma, rank, element type, element bytes, swizzle, fp4, reserved; block
    "steps": struct.Struct("<qII"),  # operand, opcode, reserved
    "buffers": struct.Struct("<II"),  # pass name, bytes per program
    "rules": struct.Struct("<8I"),  # (first, count) of conditions and assignments; device, target, row, reserved
    "conditions": struct.Struct("<3IIq"),  # first step, steps, relation, reserved, bound
    "assignments": struct.Struct("<II"),  # axis, value (1-based, within the axis)
    "requirements": struct.Struct("<4I"),  # first step, steps, text, reserved
}
SECTION_ALIGNMENT = 8

AXIS_KINDS = {"int": 0, "bool": 1, "float": 2, "dtype": 3, "word": 4}
DEFAULT_KINDS = {"int": 1, "bool": 2, "float": 3, "NoneType": 4}  # 0: there is none
PARAMETER_KINDS = {"argument": 0, "descriptor": 1, "buffer": 2, "global_scratch": 3, "profile_scratch": 4}
HINT_KINDS = {"divisible": 0, "one": 1, "range32": 2, "absent": 3, "present": 4, "equal": 5}
SLOT_OPTIONAL, SLOT_VARIED = 1, 2
RELATIONS = {"<": 0, "<=": 1, "==": 2, "!=": 3, ">=": 4, ">": 5}
BACKENDS = {"cuda": 1, "hip": 2, "cpu": 3}
ARCH_FORWARD, ARCH_EXACT, ARCH_FAMILY = 0, 1, 2
FLAG_COOPERATIVE, FLAG_PDL = 1, 2
NO_AXIS = 255


def pack_rows(section: str, rows: Iterable[Sequence[int | bytes]]) -> str:
    """Records that hold no number of another one, as a text that JSON can hold."""
    return b"".join(RECORDS[section].pack(*row) for row in rows).hex()


@dataclass
class Tables:
    """The sections while they grow; text is kept once."""

    rows: dict[str, list[bytes]] = field(default_factory=lambda: {name: [] for name in RECORDS})
    _strings: dict[str, int] = field(default_factory=dict)
    _spans: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)  # where rows are that were found
    _length: int = 0

    def text(self, text: str) -> int:
        """The offset of `text` in the string section."""
        if text not in self._strings:
            self._strings[text] = self._length
            data = text.encode() + b"\0"
            self.rows["strings"].append(data)
            self._length += len(data)
        return self._strings[text]

    def add(self, section: str, *values: int | bytes) -> int:
        """Append a record; its number."""
        self.rows[section].append(RECORDS[section].pack(*values))
        return len(self.rows[section]) - 1

    def span(self, section: str, rows: Sequence[Sequence[int | bytes]]) -> tuple[int, int]:
        """Append records; (first, count)."""
        first = len(self.rows[section])
        for row in rows:
            self.add(section, *row)
        return first, len(rows)

    def packed_span(self, section: str, packed: str) -> tuple[int, int]:
        """Like `span`, of what `pack_rows` gave."""
        return self._append(section, _split(section, packed))

    def shared_span(self, section: str, packed: str) -> tuple[int, int]:
        """Like `packed_span`, but finds equal rows that are there already."""
        key = (section, packed)  # asked tens of thousands of times
        found = self._spans.get(key)
        if found is None:
            found = self._spans[key] = self._find(section, _split(section, packed))
        return found

    def _find(self, section: str, rows: list[bytes]) -> tuple[int, int]:
        table = self.rows[section]
        for first in range(len(table) - len(rows) + 1):
            if table[first : first + len(rows)] == rows:
                return first, len(rows)
        return self._append(section, rows)

    def _append(self, section: str, rows: list[bytes]) -> tuple[int, int]:
        table = self.rows[section]
        table += rows
        return len(table) - len(rows), len(rows)


def _split(section: str, packed: str) -> list[bytes]:
    data, size = bytes.fromhex(packed), RECORDS[section].size
    return [data[start : start + size] for start in range(0, len(data), size)]
