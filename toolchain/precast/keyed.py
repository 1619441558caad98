"""What is made from a value is keyed by that value: the one place where keys are made.

In: frozen dataclasses. Out: their keys. Whoever makes something is given one such value and nothing else, so that
whatever it may use is in the key by construction. A value that holds other keyed values takes their keys, so that a
release of thousands of units does not spell out each of them again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from functools import cache, cached_property
from typing import Any

from precast.codec import to_data, write_json

_PLAIN = frozenset({str, bool, int, float, type(None)})


class Keyed:
    """Base of frozen dataclasses that things are made from."""

    @cached_property
    def key(self) -> str:
        """sha256 hex over the type's name and every field that takes part in comparison."""
        return hashlib.sha256(write_json(_fields(self)).encode()).hexdigest()


def _fields(value: Any) -> Any:
    kind: Any = type(value)
    return [kind.__name__, *_items([getattr(value, name) for name in _compared(kind)])]


@cache
def _compared(kind: Any) -> tuple[str, ...]:
    return tuple(each.name for each in fields(kind) if each.compare)


def _items(values: Iterable[Any]) -> list[Any]:
    return [value if type(value) in _PLAIN else _data(value) for value in values]


def _data(value: Any) -> Any:
    if isinstance(value, tuple):  # what is asked hundreds of thousands of times comes first
        return _items(value)
    if isinstance(value, Keyed):
        return value.key
    return _fields(value) if is_dataclass(value) else to_data(value)
