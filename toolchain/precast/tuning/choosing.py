"""Which configs of a kernel ship. In: times of every problem with every config. Out: few configs that lose little.

Goes into candidates. Times may be in any unit; None is a config that did not run, or computed something else.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence

Times = Sequence[float | None]

LOST = 100.0  # what it counts as that no config at hand runs a problem
TIE = 1.02  # so close, what ships already stays
WORTH = 1.001  # an addition that gains less ships nothing


def slowdowns(times: Times) -> tuple[float, ...]:
    """Each config's time over the best one's."""
    best = min((each for each in times if each is not None), default=None)
    return tuple(LOST if best is None or each is None else each / best for each in times)


def mean_of(values: Iterable[float]) -> float:
    """The geometric mean; 1 of nothing."""
    logs = [math.log(each) for each in values]
    return math.exp(sum(logs) / len(logs)) if logs else 1.0


def choose_configs(problems: Sequence[Times], author: int, ships: Collection[int], most: int) -> tuple[int, ...]:
    """At most `most` configs by number, in the order in which they were taken; `author` first, as the last resort of
    calls that nothing was measured for.

    Each next one lowers the geometric mean, over the problems, of the time of the best one taken; the worst problem
    breaks ties. Of those within `TIE` of the lowest, one that ships already is taken.
    """
    table = [slowdowns(times) for times in problems]
    chosen = [author]
    reached = [row[author] for row in table]
    left = [number for number in range(len(table[0]) if table else 0) if number != author]
    while left and len(chosen) < most:
        scores = {number: _score(table, reached, number) for number in left}
        lowest = min(scores.values())[0]
        if mean_of(reached) < lowest * WORTH:
            break
        close = [number for number in left if number in ships and scores[number][0] <= lowest * TIE]
        gains = [number for number in close if scores[number][0] * WORTH <= mean_of(reached)]
        taken = min(gains or left, key=lambda number: (scores[number], number))
        chosen.append(taken)
        left.remove(taken)
        reached = [min(before, row[taken]) for before, row in zip(reached, table, strict=True)]
    return tuple(chosen)


def _score(table: Sequence[Sequence[float]], reached: Sequence[float], number: int) -> tuple[float, float]:
    """Geometric mean and worst case with one more config."""
    together = [min(before, row[number]) for before, row in zip(reached, table, strict=True)]
    return mean_of(together), max(together)


def choose_default(problems: Sequence[Times], chosen: Sequence[int]) -> int:
    """The config that loses least over all problems, for calls that are like none of them."""
    table = [slowdowns(times) for times in problems]

    def loss(number: int) -> tuple[float, float, int]:
        column = [row[number] for row in table]
        return mean_of(column), max(column, default=1.0), chosen.index(number)

    return min(chosen, key=loss)
