"""For which sizes which config is taken. In: problems of a kernel and device with their times, the configs that ship.
Out: rows of the selection table, in the order in which they are tried.

Goes into candidates. A size that was measured gets the best of what ships. One between measured sizes gets what is
least bad on both of those that bracket it: the nearest that is smaller in nothing, and the nearest that is larger in
nothing. What is compared are the sizes, or products of them where these tell better what a size that was not measured
would get.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from precast.tuning.choosing import TIE, Times, choose_default, mean_of, slowdowns

Condition = tuple[str, str, int]  # expression, relation, bound
Span = tuple[int | None, int | None]  # from, and below what: None without an end

Feature = tuple[str, ...]  # sizes that are multiplied

EXACT, BUCKET, DEFAULT = "exact", "bucket", "default"
MOST_CELLS = 4096
FEW_PROBLEMS = 6  # that say too little of products
MOST_MULTIPLIED = 4
WORTH_A_PRODUCT = 1.02  # products that gain less are not worth a longer table


@dataclass(frozen=True)
class Measured:
    """One problem: axes that a call gives, sizes by argument, a time for each config."""

    axes: Mapping[str, Any]
    sizes: Mapping[str, int]
    times: Times


@dataclass(frozen=True)
class Row:
    """Where all conditions hold, and the call gives no other axes than these, the config is taken."""

    tier: str
    conditions: tuple[Condition, ...]
    axes: tuple[tuple[str, Any], ...]  # that a call gives
    config: int


def make_rows(problems: Sequence[Measured], chosen: Sequence[int]) -> tuple[Row, ...]:
    """The rows of one kernel and device: exact ones, buckets and a default for each set of given axes; last a default
    for all others."""
    groups: dict[tuple[tuple[str, Any], ...], list[Measured]] = {}
    for each in problems:
        groups.setdefault(tuple(sorted(each.axes.items())), []).append(each)
    rows = [row for axes, members in groups.items() for row in _rows_of(axes, members, chosen)]
    rows.sort(key=lambda row: (EXACT, BUCKET, DEFAULT).index(row.tier))
    last = Row(DEFAULT, (), (), choose_default([each.times for each in problems], chosen))
    return (*rows, last) if problems else ()


def _rows_of(axes: tuple[tuple[str, Any], ...], problems: Sequence[Measured], chosen: Sequence[int]) -> Iterator[Row]:
    space = make_space(problems, chosen)
    for each in problems:
        losses = slowdowns(each.times)
        best = min(chosen, key=lambda number: (losses[number], chosen.index(number)))
        conditions = tuple((name, "==", size) for name, size in each.sizes.items())
        yield Row(EXACT, conditions, axes, best)
    for spans, config in space.boxes():
        if config != space.default:
            yield Row(BUCKET, tuple(_conditions(spans)), axes, config)
    yield Row(DEFAULT, (), axes, space.default)


def _conditions(spans: Iterable[tuple[str, Span]]) -> Iterator[Condition]:
    for name, (first, after) in spans:
        if first is not None:
            yield name, ">=", first
        if after is not None:
            yield name, "<", after


class Space:
    """All sizes of problems that differ in sizes alone, as cells between and at those that were measured."""

    def __init__(
        self, problems: Sequence[Measured], chosen: Sequence[int], features: Sequence[Feature] | None = None
    ) -> None:
        self._chosen = tuple(chosen)
        self._table = [slowdowns(each.times) for each in problems]
        self.default = choose_default([each.times for each in problems], chosen)
        columns = {name: {each.sizes[name] for each in problems} for name in problems[0].sizes}
        names = tuple(name for name, values in columns.items() if len(values) > 1)
        plain = tuple((name,) for name in names)
        self._features = plain if features is None else tuple(features)
        values = [[math.prod(each.sizes[name] for name in feature) for each in problems] for feature in self._features]
        self._spans = _cut([sorted(set(column)) for column in values])
        self._points = [tuple(_log(column[number]) for column in values) for number in range(len(problems))]
        self.names = names

    def loss_of_unseen(self) -> float:
        """What problems would lose, if each were not measured and the others were."""
        found = ((row, self.config_at(point, number)) for number, (row, point) in
                 enumerate(zip(self._table, self._points, strict=True)))  # fmt: skip
        return mean_of(row[config] for row, config in found)

    def boxes(self) -> Iterator[tuple[tuple[tuple[str, Span], ...], int]]:
        """Boxes that part the space, each with its config; what lies side by side with one config is one."""
        texts = [" * ".join(feature) for feature in self._features]
        if texts:
            for spans, config in self._part(0, ()):
                yield tuple(zip(texts, spans, strict=True)), config

    def _part(self, place: int, before: tuple[Span, ...]) -> list[tuple[tuple[Span, ...], int]]:
        """The boxes of the dimensions from `place` on, where those before it are known."""
        if place == len(self._features):
            return [((), self.config_at(tuple(map(_middle, before))))]
        parts: list[tuple[Span, list[tuple[tuple[Span, ...], int]]]] = []
        for span in self._spans[place]:
            inner = self._part(place + 1, (*before, span))
            if parts and parts[-1][1] == inner:
                parts[-1] = ((parts[-1][0][0], span[1]), inner)
            else:
                parts.append((span, inner))
        return [((span, *spans), config) for span, inner in parts for spans, config in inner]

    def config_at(self, point: Sequence[float], without: int = -1) -> int:
        """The config that is least bad on the measured problems which bracket a point, given as logarithms; one of them
        may be left out."""
        rows = [self._table[number] for number in self._brackets(tuple(point), without)]
        scores = {number: max(row[number] for row in rows) for number in self._chosen}
        limit = min(scores.values()) * TIE
        if scores[self.default] <= limit:
            return self.default
        close = [number for number in self._chosen if scores[number] <= limit]
        return min(close, key=lambda number: (mean_of(row[number] for row in rows), self._chosen.index(number)))

    def _brackets(self, point: tuple[float, ...], without: int) -> tuple[int, ...]:
        """The nearest problem that is larger in nothing and the nearest that is smaller in nothing; where there is
        none, the nearest of all."""
        numbers = [number for number in range(len(self._points)) if number != without]
        below = [each for each in numbers if all(a <= b for a, b in zip(self._points[each], point, strict=True))]
        above = [each for each in numbers if all(a >= b for a, b in zip(self._points[each], point, strict=True))]

        def distance(number: int) -> tuple[float, int]:
            return sum(abs(a - b) for a, b in zip(self._points[number], point, strict=True)), number

        return tuple(dict.fromkeys(min(side or numbers, key=distance) for side in (below, above)))


def make_space(problems: Sequence[Measured], chosen: Sequence[int]) -> Space:
    """The space of the sizes, or one of their products: the product of all, or of all but one beside that one."""
    space = Space(problems, chosen)
    names = space.names
    if not 2 <= len(names) <= MOST_MULTIPLIED or len(problems) < FEW_PROBLEMS:
        return space
    splits = [(tuple(each for each in names if each != name), (name,)) for name in names] if len(names) > 2 else []
    others = [Space(problems, chosen, features) for features in ((names,), *splits)]
    best = min(others, key=Space.loss_of_unseen)
    return best if best.loss_of_unseen() * WORTH_A_PRODUCT < space.loss_of_unseen() else space


def _cut(columns: Sequence[Sequence[int]]) -> list[list[Span]]:
    """The cells of each dimension: at its values and between them; coarser where all of them together are too many."""
    values = [list(column) for column in columns]
    fine = [True] * len(values)
    while math.prod(_count(*each) for each in zip(values, fine, strict=True)) > MOST_CELLS:
        largest = max(range(len(values)), key=lambda place: _count(values[place], fine[place]))
        if fine[largest]:
            fine[largest] = False
        else:
            values[largest] = values[largest][::2]
    return [_spans(column, is_fine) for column, is_fine in zip(values, fine, strict=True)]


def _count(values: Sequence[int], fine: bool) -> int:
    return 2 * len(values) + 1 if fine else len(values) + 1


def _spans(values: Sequence[int], fine: bool) -> list[Span]:
    ends = sorted({end for value in values for end in ((value, value + 1) if fine else (value,))})
    return list(itertools.pairwise((None, *ends, None)))


def _middle(span: Span) -> float:
    """The logarithm of a size in a span: its only one, or the geometric mean of its ends."""
    first, after = span
    if first is None:
        return _log(after or 0) - 1
    if after is None:
        return _log(first) + (1 if first else 0)
    return _log(first) if after == first + 1 else (_log(first) + _log(after)) / 2


def _log(size: int) -> float:
    return math.log2(max(size, 1))
