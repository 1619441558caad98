"""What a program goes on with where it has read a value that nobody computed, and how that is told.

In: reads of tensors without values. Out: values that are told from others as far as they are integers, and notes.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from precast.recording.notes import Unsaid

ANY_INTEGER = 7  # neither 1 nor a multiple of 16: the JIT specialises nothing of it
_OPERATORS = (
    "add", "sub", "mul", "floordiv", "mod", "pow", "lshift", "rshift", "and_", "or_", "xor", "neg", "pos", "abs",
    "invert",
)  # fmt: skip
_OUTSIDE = ("torch", "precast", "triton", "importlib", "contextlib", "functools", "threading")


class AssumedInteger(int):
    """An integer that stands for one that is not known; what is computed of it is one as well."""

    def __new__(cls, value: int = ANY_INTEGER) -> AssumedInteger:
        return super().__new__(cls, value)


def _assuming(compute: Callable[..., Any], reverse: bool) -> Callable[..., Any]:
    def computed(self: AssumedInteger, *others: Any) -> Any:
        values = [int.__int__(each) if isinstance(each, AssumedInteger) else each for each in (self, *others)]
        found = compute(*reversed(values)) if reverse else compute(*values)
        return AssumedInteger(found) if type(found) is int else found

    return computed


for _name in _OPERATORS:
    _compute = getattr(operator, _name)
    _plain = _name.rstrip("_")
    setattr(AssumedInteger, f"__{_plain}__", _assuming(_compute, False))
    if _name not in ("neg", "pos", "abs", "invert"):
        setattr(AssumedInteger, f"__r{_plain}__", _assuming(_compute, True))


def find_assumed(values: Mapping[str, Any]) -> list[str]:
    """The names of values that are assumed, or have one in them."""
    return [name for name, value in values.items() if _has_assumed([value])]


def _has_assumed(values: Iterable[Any]) -> bool:
    return any(
        isinstance(each, AssumedInteger) or (isinstance(each, (list, tuple)) and _has_assumed(each)) for each in values
    )


def note_of_read(what: str) -> Unsaid:
    """A note of the place in the program that reads now."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _OUTSIDE:
        frame = frame.f_back
    return Unsaid(f"{frame.f_code.co_filename.rpartition('/')[2]}:{frame.f_lineno}", what)
