"""The text of a unit, `softmax:dtype=fp16,BLOCK=1024,stride%16@cuda:90`, taken apart. `str(unit)` is the inverse.

In: a unit's text, or that of one constant in it. Out: names and values; what a spelling stands for as a Python value.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from precast.errors import SpecError
from precast.spec.model import Constant, Hint, Spelled, Variant, spell
from precast.target import Target

_KERNEL = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_PART = re.compile(r"([A-Za-z_]\w*)(?:%(\d+)|==(1)|=)", re.ASCII)
_WORD = re.compile(r'"(?:[^"\\]|\\.)*"|[A-Za-z_][\w.]*:[A-Za-z_][\w.]*|[\w.*+-]+', re.ASCII)
MAXIMUM_NESTING = 32  # of tuples within tuples


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


def modules_in(value: Constant) -> tuple[str, ...]:
    """The modules that a constant's references name."""
    if not isinstance(value, Spelled):
        return ()
    if value.is_tuple:
        return tuple(name for item in items_of(value) for name in modules_in(item))
    return (value.text.partition(":")[0],) if value.is_reference else ()


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


def not_a_unit(text: str, cause: str) -> SpecError:
    return SpecError(f"`{text}` is not a unit: {cause}", hint="units look like `softmax:BLOCK=1024,stride%16@cuda:90`")
