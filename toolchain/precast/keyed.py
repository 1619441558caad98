"""What is made from a value is keyed by that value: the one place where keys are made.

In: frozen dataclasses. Out: their keys. Whoever makes something is given one such value and nothing else, so that
whatever it may use is in the key by construction. A value that holds other keyed values takes their keys, so that a
release of thousands of units does not spell out each of them again.
"""

from __future__ import annotations

import hashlib
from dataclasses import fields
from functools import cached_property
from typing import Any

from precast.codec import to_json


class Keyed:
    """Base of frozen dataclasses that things are made from."""

    @cached_property
    def key(self) -> str:
        """sha256 hex over the type's name and every field that takes part in comparison."""
        parts = [type(self).__name__]
        parts += [f"{each.name}\0{_text(getattr(self, each.name))}" for each in fields(self) if each.compare]  # type: ignore[arg-type]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _text(value: Any) -> str:
    if isinstance(value, Keyed):
        return value.key
    if isinstance(value, tuple) and value and isinstance(value[0], Keyed):
        return f"[{','.join(each.key for each in value)}]"
    return to_json(value)
