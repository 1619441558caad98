"""An index as tables that a test changes record by record; what is written has its digest right."""

from __future__ import annotations

import hashlib
from pathlib import Path

from precast.launch.formats.records import HEADER, RECORDS, SECTION

SECTIONS = HEADER.size - 160
# Fields of records, as `runtime/index.h` names them.
FIELDS = {
    "kernels": "name source arguments arguments_count slots slots_count axes axes_count units units_count rules "
    "rules_count constants constants_count",
    "arguments": "name first_slot slots default_kind default_bits",
    "slots": "name type constant rank dtype_axis argument flags",
    "axes": "name kind values values_count",
    "axis_values": "payload text reserved",
    "files": "path reserved size digest",
    "images": "file reserved offset size digest",
    "units": "text symbol kernel image backend arch_kind flags arch axes slot_types parameters parameters_count hints "
    "hints_count promises promises_count buffers buffers_count grid_x grid_y grid_z steps_x steps_y steps_z warps ctas "
    "warp_size shared_bytes tensor_memory_bytes thread_scratch_bytes global_scratch_bytes global_scratch_align "
    "profile_scratch_bytes profile_scratch_align registers spill_bytes code_bytes description order "
    "requires requires_count",
    "parameters": "kind type slot extra",
    "hints": "slot kind divisor",
    "descriptors": "tma rank element_type element_bytes swizzle fp4 reserved reserved_too block_0 block_1 block_2 "
    "block_3 block_4",
    "steps": "operand opcode reserved",
    "buffers": "pass_name bytes",
    "rules": "conditions conditions_count assignments assignments_count device target row reserved",
    "conditions": "steps steps_count relation reserved bound",
    "assignments": "axis value",
    "requirements": "steps steps_count text reserved",
}


class IndexFile:
    """The bytes of an index; places of records by section and number."""

    def __init__(self, data: bytes) -> None:
        self.data = bytearray(data)

    def span(self, section: str) -> tuple[int, int]:
        """(offset, count) of a section."""
        return SECTION.unpack_from(self.data, SECTIONS + SECTION.size * list(RECORDS).index(section))

    def count(self, section: str) -> int:
        return self.span(section)[1]

    def get(self, section: str, number: int) -> dict[str, int | bytes]:
        values = RECORDS[section].unpack_from(self.data, self._place(section, number))
        return dict(zip(FIELDS[section].split(), values, strict=True))

    def set(self, section: str, number: int, **changes: int | bytes) -> None:
        record = {**self.get(section, number), **changes}
        RECORDS[section].pack_into(self.data, self._place(section, number), *record.values())

    def text(self, place: int) -> str:
        start = self.span("strings")[0] + place
        return self.data[start : self.data.index(0, start)].decode()

    def set_text(self, place: int, text: str) -> None:
        """Other letters of a text that is as long or longer."""
        start = self.span("strings")[0] + place
        self.data[start : start + len(text.encode()) + 1] = text.encode() + b"\0"

    def find(self, section: str, **wanted: int | str) -> int:
        """The number of the first record with these fields; a text is compared as one."""
        for number in range(self.count(section)):
            record = self.get(section, number)
            if all((self.text(record[key]) if isinstance(value, str) else record[key]) == value
                   for key, value in wanted.items()):  # fmt: skip
                return number
        raise LookupError(f"no record of {section} has {wanted}")

    def sealed(self) -> bytes:
        """The bytes with their digest right."""
        self.data[56:88] = bytes(32)
        self.data[56:88] = hashlib.sha256(self.data).digest()
        return bytes(self.data)

    def seal(self, path: Path) -> None:
        path.write_bytes(self.sealed())

    def _place(self, section: str, number: int) -> int:
        return self.span(section)[0] + RECORDS[section].size * number
