"""A kernel's parameters in launch order, from its arguments' types. Imports no compiler.

In: a unit, its host tensor descriptors, the buffers of passes. Out: `Parameter` values. A tuple counts part by part,
an argument that is fixed not at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from precast.artifact import DeviceBuffer, Parameter, TensorDescriptor
from precast.spec.model import Unit


def list_parameters(
    unit: Unit,
    descriptors: Mapping[str, TensorDescriptor],
    buffers: Sequence[DeviceBuffer],
    hidden: Sequence[tuple[str, str]],
) -> Iterator[Parameter]:
    """A unit's parameters: arguments, `buffers`, then `hidden` (kind and type); `t.0` is a part of the tuple `t`."""
    for name, kind in list_leaves(unit):
        yield Parameter("descriptor" if name in descriptors else "argument", name, kind)
    for buffer in buffers:
        yield Parameter("buffer", buffer.pass_name, "*i32")
    for name, kind in hidden:
        yield Parameter(name, name, kind)


def list_places(parameters: Sequence[Parameter], descriptors: Mapping[str, TensorDescriptor]) -> list[int]:
    """Which of the kernel's own arguments each parameter begins with: an expanded descriptor is many."""
    places, at = [], 0
    for parameter in parameters:
        places.append(at)
        descriptor = descriptors.get(parameter.name) if parameter.kind == "descriptor" else None
        at += 3 + 4 * len(descriptor.block_shape) if descriptor else 1
    return places


def list_leaves(unit: Unit) -> Iterator[tuple[str, str]]:
    """Name and type text of each run-time value among a unit's arguments."""
    for argument in unit.arguments:
        if not argument.constant and argument.type != "constexpr":
            yield from _leaves(argument.name, parse_type(argument.type))


def _leaves(name: str, kind: Any) -> Iterator[tuple[str, str]]:
    if isinstance(kind, tuple):
        for index, part in enumerate(kind):
            yield from _leaves(f"{name}.{index}", part)
    elif kind != "constexpr":
        yield name, kind


def parse_type(text: str) -> Any:
    """A tuple's type as a tuple of its parts; any other type stays text."""
    text = text.strip()
    if not text.startswith("("):
        return text
    return tuple(parse_type(part) for part in split_types(text[1:-1]))


def split_types(text: str) -> list[str]:
    """The types of a comma-separated list, whatever brackets hold other commas."""
    parts, depth, start = [], 0, 0
    for index, character in enumerate(text):
        depth += (character in "([<") - (character in ")]>")
        if character == "," and depth == 0:
            parts.append(text[start:index])
            start = index + 1
    parts.append(text[start:])
    return [part for part in (each.strip() for each in parts) if part]
