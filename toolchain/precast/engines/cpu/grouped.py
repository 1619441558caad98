"""Products by instructions that multiply several neighbours along K and add them up: bytes by fours, bf16 by twos.

In: a product's types and a machine. Out: how its factors are packed, and the instruction. A group is one 32-bit word:
a row of A has a word for each step, a panel of B a word of each column. Where the machine has registers for matrices
of words, an instruction multiplies two of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from precast.engines.cpu import floats
from precast.engines.cpu.builder import Builder
from precast.engines.cpu.ir import ELEMENT_BITS, Type
from precast.engines.cpu.machine import Machine
from precast.engines.cpu.values import Plain, Scalar, Vector

_LANES = 16  # words of the instructions' vectors
_TURNED = 8  # words of a square that is turned in registers


@dataclass(frozen=True)
class Group:
    """How a machine multiplies factors of an element by groups of `size`, which it adds to sums of another."""

    size: int
    instruction: str
    taken: str = ""  # the type of its factors; of matrices, none
    unsigned: bool = False  # whether the numbers of A are taken as unsigned bytes: each is 128 more than it was

    @property
    def matrices(self) -> bool:
        """Whether the instruction multiplies matrices of words."""
        return not self.taken


_BYTES = Group(4, "llvm.x86.avx512.vpdpbusd.512", "vector<64xi8>", unsigned=True)
_BF16 = Group(2, "llvm.x86.avx512bf16.dpbf16ps.512", "vector<32xbf16>")
_BYTE_MATRICES = Group(4, "llvm.x86.tdpbssd.internal")
_BF16_MATRICES = Group(2, "llvm.x86.tdpbf16ps.internal")


def find_group(machine: Machine, a: Type, b: Type, total: str) -> Group | None:
    """The groups that a product's factors are multiplied by; None where each number is widened for itself."""
    matrices = machine.matrices and a.shape[-2] >= _LANES
    if a.element == b.element == "i8" and total == "i32":
        group = (_BYTE_MATRICES if matrices else _BYTES) if machine.bytes else None
    elif a.element == b.element == "bf16":
        group = (_BF16_MATRICES if matrices else _BF16) if machine.bf16 else None
    else:
        group = None
    fits = group is not None and a.shape[-1] >= _TURNED * group.size and b.shape[-1] >= _LANES
    return group if fits else None


def join_rows(b: Builder, rows: Sequence[Plain], width: int) -> Plain:
    """A word of each column: neighbours along K, the first in its lowest bits."""
    total: Plain | None = None
    for number, each in enumerate(rows):
        bits = ELEMENT_BITS[each.element]
        raw: Plain = Vector(each.name, f"i{bits}", width) if isinstance(each, Vector) else Scalar(each.name, f"i{bits}")
        word = b.resize(raw, "i32", signed=False)
        if number:
            word = b.binary("shli", word, floats.filled(b, word, number * bits, "i32"))
        total = word if total is None else b.binary("ori", total, word)
    assert total is not None
    return b.vector(total, width)


def as_unsigned(b: Builder, bytes_: Plain) -> Plain:
    """Signed bytes, each 128 more, as unsigned ones."""
    return b.binary("xori", bytes_, floats.filled(b, bytes_, -128, "i8"))


def multiply_groups(b: Builder, group: Group, left: Scalar, right: Plain, total: Plain) -> Plain:
    """total + the products of the word `left` with each word of `right`."""
    assert isinstance(right, Vector)
    assert isinstance(total, Vector)
    factor = _taken(b, group, b.vector(left, _LANES))
    parts = []
    for first in range(0, total.width, _LANES):
        lanes = range(first, first + _LANES)
        sums, words = (each if each.width == _LANES else b.shuffle(each, each, lanes) for each in (total, right))
        names = f"{sums.name}, {factor}, {_taken(b, group, words)}"
        types = f"{sums.type}, {group.taken}, {group.taken}"
        call = f'llvm.call_intrinsic "{group.instruction}"({names}) : ({types}) -> {sums.type}'
        parts.append(Vector(b.emit(call), total.element, _LANES))
    return b.joined(parts)


def _taken(b: Builder, group: Group, words: Vector) -> str:
    if group.taken == words.type:
        return words.name
    return b.emit(f"vector.bitcast {words.name} : {words.type} to {group.taken}")
