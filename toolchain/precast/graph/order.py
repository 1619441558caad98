"""Which units are compiled first: the longest, so that no worker is left alone with one at the end.

In: units, and what some of them took when they were last compiled. Out: the same units in another order.
Units of one kernel stay together, because a worker that has a kernel's module loaded saves doing it again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from precast.graph.steps import UnitStep
from precast.spec.model import Unit

_LIMIT = 26  # no tile that compiles holds more than 2**26 of anything


@dataclass(frozen=True)
class Cost:
    """What compiling all of a unit took. Its text is the note of the unit's record in the index."""

    seconds: float
    peak_bytes: int = 0  # of memory

    def __str__(self) -> str:
        return f"{self.seconds} {self.peak_bytes}"

    @staticmethod
    def parse(text: str) -> Cost | None:
        """The cost that a note says; None where it says none."""
        with contextlib.suppress(ValueError):
            seconds, peak_bytes = text.split()
            return Cost(float(seconds), int(peak_bytes))
        return None


def longest_first(units: Iterable[UnitStep], seconds_of: Callable[[UnitStep], float | None]) -> tuple[UnitStep, ...]:
    """Kernels by their longest unit, within each the units by their time; equal ones stay in the order they had.

    `seconds_of` is None for a unit that is not known: its time is estimated.
    """
    kernels: dict[str, list[tuple[float, UnitStep]]] = {}
    for step in units:
        known = seconds_of(step)
        seconds = estimate_seconds(step.planned.unit) if known is None else known
        kernels.setdefault(step.planned.unit.kernel, []).append((seconds, step))
    groups = [sorted(group, key=_descending) for group in kernels.values()]
    return tuple(step for group in sorted(groups, key=lambda group: _descending(group[0])) for _, step in group)


def _descending(timed: tuple[float, UnitStep]) -> float:
    return -timed[0]


def estimate_seconds(unit: Unit) -> float:
    """A guess: some tenths for any unit, and a second for every million elements, or products of a dot, in a tile.

    The product of a unit's constants stands for these. Right only as an order.
    """
    constants = [each.value for each in unit.arguments if each.type == "constexpr" and isinstance(each.value, int)]
    size = sum(max(value.bit_length() - 1, 0) for value in constants)
    return 0.2 + 2.0 ** (min(size, _LIMIT) - 20)
