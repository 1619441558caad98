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
_compact = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"))


class CodecError(ValueError):
    """A text is no JSON, or describes no value of the kind that was asked for."""


def to_data(value: object) -> Any:
    """The JSON-able form of a dataclass value."""
    return _converter.unstructure(value)


def from_data(data: object, kind: type[Value]) -> Value:
    """The value of `kind` that `data` describes; `CodecError` when it describes none."""
    try:
        return _converter.structure(data, kind)
    except Exception as error:  # cattrs' own, and whatever its hooks meet in data of another shape
        raise CodecError(f"not what a {kind.__name__} is: {error}") from error


def to_json(value: object, *, indent: int | None = None) -> str:
    """Canonical JSON: sorted keys, no spare spaces unless indented, text as UTF-8."""
    return write_json(to_data(value), indent=indent)


def write_json(data: object, *, indent: int | None = None) -> str:
    """`to_json` of data in JSON-able form."""
    if indent is None:
        return _compact.encode(data)
    return json.dumps(data, sort_keys=True, ensure_ascii=False, separators=(",", ": "), indent=indent)


def from_json(text: str | bytes, kind: type[Value]) -> Value:
    """Inverse of `to_json`; `CodecError` for any other text."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:  # bytes that are no UTF-8 are a `ValueError` too
        raise CodecError(f"not JSON: {error}") from error
    return from_data(data, kind)
