"""Finds what LLVM 22.1 makes wrong of masks. In: an object of a processor with AVX-512. Out: whether it may be wrong.

A mask that is made of the signs of elements (`vpmov*2m`) and goes to a general register (`kmov`) becomes one `vmovmsk*`
or `vpmovmskb` in LLVM's last pass but few. That is wrong of registers 16 to 31, which those instructions cannot name,
and where the mask is shifted afterwards, since it is no longer made (llvm-project issues 191304 and 198197).
What is found may be data: whoever asks has another way to make the object, not a fault.
"""

from __future__ import annotations

import re

# A three-byte VEX prefix, its operands in registers. LLVM clears the third bit of what follows 0xC4, which says nothing
# of a register operand, where the register's number has a fifth bit.
_MOVES = rb"(?:[\x78\x7c\xf8\xfc]\x50|[\x79\x7d\xf9\xfd][\x50\xd7])[\xc0-\xff]"
_OF_HIGH_REGISTERS = re.compile(rb"\xc4[\x01\x21\x81\xa1]" + _MOVES, re.DOTALL)
_OF_ANY = re.compile(rb"(?:\xc5|\xc4[\x41\x61\xc1\xe1])" + _MOVES, re.DOTALL)
_SHIFT_IN_PLACE = re.compile(rb"\xc4\xe3[\x78\x79\xf8\xf9][\x30-\x33][\xc0\xc9\xd2\xdb\xe4\xed\xf6\xff]", re.DOTALL)


def has_wrong_moves(image: bytes) -> bool:
    """Whether a mask may be moved from a register that is not its own, or shifted without having been made."""
    if _OF_HIGH_REGISTERS.search(image):
        return True
    return bool(_SHIFT_IN_PLACE.search(image) and _OF_ANY.search(image))
