"""The units behind an index, as far as launchers know them: what an index can be written from again.

In: the bytes of a good `index.bin`. Out: units whose launchers, index records and interface are those of the units
that the index was written from. What only a compiler knows of them (where their source lies, its other constants) is
not there.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from precast.launch.formats.index_reader import IndexTables, parse_about
from precast.launch.formats.records import DEFAULT_KINDS, HINT_KINDS
from precast.spec.model import Argument, Constant, Source, Spelled, Unit
from precast.spec.naming import parse_unit_text

_DEFAULTS = {number: kind for kind, number in DEFAULT_KINDS.items()}
# Places in the records of kernels, arguments, slots and units.
_KERNEL_SOURCE, _KERNEL_ARGUMENTS, _KERNEL_SLOTS, _KERNEL_CONSTANTS = 1, slice(2, 4), slice(4, 6), slice(12, 14)
_UNIT_KERNEL, _UNIT_PROMISES, _UNIT_ABOUT, _UNIT_ORDER = 2, slice(14, 16), 37, 38


def read_units(data: bytes) -> tuple[Unit, ...]:
    """The units of an index that `read_index` has found good, those of a kernel and target in the spec's order."""
    tables = IndexTables(data)
    rows = [tables.record("units", number) for number in range(tables.span("units")[1])]
    return tuple(_read_unit(tables, row) for row in sorted(rows, key=lambda row: int(row[_UNIT_ORDER])))


def _read_unit(tables: IndexTables, row: tuple[Any, ...]) -> Unit:
    named = parse_unit_text(tables.text(row[0]))
    kernel = tables.record("kernels", row[_UNIT_KERNEL])
    about = parse_about(tables.text(row[_UNIT_ABOUT]))
    module, _, function = tables.text(kernel[_KERNEL_SOURCE]).rpartition(":")
    return Unit(
        variant=named.variant,
        target=named.target,
        source=Source("", module, function),
        arguments=(
            *_run_time_arguments(tables, kernel, row, about),
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


def _run_time_arguments(
    tables: IndexTables, kernel: tuple[Any, ...], unit: tuple[Any, ...], about: Mapping[str, Any]
) -> list[Argument]:
    first_argument, arguments = kernel[_KERNEL_ARGUMENTS]
    first_slot, _ = kernel[_KERNEL_SLOTS]
    promises = _promises(tables, unit)
    hinted = {hint.argument: hint.divisor for hint in parse_unit_text(tables.text(unit[0])).variant.hints}
    values = dict(each.split("==") for each in about["holds"] if "==" in each)
    found = []
    for number in range(first_argument, first_argument + arguments):
        place, start, count, *_ = tables.record("arguments", number)
        slots = range(start - first_slot, start - first_slot + count)
        kinds = {kind: value for slot in slots for kind, value in promises.get(slot, ())}
        name = tables.text(place)
        held = values.get(name)
        equal = int(held) if held is not None and HINT_KINDS["equal"] in kinds else None
        is_one = equal is None and held == "1"
        found.append(
            Argument(
                name,
                about["types"][name],
                constant=is_one,
                value=1 if is_one else None,
                divisibility=kinds.get(HINT_KINDS["divisible"], _implied(hinted.get(name, 0))),
                range32=HINT_KINDS["range32"] in kinds,
                equal=equal,
            )
        )
    return found


def _implied(divisor: int) -> int:
    """What a hint says of divisibility, for which no promise stands beside it."""
    return divisor if divisor > 1 else 0


def _promises(tables: IndexTables, unit: tuple[Any, ...]) -> dict[int, list[tuple[int, int]]]:
    """By slot, the kind and the divisor of what is promised of it."""
    first, count = unit[_UNIT_PROMISES]
    promises: dict[int, list[tuple[int, int]]] = {}
    for number in range(first, first + count):
        slot, kind, divisor = tables.record("hints", number)
        promises.setdefault(slot, []).append((kind, divisor))
    return promises
