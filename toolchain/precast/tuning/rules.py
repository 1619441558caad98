"""The selection table of a release, as values. In: nothing. Out: the rules that an index and a manifest hold."""

from __future__ import annotations

from dataclasses import dataclass

from precast.keyed import Keyed
from precast.spec.model import Constant, Spelled
from precast.spec.problem import Condition as Condition

Plain = str | bool | int | float | None

MOST_ROWS = 4096  # of one kernel over all targets: the runtime's PRECAST_MOST_ROWS


@dataclass(frozen=True)
class SelectionRule(Keyed):
    """One row of the tuning table: where all conditions hold, axes that a call leaves out get these values.

    Rows are tried in order; one that contradicts an axis the call does give is passed over. Those of the device that a
    call runs on count; where there are none, those of the first device of the table that has its target.
    """

    kernel: str
    conditions: tuple[tuple[str, str, int], ...]  # each a `Condition`
    axes: tuple[tuple[str, Plain], ...]
    device: str = ""  # as its driver calls it; "" for any
    target: str = ""  # whose units were measured; "" for any
    row: str = ""  # for people: its tier, and the evidence that it comes from


@dataclass(frozen=True)
class SelectionPart:
    """The rows of one kernel."""

    rules: tuple[SelectionRule, ...]


def plain(value: Constant) -> Plain:
    """An axis value as JSON has it, and as a call from Python gives it."""
    return value.text if isinstance(value, Spelled) else value
