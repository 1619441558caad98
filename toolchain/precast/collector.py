"""The garbage collector at rest, while very many values are made that live on: it would look through all of them over
and over, and find nothing. In: a block of code, a function, or a process of one command. Out: the same, in less time.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_SELDOM = 50_000  # values that were made and live on, from one search to the next


def look_seldom() -> None:
    """For a process of one command, from its start."""
    gc.set_threshold(_SELDOM)


def look_no_more() -> None:
    """For the end of a process, which would look through all that it holds once more: a tenth of a second, where that
    is a release of thousands of units."""
    gc.freeze()


@contextmanager
def resting() -> Iterator[None]:
    """No search for circles in the block; what they hold goes after it, with what has lived for long."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            _count_as_old()
            gc.enable()


def _count_as_old() -> None:
    """Takes all that there is for old, unless somebody keeps values from being looked through. What a block at rest
    has made would count as young else, and be looked through at once."""
    if not gc.get_freeze_count():
        gc.freeze()
        gc.unfreeze()
