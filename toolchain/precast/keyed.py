"""What is made from a value is keyed by that value: the one place where keys are made.

In: frozen dataclasses. Out: their keys. Whoever makes something is given one such value and nothing else, so that
whatever it may use is in the key by construction. A value that holds other keyed values takes their keys, so that a
release of thousands of units does not spell out each of them again.
"""

from __future__ import annotations

import hashlib
from dataclasses import fields, is_dataclass
from functools import cache, cached_property
from typing import Any

from precast.codec import to_data, write_json

_PLAIN = (str, bool, int, float)


class Keyed:
    """Base of frozen dataclasses that things are made from."""

    @cached_property
    def key(self) -> str:
        """sha256 hex over the type's name and every field that takes part in comparison."""
        return hashlib.sha256(write_json(_fields(self)).encode()).hexdigest()


def _fields(value: Any) -> Any:
    kind: Any = type(value)
    return [kind.__name__, *[_data(getattr(value, name)) for name in _compared(kind)]]


@cache
def _compared(kind: Any) -> tuple[str, ...]:
    return tuple(each.name for each in fields(kind) if each.compare)


def _data(value: Any) -> Any:
    if value is None or isinstance(value, _PLAIN):
        return value
    if isinstance(value, tuple):
        return [_data(each) for each in value]
    if isinstance(value, Keyed):
        return value.key
    return _fields(value) if is_dataclass(value) else to_data(value)
