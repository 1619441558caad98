"""Problems that tuning measures, as `[[kernel.NAME.problem]]` states them. In: nothing. Out: types for later levels."""

from __future__ import annotations

from dataclasses import dataclass, field

from precast.errors import Place
from precast.grid import Expression
from precast.spec.spelling import Constant

MOST_SHIPPED = 8


@dataclass(frozen=True)
class ProblemArgument:
    """What a problem gives a run-time argument: a number, or what expressions say.

    Of an integer that is one expression, of a tensor its number of elements, of a descriptor its tensor's shape.
    """

    name: str
    numbers: tuple[int | float | bool, ...] = ()  # each makes a problem
    expressions: tuple[Expression, ...] = ()
    below: Expression | None = None  # of a tensor of integers: they are from 0 to less than that; else all are 0


@dataclass(frozen=True)
class Problem:
    """One table: every combination of its axes' values and its arguments' numbers is a problem."""

    axes: tuple[tuple[str, tuple[Constant, ...]], ...] = ()  # that the call gives, or that its tensors tell
    arguments: tuple[ProblemArgument, ...] = ()  # in the source's order; those left out have their default
    where: Place | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Tuning:
    """What of a kernel is tuned, and how many configs of it ship at most."""

    problems: tuple[Problem, ...] = ()
    axes: tuple[str, ...] = ()  # that a choice decides: none in a spec without problems and `tune`
    ship: int = MOST_SHIPPED
    where: Place | None = field(default=None, compare=False)
