"""Units as tables: one for each kernel, with a column for each axis. In: units and what is known of them. Out: lines.

A table for a terminal fits it: the widest cells are cut first, and the units' texts, which name all that the other
columns say, stand at the end where there is room. A pipe or a file gets everything, each unit on one line.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from rich.cells import cell_len

from precast.errors import SpecError, escape_controls, nearest_hint
from precast.progress.fitting import fit_text
from precast.spec.model import Variant, format_constant
from precast.spec.naming import MOST_SHOWN_HINTS, shorten_unit_text
from precast.target import Target

ABSENT = "–"
GAP = "  "
LEAST_COLUMNS = 4  # of a cell that is cut
UNIT, TARGET, HINTS = "unit", "target", "hints"
Value = str | int | None
Item = TypeVar("Item")


@dataclass(frozen=True)
class Cell:
    """`text` is what is shown, `value` what is sorted by; None for what is not known."""

    text: str
    value: Value

    @property
    def order(self) -> tuple[int, int, str]:
        if self.value is None:
            return 2, 0, ""
        return (0, self.value, "") if isinstance(self.value, int) else (1, 0, self.value)


NOTHING = Cell(ABSENT, None)


@dataclass(frozen=True)
class Row:
    """One unit: its name's parts, and further cells by column."""

    variant: Variant
    target: Target
    facts: dict[str, Cell]

    def cells(self) -> dict[str, Cell]:
        axes = {name: _axis_cell(format_constant(value)) for name, value in self.variant.values}
        text = f"{self.variant}@{self.target}"
        return {
            TARGET: Cell(str(self.target), str(self.target)),
            **axes,
            **_hint_cell(list(map(str, self.variant.hints))),
            **self.facts,
            UNIT: Cell(shorten_unit_text(text), text),
        }


def _hint_cell(hints: list[str]) -> dict[str, Cell]:
    """The column of hints: of many the first, and how many follow."""
    shown = (
        hints
        if len(hints) <= MOST_SHOWN_HINTS + 1
        else [*hints[:MOST_SHOWN_HINTS], f"…+{len(hints) - MOST_SHOWN_HINTS}"]
    )
    return {HINTS: Cell(",".join(shown), ",".join(hints))} if hints else {}


def _axis_cell(text: str) -> Cell:
    return Cell(text, int(text) if text.lstrip("-").isdigit() else text)


def number_cell(value: int | None) -> Cell:
    return NOTHING if value is None else Cell(str(value), value)


def size_cell(count: int | None) -> Cell:
    """Bytes, in the unit that leaves at most four digits."""
    if count is None:
        return NOTHING
    if count < 1024:
        return Cell(f"{count} B", count)
    size, units = count / 1024, ("KiB", "MiB", "GiB")
    power = next((each for each in range(len(units) - 1) if size < 1024 ** (each + 1)), len(units) - 1)
    return Cell(f"{size / 1024**power:.1f} {units[power]}", count)


def sort_units(units: Sequence[Item], row_of: Callable[[Item], Row], column: str) -> list[Item]:
    """By the cells of a column, downwards for `-column`; those that have none last. As they were for "".

    `SpecError` for a column that none of them has.
    """
    name = column.removeprefix("-")
    if not name or not units:
        return list(units)
    cells = [row_of(unit).cells() for unit in units]
    known = {each for found in cells for each in found}
    if name not in known:
        raise SpecError(f"there is no column `{name}`", hint=nearest_hint(name, known, "columns"))
    having = [place for place, found in enumerate(cells) if found.get(name, NOTHING) != NOTHING]
    having.sort(key=lambda place: cells[place][name].order, reverse=column.startswith("-"))
    return [units[place] for place in [*having, *sorted(set(range(len(units))).difference(having))]]


def render_table(rows: Sequence[Row], columns: int | None) -> Iterator[str]:
    """The lines of one kernel's table, header first; `columns` is the terminal's width, None without one."""
    cells = [row.cells() for row in rows]
    names = [name for name in _columns_of(cells) if any(row.get(name, NOTHING) != NOTHING for row in cells)]
    texts = [names, *[[escape_controls(row.get(name, NOTHING).text) for name in names] for row in cells]]
    right = [all(isinstance(row.get(name, NOTHING).value, int | None) for row in cells) for name in names]
    widths = [max(cell_len(line[place]) for line in texts) for place in range(len(names))]
    if columns is not None and _whole(widths) > columns:
        right, widths = right[:-1], _narrow(widths[:-1], columns)  # without the units' texts
        if _whole(widths) > columns:
            yield from _stack(rows, columns)
            return
    for line in texts:
        fitted = [_place(*each) for each in zip(line, widths, right, strict=False)]
        yield GAP.join(fitted).rstrip()


def _whole(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _stack(rows: Sequence[Row], columns: int) -> Iterator[str]:
    """What is no table any more: each unit's text, and below it what is known of it."""
    for row in rows:
        yield fit_text(escape_controls(row.cells()[UNIT].text), columns)
        known = (f"{name} {cell.text}" for name, cell in row.facts.items() if cell != NOTHING)
        lines = textwrap.wrap(", ".join(known), max(columns - len(GAP), 1), break_on_hyphens=False)
        yield from (GAP + line for line in lines)


def _columns_of(cells: Sequence[dict[str, Cell]]) -> list[str]:
    """All columns, in the order in which rows have them, the unit's last."""
    return [*(name for name in dict.fromkeys(name for row in cells for name in row) if name != UNIT), UNIT]


def _narrow(widths: list[int], columns: int) -> list[int]:
    """Widths that fit, each as near to the wanted one as the others allow."""
    room = columns - len(GAP) * (len(widths) - 1)
    limit = max(widths, default=0)
    while limit > LEAST_COLUMNS and sum(min(width, limit) for width in widths) > room:
        limit -= 1
    return [min(width, limit) for width in widths]


def _place(text: str, width: int, right: bool) -> str:
    fitted = fit_text(text, width)
    space = " " * (width - cell_len(fitted))
    return space + fitted if right else fitted + space
