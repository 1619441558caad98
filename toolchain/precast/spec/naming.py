"""The text of a unit, `softmax:dtype=fp16,BLOCK=1024,stride%16@cuda:90`, taken apart. `str(unit)` is the inverse.

In: a unit's text. Out: names and values.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from precast.errors import SpecError
from precast.spec.model import Constant, Hint, Spelled, Variant
from precast.spec.spelling import end_of_constant, items_of, parse_constant
from precast.target import Target

MOST_SHOWN_HINTS = 3

_KERNEL = re.compile(r"[A-Za-z_]\w*", re.ASCII)
# Names of arguments and axes may have any letters, as Python's have.
_HINT = re.compile(r"([^\W\d]\w*)(?:%([0-9]+)|==(1))")
_HINTS_AT_END = re.compile(r"(?:[:,][^\W\d]\w*(?:%[0-9]+|==1))+\Z")
_PART = re.compile(r"([^\W\d]\w*)(?:%([0-9]+)|==(1)|=)")


@dataclass(frozen=True)
class UnitName:
    """A unit's text, taken apart."""

    variant: Variant
    target: Target

    def __str__(self) -> str:
        return f"{self.variant}@{self.target}"


def parse_unit_text(text: str) -> UnitName:
    """The parts of a unit's text; `SpecError` when it is not one."""
    before, at, target = text.rpartition("@")
    if not at:
        raise not_a_unit(text, "no `@target` at its end")
    return UnitName(parse_variant_text(before, text), Target.parse(target))


def parse_variant_text(text: str, whole: str) -> Variant:
    kernel = _KERNEL.match(text)
    if not kernel:
        raise not_a_unit(whole, "no kernel name at its start")
    position = kernel.end()
    values: list[tuple[str, Constant]] = []
    hints: list[Hint] = []
    while position < len(text):
        part = _PART.match(text, position + 1)
        if text[position] != (":" if position == kernel.end() else ",") or not part:
            raise not_a_unit(whole, f"`{text[position:]}` is not understood")
        position = part.end()
        if part[2] or part[3]:
            hints.append(Hint(part[1], int(part[2] or 1)))
            continue
        start, position = position, end_of_constant(text, position)
        if start == position:
            raise not_a_unit(whole, f"`{text[part.start() :]}` is not understood")
        values.append((part[1], parse_constant(text[start:position])))
    return Variant(kernel[0], tuple(values), tuple(hints))


def parse_hint(text: str) -> Hint | None:
    """The hint that `x%16` or `n==1` is; None for any other text."""
    found = _HINT.fullmatch(text)
    return Hint(found[1], int(found[2] or 1)) if found else None


def shorten_unit_text(text: str) -> str:
    """A unit's text for a list that people read: of many hints the first, how many follow, and what tells it apart.

    Such a text does not parse back, and any other is left as it is.
    """
    before, _, target = text.rpartition("@")
    found = _HINTS_AT_END.search(before)
    hints = re.split("[:,]", found[0])[1:] if found else []
    if not found or len(hints) <= MOST_SHOWN_HINTS + 1:
        return text
    shown = ",".join(hints[:MOST_SHOWN_HINTS])
    mark = hashlib.sha256(text.encode()).hexdigest()[:6]  # as in the name of the unit's folder
    return f"{before[: found.start() + 1]}{shown},…+{len(hints) - MOST_SHOWN_HINTS} hints ({mark})@{target}"


def modules_in(value: Constant) -> tuple[str, ...]:
    """The modules that a constant's references name."""
    if not isinstance(value, Spelled):
        return ()
    if value.is_tuple:
        return tuple(name for item in items_of(value) for name in modules_in(item))
    return (value.text.partition(":")[0],) if value.is_reference else ()


def not_a_unit(text: str, cause: str) -> SpecError:
    return SpecError(f"`{text}` is not a unit: {cause}", hint="units look like `softmax:BLOCK=1024,stride%16@cuda:90`")
