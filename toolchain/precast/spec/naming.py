"""The text of a unit, `softmax:dtype=fp16,BLOCK=1024,stride%16@cuda:90`, taken apart. `str(unit)` is the inverse."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from precast.errors import SpecError
from precast.spec.model import Constant, Hint, Variant
from precast.target import Target

_KERNEL = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_PART = re.compile(r"""([A-Za-z_]\w*)(?:%(\d+)|==(1)|=("(?:[^"\\]|\\.)*"|[\w.*+-]+))""", re.ASCII)


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
        if part[4] is not None:
            values.append((part[1], parse_constant(part[4])))
        else:
            hints.append(Hint(part[1], int(part[2] or 1)))
        position = part.end()
    return Variant(kernel[0], tuple(values), tuple(hints))


def parse_constant(text: str) -> Constant:
    """Inverse of `format_constant`."""
    words: dict[str, Constant] = {"true": True, "false": False, "none": None}
    if text in words:
        return words[text]
    if text.startswith('"'):
        return str(json.loads(text))
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def not_a_unit(text: str, cause: str) -> SpecError:
    return SpecError(f"`{text}` is not a unit: {cause}", hint="units look like `softmax:BLOCK=1024,stride%16@cuda:90`")
