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

from triton import knobs

_GROUPS: tuple[Any, ...] = tuple(each for each in vars(knobs).values() if isinstance(each, knobs.base_knobs))


@dataclass(frozen=True)
class Surroundings:
    """What they were at one moment."""

    environment: dict[str, str]
    folder: str
    recursion_limit: int
    knobs: tuple[dict[str, Any], ...]

    def restore(self) -> None:
        """Makes them so again."""
        for name in [each for each in os.environ if each not in self.environment]:
            del os.environ[name]
        for name, value in self.environment.items():
            if os.environ.get(name) != value:
                os.environ[name] = value
        os.chdir(self.folder)
        sys.setrecursionlimit(self.recursion_limit)
        for group, values in zip(_GROUPS, self.knobs, strict=True):
            group.__dict__.clear()
            group.__dict__.update(values)


def look_around() -> Surroundings:
    """The surroundings now."""
    values = tuple(dict(group.__dict__) for group in _GROUPS)
    return Surroundings(dict(os.environ), os.getcwd(), sys.getrecursionlimit(), values)


@contextlib.contextmanager
def kept_surroundings() -> Iterator[None]:
    """Leaves the process as it was before the block."""
    before = look_around()
    try:
        yield
    finally:
        before.restore()
