"""Constexprs as texts: how a value is written in a unit's name, so that equal texts are equal values.

In: plain Python values. Out: constants, their texts, and back. This file goes into a release's
Python package as well, with the standard library alone.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass

_WORD = re.compile(r'"(?:[^"\\]|\\.)*"|[A-Za-z_][\w.]*:[A-Za-z_][\w.]*|[\w.*+-]+', re.ASCII)
MAXIMUM_NESTING = 32  # of tuples within tuples
_BITS_64 = range(-(2**63), 2**63)
_PLAIN = re.compile(r"(?!(?i:true|false|none|inf|infinity|nan)\Z)[A-Za-z_*][\w.*]*\Z", re.ASCII)


@dataclass(frozen=True)
class Spelled:
    """A constexpr's value that is known by its text in a unit's name, because JSON and C have no exact form for it.

    A tuple `(16,(8,none))`; a number of more than 64 bits; `inf`, `-inf`, `nan` and `-0.0`; or what a module holds, a
    jit function or a member of an enumeration: `modes:Mode.FAST`.
    """

    text: str

    def __str__(self) -> str:
        return self.text

    @property
    def is_tuple(self) -> bool:
        return self.text.startswith("(")

    @property
    def is_reference(self) -> bool:
        return ":" in self.text and not self.is_tuple


Constant = str | bool | int | float | Spelled | None


def spell(value: object) -> Constant:
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


def format_constant(value: Constant) -> str:
    """The text of an axis value in a unit's name: TOML's words for booleans, a JSON string where a word will not do."""
    if type(value) is str:  # as most are, or whole numbers
        return value if _PLAIN.match(value) else json.dumps(value)
    if type(value) is int:
        return str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Spelled):
        return value.text
    return "none" if value is None else str(value)


def end_of_constant(text: str, start: int) -> int:
    """Where the constant that begins at `start` ends; `start` itself where none begins."""
    position, depth = start, 0
    while position < len(text):
        word = _WORD.match(text, position)
        if word:
            position = word.end()
        elif text[position] in "()":
            depth += 1 if text[position] == "(" else -1
            position += 1
        elif text[position] == "," and depth > 0:
            position += 1
        else:
            return start
        if depth <= 0 or depth > MAXIMUM_NESTING:
            break
    return position if depth == 0 else start


def items_of(value: Spelled) -> tuple[Constant, ...]:
    """The items of a tuple's spelling."""
    inside, items, position = value.text[1:-1], [], 0
    while position < len(inside):
        end = end_of_constant(inside, position)
        items.append(parse_constant(inside[position:end]))
        position = end + 1
    return tuple(items)


def parse_constant(text: str) -> Constant:
    """Inverse of `format_constant`."""
    words: dict[str, Constant] = {"true": True, "false": False, "none": None}
    if text in words:
        return words[text]
    if text.startswith('"'):
        return str(json.loads(text))
    if text.startswith("(") or ":" in text:
        return Spelled(text)
    for kind in (int, float):
        try:
            return spell(kind(text))
        except ValueError:
            continue
    return text


def python_value(value: Constant) -> object:
    """The number or tuple that a spelling stands for; what a module holds stays a text, as a data type does."""
    if not isinstance(value, Spelled):
        return value
    if value.is_tuple:
        return tuple(python_value(item) for item in items_of(value))
    if value.is_reference:
        return value.text
    try:
        return int(value.text)
    except ValueError:
        return float(value.text)
