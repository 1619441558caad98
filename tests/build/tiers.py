"""Which of a test's cases are for the first tier: those that are named; the second has the others too."""

from __future__ import annotations

from collections.abc import Mapping

import pytest


def tiers(cases: Mapping[str, object], *first: str) -> list[object]:
    """Parameters of a test, by name: single values, or tuples of several. `first` are those of the first tier."""
    assert set(first) <= set(cases)
    return [
        pytest.param(*(case if isinstance(case, tuple) else (case,)), id=name, marks=_marks(name in first))
        for name, case in cases.items()
    ]


def _marks(is_first: bool) -> tuple[pytest.MarkDecorator, ...]:
    return () if is_first else (pytest.mark.all,)
