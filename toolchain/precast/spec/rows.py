"""Rows of the selection table that a spec states itself: `[[kernel.NAME.selection]]`.

In: a kernel's table and its spec. Out: `StatedRow`s in the file's order, and errors at their places.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from precast.errors import Place, nearest_hint
from precast.grid import COMPARISONS, parse_requirement
from precast.spec.matrix import read_constant
from precast.spec.model import Constant, KernelSpec
from precast.spec.problem import Condition, StatedRow
from precast.spec.table import KernelTable
from precast.spec.toml import Node

_WORD = re.compile(r"[A-Za-z_]\w*")
_ALONE = re.compile(r"\w+|\(0 - [0-9]+\)")  # that needs no parentheses
_SIGN = re.compile(r"[<>=!]=|[<>]")


def read_rows(table: KernelTable, spec: KernelSpec, axes: Mapping[str, Collection[Constant]]) -> tuple[StatedRow, ...]:
    """The rows; `axes` are the kernel's with all of their values."""
    found = []
    for item in table.fields["selection"].tables() if "selection" in table.fields else ():
        with table.problems.collect():
            found.append(_read_row(table, spec, item, axes))
    return tuple(found)


def _read_row(table: KernelTable, spec: KernelSpec, node: Node, axes: Mapping[str, Collection[Constant]]) -> StatedRow:
    fields = node.table()
    taken = {name: _read_value(table, spec, name, fields[name], axes) for name in fields if name != "when"}
    if not taken:
        raise node.key_error("the row takes nothing", f"write a value of {', '.join(axes) or 'an axis'}")
    numbers = {name: value for name, value in taken.items() if type(value) is int}
    integers = [each.name for each in spec.arguments if each.type[:1] in "iu{"]
    conditions = fields["when"].items() if "when" in fields else []
    return StatedRow(tuple(_read_condition(each, integers, numbers) for each in conditions), tuple(taken.items()))


def _read_value(
    table: KernelTable, spec: KernelSpec, name: str, node: Node, axes: Mapping[str, Collection[Constant]]
) -> Constant:
    if name not in axes:
        message = f"there is no axis `{name}`"
        raise node.key_error(message, nearest_hint(name, [*axes, "when"], "names"))
    value = read_constant(table, node)
    if not any(type(value) is type(each) and value == each for each in axes[name]):
        raise node.error(f"no variant of `{spec.name}` has {name}={node.value}")
    return value


def _read_condition(node: Node, integers: Collection[str], numbers: Mapping[str, int]) -> Condition:
    found = parse_condition(node.text(), integers, numbers, node.inside)
    if not any(word in integers for word in _WORD.findall(found.expression)):
        raise node.error(f"`{node.text()}` is the same for every call", "compare an integer argument")
    return found


def parse_condition(
    text: str, integers: Collection[str], numbers: Mapping[str, int], where: Place | None = None
) -> Condition:
    """A comparison with a number on its right side; what the row itself takes, `numbers`, is a number too."""
    parse_requirement(text, {*integers, *numbers}, where)
    known = _WORD.sub(lambda word: _state(numbers[word[0]]) if word[0] in numbers else word[0], text)
    sign = next(each for each in _SIGN.findall(known) if each in COMPARISONS)
    left, right = (side.strip() for side in known.split(sign, 1))
    if re.fullmatch("[0-9]+", right):
        return Condition(left, sign, int(right))
    return Condition(f"{left} - {right}" if _ALONE.fullmatch(right) else f"{left} - ({right})", sign, 0)


def _state(number: int) -> str:
    """A number in the grid language, which has no sign."""
    return str(number) if number >= 0 else f"(0 - {-number})"
