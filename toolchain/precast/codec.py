"""Frozen dataclasses to JSON and back: the one form in which values cross processes, files and machines.

In: any frozen dataclass made of dataclasses, tuples, enums, strings, numbers, booleans and None.
Out: JSON text with sorted keys, so that equal values are equal bytes.
"""

from __future__ import annotations

import json
from typing import Any, TypeVar

from cattrs.preconf.json import make_converter
from cattrs.strategies import configure_union_passthrough

Value = TypeVar("Value")

_converter = make_converter(forbid_extra_keys=True)
configure_union_passthrough(str | bool | int | float | None, _converter)


def to_data(value: object) -> Any:
    """The JSON-able form of a dataclass value."""
    return _converter.unstructure(value)


def from_data(data: object, kind: type[Value]) -> Value:
    """The value of `kind` that `data` describes; raises `cattrs.BaseValidationError` when it does not."""
    return _converter.structure(data, kind)


def to_json(value: object, *, indent: int | None = None) -> str:
    """Canonical JSON: sorted keys, no spare spaces unless indented, text as UTF-8."""
    separators = (",", ":") if indent is None else (",", ": ")
    return json.dumps(to_data(value), sort_keys=True, ensure_ascii=False, separators=separators, indent=indent)


def from_json(text: str | bytes, kind: type[Value]) -> Value:
    """Inverse of `to_json`."""
    return from_data(json.loads(text), kind)
