"""Constexprs as texts: how a value is written in a unit's name, so that equal texts are equal values.

In: plain Python values. Out: constants, and their texts; `naming` reads them back. This file goes into a release's
Python package as well, with the standard library alone.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass

_BITS_64 = range(-(2**63), 2**63)
_PLAIN = re.compile(r"(?!(?i:true|false|none|inf|infinity|nan)\Z)[A-Za-z_*][\w.*]*\Z", re.ASCII)


@dataclass(frozen=True)
class Spelled:
    """A constexpr's value that is known by its text in a unit's name, because JSON and C have no exact form for it.

    A tuple `(16,(8,none))`; a number of more than 64 bits; `inf`, `-inf`, `nan` and `-0.0`; or what a module holds, a
    jit function or a member of an enumeration: `modes:Mode.FAST`.
    """

    text: str

    @property
    def is_tuple(self) -> bool:
        return self.text.startswith("(")

    @property
    def is_reference(self) -> bool:
        return ":" in self.text and not self.is_tuple


def spell(value: object) -> str | bool | int | float | Spelled | None:
    """The constant that a plain Python value is; a sequence becomes a tuple. `TypeError` for what is no value."""
    if isinstance(value, tuple | list):
        return Spelled(f"({','.join(format_constant(spell(item)) for item in value)})")
    if type(value) is float:
        exact = math.isfinite(value) and (value or math.copysign(1.0, value) > 0)
        return value if exact else Spelled(str(value))
    if type(value) is int:
        return value if value in _BITS_64 else Spelled(str(value))
    if value is None or isinstance(value, str | bool | Spelled):
        return value
    raise TypeError(f"a value of type {type(value).__name__}")


def format_constant(value: str | bool | int | float | Spelled | None) -> str:
    """The text of an axis value in a unit's name: TOML's words for booleans, a JSON string where a word will not do."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Spelled):
        return value.text
    if isinstance(value, str) and not _PLAIN.match(value):
        return json.dumps(value)
    return "none" if value is None else str(value)
