"""The garbage collector at rest: what a block has made is looked through neither in it nor at its end."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from precast import collector


class Ring:
    """A value that holds itself."""

    def __init__(self) -> None:
        self.own = self


@pytest.fixture
def searched() -> Iterator[list[int]]:
    """How many values each search for circles would look through."""
    sizes: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            sizes.append(len(gc.get_objects(generation=0)))

    gc.collect()
    gc.callbacks.append(note)
    yield sizes
    gc.callbacks.remove(note)


def test_what_a_block_made_is_not_looked_through_at_its_end(searched: list[int]) -> None:
    with collector.resting():
        made = [[number] for number in range(100_000)]
    after = [[number] for number in range(10_000)]  # searched soon after
    assert searched and max(searched) < len(after) < len(made)


def test_circles_of_a_block_go_with_a_full_search() -> None:
    with collector.resting():
        gone = weakref.ref(Ring())
    assert gc.isenabled() and gone() is not None
    gc.collect()
    assert gone() is None


def test_what_is_kept_from_searches_stays_so() -> None:
    gc.freeze()
    try:
        kept = gc.get_freeze_count()
        with collector.resting():
            pass
        assert kept - 1_000 < gc.get_freeze_count() <= kept  # some of them may be gone
    finally:
        gc.unfreeze()


def test_a_rest_inside_a_rest_ends_with_the_outer_one() -> None:
    with collector.resting():
        with collector.resting():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
