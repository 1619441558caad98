"""What outside code may change in a process and others would see: environment, folder, limits, Triton's knobs.

In: code of a plugin's author. Out: the same process as before it ran. So a pass decides nothing but the IR that it is
given, whether a stage's result comes from a run or from the store.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from precast.engines.triton.v3_9 import knob_groups

Knobs = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Surroundings:
    """What they were at one moment."""

    environment: dict[str, str]
    folder: str
    recursion_limit: int
    knobs: Knobs

    def restore(self) -> None:
        """Makes them so again."""
        for name in [each for each in os.environ if each not in self.environment]:
            del os.environ[name]
        for name, value in self.environment.items():
            if os.environ.get(name) != value:
                os.environ[name] = value
        os.chdir(self.folder)
        sys.setrecursionlimit(self.recursion_limit)
        set_knobs(self.knobs)


def read_knobs() -> Knobs:
    """Triton's settings now, by group and name."""
    return {name: dict(vars(group)) for name, group in knob_groups()}


def set_knobs(values: Knobs) -> None:
    """Makes Triton's settings what they were when `values` was read."""
    for name, group in knob_groups():
        vars(group).clear()
        vars(group).update(values[name])


def look_around() -> Surroundings:
    """The surroundings now."""
    return Surroundings(dict(os.environ), os.getcwd(), sys.getrecursionlimit(), read_knobs())


@contextlib.contextmanager
def kept_surroundings() -> Iterator[None]:
    """Leaves the process as it was before the block."""
    before = look_around()
    try:
        yield
    finally:
        before.restore()
