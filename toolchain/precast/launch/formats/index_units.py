"""The units behind an index, as far as launchers know them: what an index can be written from again.

In: the bytes of a good `index.bin`. Out: units whose launchers, index records and interface are those of the units
that the index was written from. What only a compiler knows of them (where their source lies, its other constants) is
not there.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from precast.launch.formats.index_reader import IndexTables
from precast.launch.formats.interface import ABSENT
from precast.launch.formats.records import DEFAULT_KINDS, HINT_KINDS
from precast.launch.formats.values import DESCRIPTOR, POINTER, TYPE_CODES
from precast.spec.model import Argument, Constant, Source, Spelled, Unit
from precast.spec.naming import parse_unit_text

_TYPES = {code: name for name, code in TYPE_CODES.items()}
_DEFAULTS = {number: kind for kind, number in DEFAULT_KINDS.items()}
_UNKNOWN = "?"  # an element type that callers cannot name
# Places in the records of kernels, arguments, slots and units.
_KERNEL_SOURCE, _KERNEL_ARGUMENTS, _KERNEL_SLOTS, _KERNEL_CONSTANTS = 1, slice(2, 4), slice(4, 6), slice(12, 14)
_SLOT_CODE_BITS = ~(POINTER | DESCRIPTOR)
_UNIT_KERNEL, _UNIT_TYPES, _UNIT_PROMISES, _UNIT_ABOUT, _UNIT_ORDER = 2, 9, slice(14, 16), 37, 38


def read_units(data: bytes) -> tuple[Unit, ...]:
    """The units of an index that `read_index` has found good, those of a kernel and target in the spec's order."""
    tables = IndexTables(data)
    rows = [tables.record("units", number) for number in range(tables.span("units")[1])]
    return tuple(_read_unit(tables, row) for row in sorted(rows, key=lambda row: int(row[_UNIT_ORDER])))


def _read_unit(tables: IndexTables, row: tuple[Any, ...]) -> Unit:
    named = parse_unit_text(tables.text(row[0]))
    kernel = tables.record("kernels", row[_UNIT_KERNEL])
    about = json.loads(tables.text(row[_UNIT_ABOUT]))
    module, _, function = tables.text(kernel[_KERNEL_SOURCE]).rpartition(":")
    return Unit(
        variant=named.variant,
        target=named.target,
        source=Source("", module, function),
        arguments=(
            *_run_time_arguments(tables, kernel, row),
            *_constexprs(about["constants"], _constants_of(tables, kernel)),
        ),
        options=tuple(sorted(about["options"].items())),
        grid=tuple(about["grid"]),
        requires=tuple(about["requires"]),
        defaults=tuple(_defaults(tables, kernel)),
    )


def _defaults(tables: IndexTables, kernel: tuple[Any, ...]) -> Iterator[tuple[str, Constant]]:
    """What stands for arguments that a call leaves out."""
    first, count = kernel[_KERNEL_ARGUMENTS]
    for number in range(first, first + count):
        name, _, _, kind, bits = tables.record("arguments", number)
        if kind:
            (real,) = struct.unpack("<d", struct.pack("<q", bits))
            values = {"int": bits, "bool": bool(bits), "float": real, "NoneType": None}
            yield tables.text(name), values[_DEFAULTS[kind]]


def _constants_of(tables: IndexTables, kernel: tuple[Any, ...]) -> list[str]:
    """The constexprs that have one value in every unit, in the source's order."""
    first, count = kernel[_KERNEL_CONSTANTS]
    return [tables.text(tables.record("axes", number)[0]) for number in range(first, first + count)]


def _constexprs(constants: Mapping[str, Any], first: Sequence[str]) -> list[Argument]:
    """Those whose order counts in that order, then the others."""
    names = [*first, *(name for name in constants if name not in first)]
    return [Argument(name, "constexpr", value=_constant(constants[name])) for name in names]


def _constant(value: Any) -> Constant:
    constant: Constant = Spelled(value["spelled"]) if isinstance(value, dict) else value
    return constant


def _run_time_arguments(tables: IndexTables, kernel: tuple[Any, ...], unit: tuple[Any, ...]) -> list[Argument]:
    first_argument, arguments = kernel[_KERNEL_ARGUMENTS]
    first_slot, _ = kernel[_KERNEL_SLOTS]
    promises = _promises(tables, unit)
    found = []
    for number in range(first_argument, first_argument + arguments):
        name, start, count, *_ = tables.record("arguments", number)
        slots = range(start - first_slot, start - first_slot + count)
        leaves = [_leaf(tables, first_slot + slot, unit[_UNIT_TYPES] + slot) for slot in slots]
        kinds = {kind: value for slot in slots for kind, value in promises.get(slot, ())}
        text = tables.text(name)
        found.append(
            Argument(
                text,
                _type_text(text, leaves),
                divisibility=kinds.get(HINT_KINDS["divisible"], 0),
                range32=HINT_KINDS["range32"] in kinds,
                equal=kinds.get(HINT_KINDS["equal"]),
            )
        )
    return found


def _promises(tables: IndexTables, unit: tuple[Any, ...]) -> dict[int, list[tuple[int, int]]]:
    """By slot, the kind and the divisor of what is promised of it."""
    first, count = unit[_UNIT_PROMISES]
    promises: dict[int, list[tuple[int, int]]] = {}
    for number in range(first, first + count):
        slot, kind, divisor = tables.record("hints", number)
        promises.setdefault(slot, []).append((kind, divisor))
    return promises


def _leaf(tables: IndexTables, slot: int, type_number: int) -> tuple[str, str]:
    """A slot's name, and its type in the unit."""
    name, _, is_constant, rank, _, _, _ = tables.record("slots", slot)
    (code,) = tables.record("slot_types", type_number)
    element = _TYPES.get(code & _SLOT_CODE_BITS, _UNKNOWN)
    if code & POINTER:
        return tables.text(name), f"*{'k' if is_constant else ''}{element}"
    if code & DESCRIPTOR:
        return tables.text(name), f"tensordesc<{element}[{','.join(['1'] * rank)}]>"
    return tables.text(name), element if code else ABSENT


def _type_text(name: str, leaves: Sequence[tuple[str, str]]) -> str:
    """The type of an argument, a tuple's with all in it, from its leaves: `x`, or `pair.0`, `pair.1.0`."""
    if [leaf for leaf, _ in leaves] == [name]:
        return leaves[0][1]
    depth = name.count(".") + 1
    members = groupby(leaves, key=lambda leaf: ".".join(leaf[0].split(".")[: depth + 1]))
    return f"({', '.join(_type_text(member, list(inside)) for member, inside in members)})"
