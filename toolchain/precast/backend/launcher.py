"""A launch: a call's arguments as the 8-byte values that an entry reads, then the grid on the C runtime's threads.

In: Triton's source object and metadata; each call's arguments. Out: what the kernel writes. A tuple counts part by
part, a tensor descriptor as pointer, shape, strides and what Triton adds, an argument that is fixed not at all.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any

from precast.errors import PrecastError

_WORD = (1 << 64) - 1
Reader = Callable[[Any], list[int]]


class AssertionFailedError(PrecastError):
    """A `tl.device_assert` did not hold: its place, its words and the program that said them first."""


class CpuLauncher:
    """Launches one compiled kernel; made when it is first launched."""

    def __init__(self, source: Any, metadata: Any) -> None:
        self._name = metadata.name
        self._scratch_bytes = metadata.thread_scratch_bytes
        types = [source.signature[each] for each in source.signature]
        self._readers = [(place, read) for place, each in enumerate(types) if (read := choose_reader(each))]
        from precast.launch import _launch  # type: ignore[attr-defined]  # built from C

        self._run = _launch.run_programs

    def __call__(self, x: int, y: int, z: int, _stream: Any, entry: int, _packed: Any, *rest: Any) -> None:
        about, enter, leave, *given = rest
        values: list[int] = []
        for place, read in self._readers:
            values += read(given[place])
        if enter is not None:
            enter(about)
        failed = self._run(entry, struct.pack(f"={len(values)}Q", *values), x, y, z, self._scratch_bytes)
        if leave is not None:
            leave(about)
        if failed is not None:
            words, program = failed
            raise AssertionFailedError(f"a device assertion failed in `{self._name}`: {words}, in program {program}")


def choose_reader(kind: Any) -> Reader | None:
    """How an argument of a type is read; None for one that is fixed."""
    if isinstance(kind, tuple | list):
        parts = [(place, read) for place, each in enumerate(kind) if (read := choose_reader(each))]
        return (lambda given: [value for place, read in parts for value in read(given[place])]) if parts else None
    if kind == "constexpr":
        return None
    if kind.startswith("tensordesc"):
        return lambda given: list(expand_descriptor(given))
    if kind.startswith("*"):
        return lambda given: [find_address(given)]
    if kind in FLOATS:
        write = FLOATS[kind]
        return lambda given: [write(float(given))]
    return lambda given: [int(given) & _WORD]


def find_address(given: Any) -> int:
    """Where a tensor's memory begins; an address itself; 0 for None. `ValueError` for memory of another device."""
    if given is None:
        return 0
    if not hasattr(given, "data_ptr"):
        return int(given) & _WORD
    if not getattr(given, "is_cpu", True):
        raise ValueError(f"a kernel on the CPU cannot use a tensor on {given.device}")
    return int(given.data_ptr())


def expand_descriptor(given: Any) -> Iterator[int]:
    """A host tensor descriptor as Triton 3.9 expands it for targets without tensor maps."""
    layout = [int(each) & _WORD for each in (*given.shape, *given.strides)]
    yield find_address(given.base)
    yield from layout
    yield int(given.padding == "nan")
    yield int(given.round_f32_to_tf32)
    yield from layout


def _write_float(code: str, bits: str) -> Callable[[float], int]:
    """The bits of a number in IEEE's format `code`; one too large is infinite, as C has it."""

    def write(value: float) -> int:
        try:
            packed = struct.pack(code, value)
        except OverflowError:
            packed = struct.pack(code, float("inf") if value > 0 else float("-inf"))
        return int(struct.unpack(bits, packed)[0])

    return write


def _write_bfloat16(value: float) -> int:
    """The upper half of the number in float32, rounded to nearest even."""
    bits = FLOATS["fp32"](value)
    if value != value:
        return bits >> 16 | 0x40
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


FLOATS: dict[str, Callable[[float], int]] = {
    "fp16": _write_float("=e", "=H"),
    "bf16": _write_bfloat16,
    "fp32": _write_float("=f", "=I"),
    "f32": _write_float("=f", "=I"),
    "fp64": _write_float("=d", "=Q"),
}
