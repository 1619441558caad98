"""`index.bin` read back, as far as a manifest can say the same: files, units, where images lie, how they are launched.

In: bytes that may be anything. Out: `IndexContents`, or a `ReleaseError`. The C runtime reads the index in place and
checks more of it (`runtime/index.c`); this is for comparing it with what stands beside it.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from precast.artifact import Facts
from precast.errors import ReleaseError, printable
from precast.launch.formats.records import (
    BACKENDS,
    FLAG_COOPERATIVE,
    FLAG_PDL,
    HEADER,
    MAGIC,
    PARAMETER_KINDS,
    RECORDS,
    SECTION,
)
from precast.launch.formats.values import LAUNCH_ABI, SCHEMA, ImagePlace, ReleaseFile

# What a unit's description has, and of what kind.
_ABOUT = {"constants": dict, "options": dict, "axes": dict, "types": dict, "holds": list, "grid": list,
          "requires": list, "source": str}  # fmt: skip
_SECTIONS_AT = HEADER.size - 160
_FIRST_NUMBER, _AFTER_NUMBERS = 24, 37  # of a unit's record: warps to code bytes


@dataclass(frozen=True)
class LaunchFacts:
    """What a launch takes from a unit's facts, in the order of the record's fields."""

    symbol: str
    flags: int
    numbers: tuple[int, ...]
    parameters: tuple[str, ...]  # the name of an argument, or the kind of a hidden parameter
    buffers: tuple[tuple[str, int], ...]
    source: str


@dataclass(frozen=True)
class IndexContents:
    """An index as a manifest could have it."""

    name: str
    launch_abi: int
    interface: str
    files: tuple[ReleaseFile, ...]
    units: tuple[tuple[str, str, str, ImagePlace, LaunchFacts], ...]  # text, kernel, backend


@dataclass(frozen=True)
class UnitDescription:
    """A unit's text, its kernel, that one's source, and what the Python package reads of it (`index._description`)."""

    unit: str
    kernel: str
    source: str
    about: dict[str, Any]


def fact_numbers(facts: Facts) -> tuple[int, ...]:
    """The numbers of a unit's record that are its facts' own."""
    return (
        facts.num_warps, facts.num_ctas, facts.warp_size, facts.shared_bytes, facts.tensor_memory_bytes,
        facts.thread_scratch_bytes, facts.global_scratch_bytes, facts.global_scratch_align,
        facts.profile_scratch_bytes, facts.profile_scratch_align,
        -1 if facts.registers is None else facts.registers, -1 if facts.spill_bytes is None else facts.spill_bytes,
        facts.code_bytes,
    )  # fmt: skip


def fact_flags(facts: Facts) -> int:
    return FLAG_COOPERATIVE * facts.cooperative | FLAG_PDL * facts.pdl


def launch_facts(facts: Facts) -> LaunchFacts:
    """The facts that an index holds as well."""
    names = [
        parameter.name.partition(".")[0] if parameter.kind in ("argument", "descriptor") else parameter.kind
        for parameter in facts.parameters
    ]
    buffers = tuple((buffer.pass_name, buffer.bytes_per_program) for buffer in facts.buffers)
    source = facts.source_digest
    return LaunchFacts(facts.symbol, fact_flags(facts), fact_numbers(facts), _runs(names), buffers, source)


def read_index(data: bytes, name: str) -> IndexContents:
    """What `data` holds; `name` stands for it in errors."""
    if len(data) < HEADER.size or data[:8] != MAGIC:
        raise ReleaseError(f"{name} is not the index of a release")
    _, schema, launch_abi, size, interface, digest, title, _, _ = HEADER.unpack_from(data)
    if (schema, launch_abi) != (SCHEMA, LAUNCH_ABI):
        raise ReleaseError(
            f"{name} has schema {schema} and launch ABI {launch_abi}, this Precast reads {SCHEMA} and {LAUNCH_ABI}"
        )
    if size != len(data) or hashlib.sha256(data[:56] + bytes(32) + data[88:]).digest() != digest:
        raise ReleaseError(f"{name} does not match its own digest")
    tables = IndexTables(data)
    try:
        return IndexContents(
            tables.text(title), launch_abi, interface.hex(), tuple(tables.files()), tuple(tables.units())
        )
    except (struct.error, IndexError, KeyError, ValueError, RecursionError):
        raise ReleaseError(f"{name} has a record that points outside its table") from None


def read_descriptions(data: bytes, name: str) -> tuple[UnitDescription, ...]:
    """What each unit of an index was made from; `name` stands for the index in errors."""
    read_index(data, name)
    tables = IndexTables(data)
    found = []
    for number in range(tables.span("units")[1]):
        unit = tables.record("units", number)
        kernel = tables.record("kernels", unit[2])
        about = parse_about(tables.text(unit[37]))
        found.append(UnitDescription(tables.text(unit[0]), tables.text(kernel[0]), tables.text(kernel[1]), about))
    return tuple(found)


def parse_about(text: str) -> dict[str, Any]:
    """A unit's description, as `index._description` wrote it; `ValueError` for anything else."""
    about = json.loads(text)
    if not isinstance(about, dict) or {name: type(value) for name, value in about.items()} != _ABOUT:
        raise ValueError("no description of a unit")
    texts = [*about["types"].values(), *about["holds"], *about["grid"], *about["requires"]]
    spelled = [each.get("spelled") for each in about["constants"].values() if isinstance(each, dict)]
    if not all(isinstance(each, str) for each in (*texts, *spelled)):
        raise ValueError("no description of a unit")
    if any(isinstance(each, list) for each in about["constants"].values()):
        raise ValueError("no description of a unit")
    return about


def _runs(names: Sequence[str]) -> tuple[str, ...]:
    """A tuple's leaves are parameters of one name, one after another: it stands once."""
    return tuple(key for key, _ in groupby(names))


class IndexTables:
    """Records by section and number; what lies outside is an `IndexError`."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.kinds = {number: kind for kind, number in PARAMETER_KINDS.items()}
        self.backends = {number: backend for backend, number in BACKENDS.items()}
        self.spans = {
            section: SECTION.unpack_from(data, _SECTIONS_AT + SECTION.size * number)
            for number, section in enumerate(RECORDS)
        }

    def span(self, section: str) -> tuple[int, int]:
        start, count = self.spans[section]
        if start + count * RECORDS[section].size > len(self.data):
            raise IndexError(section)
        return start, count

    def record(self, section: str, number: int) -> tuple[Any, ...]:
        start, count = self.span(section)
        if number >= count:
            raise IndexError(section)
        return RECORDS[section].unpack_from(self.data, start + RECORDS[section].size * number)

    def text(self, place: int) -> str:
        start, count = self.span("strings")
        if place >= count:
            raise IndexError("strings")
        return self.data[start + place : self.data.index(b"\0", start + place, start + count)].decode()

    def files(self) -> list[ReleaseFile]:
        records = [self.record("files", number) for number in range(self.span("files")[1])]
        return [ReleaseFile(self.text(path), size, digest.hex()) for path, _, size, digest in records]

    def units(self) -> list[tuple[str, str, str, ImagePlace, LaunchFacts]]:
        found = []
        for number in range(self.span("units")[1]):
            unit = self.record("units", number)
            kernel = self.record("kernels", unit[2])
            found.append(
                (self.text(unit[0]), self.text(kernel[0]), self.backends[unit[4]], self.image(unit[3]),
                 self.launch_facts(unit, kernel))
            )  # fmt: skip
        return found

    def image(self, number: int) -> ImagePlace:
        file, _, offset, size, digest = self.record("images", number)
        return ImagePlace(self.text(self.record("files", file)[0]), offset, size, digest.hex())

    def launch_facts(self, unit: tuple[Any, ...], kernel: tuple[Any, ...]) -> LaunchFacts:
        parameters, buffers = slice(unit[10], unit[10] + unit[11]), slice(unit[16], unit[16] + unit[17])
        if max(parameters.stop - self.span("parameters")[1], buffers.stop - self.span("buffers")[1]) > 0:
            raise IndexError("parameters")
        about = parse_about(self.text(unit[37]))
        self.text(kernel[1])  # its source
        return LaunchFacts(
            symbol=self.text(unit[1]),
            flags=unit[6],
            numbers=unit[_FIRST_NUMBER:_AFTER_NUMBERS],
            parameters=_runs([self.parameter(each, kernel) for each in range(parameters.start, parameters.stop)]),
            buffers=tuple(self.buffer(each) for each in range(buffers.start, buffers.stop)),
            source=printable(about["source"]),
        )

    def parameter(self, number: int, kernel: tuple[Any, ...]) -> str:
        kind, _, slot, _ = self.record("parameters", number)
        if self.kinds[kind] not in ("argument", "descriptor"):
            return self.kinds[kind]
        return self.text(self.record("slots", kernel[4] + slot)[0]).partition(".")[0]

    def buffer(self, number: int) -> tuple[str, int]:
        name, size = self.record("buffers", number)
        return self.text(name), size
