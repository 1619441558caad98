"""Just enough of ELF to size an object's code. In: the object's bytes. Out: bytes in executable sections."""

from __future__ import annotations

import struct

_EXECUTABLE = 0x4


def find_code_bytes(image: bytes) -> int:
    """The size of all executable sections of a 64-bit little-endian ELF file (System V gABI, section headers)."""
    offset = struct.unpack_from("<Q", image, 0x28)[0]
    entry_size, count = struct.unpack_from("<HH", image, 0x3A)
    total = 0
    for index in range(count):
        _, _, flags, _, _, size = struct.unpack_from("<IIQQQQ", image, offset + index * entry_size)
        total += size if flags & _EXECUTABLE else 0
    return total
