"""What a program launched, as problems that tuning measures: `[[kernel.NAME.problem]]` rows.

In: what launches were given, how many there were of each, the rows that a kernel has. Out: the rows that are missing,
the most frequent first, and what is said of those that are too many.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import tomlkit
from tomlkit.items import AoT, Array

from precast.errors import SpecError
from precast.grid import fold, parse_value
from precast.launch.package.specs import Table, format_toml
from precast.recording.grids import find_expressions
from precast.recording.kernels import make_entry, make_item
from precast.recording.notes import Problem

MOST_PROBLEMS = 16  # of a kernel: what is measured takes seconds for each
_ROW_INTEGERS = range(-(2**63), 2**63)


@dataclass(frozen=True)
class Given:
    """Launches that are one problem: the axes that are not tuned, what one of them was given, how many there were."""

    axes: Table
    problem: Problem

    @property
    def key(self) -> str:
        numbers = {name: self.problem.numbers[name] for name in self.problem.telling}
        shapes = {name: self.problem.shapes[name] for name in self._descriptors()}
        return format_toml([self.axes, numbers, shapes])

    def _descriptors(self) -> list[str]:
        return [name for name in self.problem.shapes if self.problem.launch.types[name].startswith("tensordesc")]

    def integers(self) -> dict[str, int]:
        """What expressions may name."""
        every = {**self.axes, **self.problem.numbers}
        return {name: value for name, value in every.items() if type(value) is int}

    def is_of(self, row: Mapping[str, Any]) -> bool:
        """Whether a row of the kernel is this problem, or has it among others."""
        axes = all(_has(row[name], value) for name, value in self.axes.items() if name in row)
        numbers = all(
            self._agrees(row[name], self.problem.numbers[name]) for name in self.problem.telling if name in row
        )
        shapes = (
            (row[name], self.problem.shapes[name]) for name in self._descriptors() if isinstance(row.get(name), list)
        )
        return (
            axes
            and numbers
            and all(
                all(self._agrees(each, size) for each, size in zip(said, shape, strict=False)) for said, shape in shapes
            )
        )

    def _agrees(self, said: Any, value: float) -> bool:
        if not isinstance(said, str):
            return _has(said, value)
        integers = self.integers()
        try:
            return fold(parse_value(said, set(integers)), integers) == value
        except SpecError:
            return False


def _has(said: Any, value: Any) -> bool:
    return any(format_toml(each) == format_toml(value) for each in (said if isinstance(said, list) else [said]))


def add_up(found: Iterable[Given]) -> list[Given]:
    """Each problem once, the most frequent first, as it was most often given."""
    most: dict[str, Given] = {}
    counts: dict[str, int] = {}
    for each in found:
        key, count = each.key, each.problem.count
        if key not in most or count > most[key].problem.count:
            most[key] = each
        counts[key] = counts.get(key, 0) + count
    every = [replace(each, problem=replace(each.problem, count=counts[key])) for key, each in most.items()]
    return sorted(every, key=lambda each: -each.problem.count)


def can_be_stated(problem: Problem) -> bool:
    """Whether a row of a file has its integers, which are of 64 bits with a sign."""
    return all(type(value) is not int or value in _ROW_INTEGERS for value in problem.numbers.values())


def find_fault(found: Sequence[Given], tuned: Collection[str], changing: Collection[str]) -> str:
    """Why no problem can be stated of a kernel; empty where they can."""
    unknown = [name for each in found for name in each.problem.unknown]
    if unknown:
        return f"`{unknown[0]}` is no number, and has no `shape`"
    if set(changing) - set(tuned):
        return f"`{min(set(changing) - set(tuned))}` is another for each config, and no config sets it"
    return ""


def make_rows(
    found: Sequence[Given], before: Sequence[Mapping[str, Any]], types: Mapping[str, str]
) -> list[tuple[Table, int]]:
    """The rows that are missing, each with how many launches it stands for. `types` are those of the kernel's table."""
    texts = _find_texts(found)
    return [
        (_make_row(each, types, texts), each.problem.count)
        for each in found
        if not any(each.is_of(row) for row in before)
    ]


def _make_row(given: Given, types: Mapping[str, str], texts: Mapping[str, str]) -> Table:
    row = {name: [value] if isinstance(value, list) else value for name, value in given.axes.items()}
    for name in types:
        if name in texts:
            row[name] = texts[name]
        elif name in given.problem.numbers:
            row[name] = given.problem.numbers[name]
        elif name in given.problem.shapes:
            shape = given.problem.shapes[name]
            is_descriptor = given.problem.launch.types[name].startswith("tensordesc")
            row[name] = list(shape) if is_descriptor else shape[0]
    return row


def _find_texts(found: Sequence[Given]) -> dict[str, str]:
    """Integers and numbers of elements that all problems leave one expression of others."""
    texts: dict[str, str] = {}
    numbers = (
        [name for name in found[0].problem.telling if all(name in each.problem.numbers for each in found)]
        if found
        else []
    )
    values = [each.integers() for each in found]
    for place, name in enumerate(numbers):
        column = [each[name] for each in values]
        same = [other for other in numbers[:place] if other not in texts and [each[other] for each in values] == column]
        if len(set(column)) > 1 and len(same) == 1:
            texts[name] = same[0]
    free = [name for name in numbers if name not in texts]
    tensors = found[0].problem.shapes if found else {}
    for name in tensors:
        shapes = [each.problem.shapes.get(name, ()) for each in found]
        if all(len(shape) == 1 for shape in shapes) and len(set(shapes)) > 1:
            choices = find_expressions(values, [shape[0] for shape in shapes], free, [])
            texts.update({name: choices[0]} if len(choices) == 1 else {})
    return texts


def drop_unknown(kernel: Any, names: Collection[str]) -> None:
    """Takes out of a kernel's rows what has another name since the kernel has more variants."""
    for row in kernel.get("problem", []):
        for name in [name for name in row if name not in names]:
            del row[name]


def put_names(kernel: Any, names: Sequence[str]) -> None:
    """Says what is tuned."""
    if "tune" in kernel:
        kernel["tune"] = make_item(list(names))
    else:
        kernel.add("tune", make_item(list(names)))


def put_rows(kernel: Any, rows: Sequence[tuple[Table, int]]) -> None:
    """Adds rows to a kernel of a parsed file, behind those that it has."""
    if rows and "problem" not in kernel:
        kernel["problem"] = tomlkit.parse(render_rows(rows))["problem"]
        return
    array = kernel["problem"]
    for row, count in rows:
        if isinstance(array, Array):
            array.add_line(make_item(row), comment=_count(count))
        elif isinstance(array, AoT):
            array.append(make_entry(row))


def render_rows(rows: Sequence[tuple[Table, int]]) -> str:
    """The rows of a kernel that has none, a line for each."""
    lines = "".join(f"    {format_toml(row)}, # {_count(count)}\n" for row, count in rows)
    return f"problem = [\n{lines}]\n"


def _count(launches: int) -> str:
    return "1 launch" if launches == 1 else f"{launches} launches"
