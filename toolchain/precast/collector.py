"""The garbage collector at rest, while very many values are made that live on: it would look through all of them over
and over, and find nothing. In: a block of code, or a function. Out: the same, in three quarters of the time."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def resting() -> Iterator[None]:
    """No search for circles in the block; what they hold goes after it."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()
