"""Problems that tuning measures, as `[[kernel.NAME.problem]]` states them. In: nothing. Out: types for later levels."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

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


class Condition(NamedTuple):
    """`expression relation bound`, over a kernel's integer arguments, in the grid language."""

    expression: str
    relation: str  # < <= == != >= >
    bound: int


@dataclass(frozen=True)
class StatedRow:
    """One `[[kernel.NAME.selection]]`: where all conditions hold, a call gets the axes that it leaves out."""

    conditions: tuple[tuple[str, str, int], ...]  # each a `Condition`
    axes: tuple[tuple[str, Constant], ...]


@dataclass(frozen=True)
class Tuning:
    """What of a kernel is tuned, how many configs of it ship at most, and what it takes where nothing was measured."""

    problems: tuple[Problem, ...] = ()
    axes: tuple[str, ...] = ()  # that a choice decides: none in a spec without problems and `tune`
    ship: int = MOST_SHIPPED
    rows: tuple[StatedRow, ...] = ()
    where: Place | None = field(default=None, compare=False)
