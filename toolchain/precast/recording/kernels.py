"""Kernels of a spec file as the variants that they make, and variants put into such a kernel.

In: tables of a parsed file, variants. Out: variants; a table that makes more. What a table had before, comments and
order too, stays as it was.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Mapping, MutableMapping, Sequence
from typing import Any

import tomlkit
from tomlkit.items import AoT, Array, Item

from precast.launch.package.specs import SECTIONS, Table, Variant, format_toml
from precast.spec.matrix import AXIS_PLACE

# What `read_variants` understands. A kernel that says more is its author's, and nothing is put into it.
_KEYS = frozenset(
    {"source", "grid", "only", "configs", "hints", "matrix", "selection", "problem", "tune", "ship", *SECTIONS}
)
_ARGUMENT_KEYS = frozenset({"type", "align", "equal", "range32"})
ASSUMED = "assumed:"


def read_variants(kernel: Table, constexprs: Collection[str]) -> list[Variant] | None:
    """The variants that a kernel's table makes; None for one that says more than recording writes.

    `constexprs` are those of its source: of the names in `configs` and `matrix`, others are options or places.
    """
    arguments = {name: each if isinstance(each, dict) else {"type": each} for name, each in _table(kernel, "args")}
    matrix = dict(_table(kernel, "matrix"))
    configs, hints = kernel.get("configs", [{}]), kernel.get("hints", [[]])
    known = kernel.keys() <= _KEYS and all(
        each.keys() <= _ARGUMENT_KEYS and each.get("equal", 1) == 1 for each in arguments.values()
    )
    arrays = [configs, hints, *matrix.values()]
    if not known or "exclude" in matrix or not all(isinstance(each, list) for each in arrays):
        return None
    return [
        _make_variant(kernel, arguments, {**dict(zip(matrix, chosen, strict=True)), **config}, held, constexprs)
        for config in configs
        for chosen in itertools.product(*matrix.values())
        for held in hints
    ]


def _table(kernel: Table, key: str) -> list[tuple[str, Any]]:
    found = kernel.get(key, {})
    return list(found.items()) if isinstance(found, dict) else []


def _make_variant(
    kernel: Table, arguments: Mapping[str, Table], row: Table, held: Sequence[str], constexprs: Collection[str]
) -> Variant:
    """One combination of a row and a hint set. An argument that is absent in it has neither hints nor promises."""
    texts = {name: str(each.get("type", "")) for name, each in arguments.items()}
    places = {place for text in texts.values() for place in AXIS_PLACE.findall(text)}
    types = {name: AXIS_PLACE.sub(lambda found: str(row.get(found[1], "")), text) for name, text in texts.items()}
    present = {name: arguments[name] for name, kind in types.items() if kind != "none"}
    hints = {hint for hint in held if hint.partition("%")[0].partition("==")[0] in present}
    aligned = {f"{name}%16" for name, each in present.items() if each.get("align", 1) % 16 == 0}
    equal = {f"{name}==1" for name, each in present.items() if each.get("equal") == 1}
    values = {**dict(_table(kernel, "constants")), **{name: row[name] for name in row if name not in places}}
    return Variant(
        types,
        {name: values[name] for name in values if name in constexprs},
        {**dict(_table(kernel, "options")), **{name: values[name] for name in values if name not in constexprs}},
        frozenset(hints | aligned | equal),
        frozenset(name for name, each in present.items() if each.get("range32")),
    )


def mark_assumed(header: str, target: str) -> str:
    """The comment behind a kernel's header that says that it was recorded without a device; one says it once."""
    mark = f"{ASSUMED} recorded for {target} without a device"
    if ASSUMED in header:
        return header if target in header else header.replace(ASSUMED, f"{mark};", 1)
    return f"{header}; {mark}" if header else f"# {mark}"


def find_assumed_kernels(text: str) -> frozenset[str]:
    """The kernels of a spec file's text that have such a comment."""
    found = re.findall(rf"""^\[kernel\.["']?([^"'\]]+)["']?\][ \t]*#.*{ASSUMED} """, text, re.MULTILINE)
    return frozenset(found)


def put_table(kernel: MutableMapping[str, Any], wanted: Table) -> None:
    """Makes a kernel of a parsed file say what `wanted` does, and touches nothing that says so already."""
    for key in ("configs", "hints", "selection"):
        _put_array(kernel, key, wanted.get(key, []))
    for section in SECTIONS:
        entries = wanted.get(section, {})
        if entries and section not in kernel:
            kernel[section] = tomlkit.table()
        if section in kernel:
            _put_entries(kernel[section], entries)
            if not kernel[section]:
                del kernel[section]


def _put_entries(table: MutableMapping[str, Any], wanted: Mapping[str, Any]) -> None:
    for name in [name for name in table if name not in wanted]:
        del table[name]
    for name, value in wanted.items():
        if name not in table or _differ(table[name], value):
            table[name] = make_item(value)


def _put_array(kernel: MutableMapping[str, Any], key: str, wanted: Sequence[Any]) -> None:
    """Item by item, so that what is said of an item beside it stays."""
    if not wanted:
        kernel.pop(key, None)
        return
    if key not in kernel:
        kernel[key] = make_item(wanted)
        return
    array: Array | AoT = kernel[key]
    if isinstance(array, Array) and len(array) == 1 and len(wanted) > 1:
        array.multiline(True)
    for index, value in enumerate(wanted):
        if index == len(array):
            array.append(make_item(value) if isinstance(array, Array) else make_entry(value))
        elif isinstance(value, Mapping):
            _put_entries(array[index], value)
        elif _differ(array[index], value):
            array[index] = make_item(value)
    while len(array) > len(wanted):
        del array[-1]


def _differ(item: Any, value: Any) -> bool:
    return format_toml(item.unwrap() if hasattr(item, "unwrap") else item) != format_toml(value)


def make_entry(value: Table) -> tomlkit.items.Table:
    """A table of an array of tables."""
    table = tomlkit.table()
    for name, each in value.items():
        table.add(name, make_item(each))
    return table


def make_item(value: Any) -> Item:
    """A value as an item of a file, a line for each of several arrays or tables in it."""
    item = tomlkit.value(format_toml(value))
    if isinstance(item, Array) and len(item) > 1 and isinstance(value[0], (list, dict)):
        item.multiline(True)
    return item
