"""The fixed values of a unit as Python has them. In: a unit, its jit function. Out: values by argument name.

A value that the source gives by default is the imported function's own; the others are made from the unit's text.
"""

from __future__ import annotations

import importlib
from typing import Any

from precast.engines import StageFailure
from precast.engines.triton import v3_9
from precast.spec.model import Argument, Constant, Spelled, Unit
from precast.spec.spelling import items_of, python_value


def make_constants(unit: Unit, function: Any) -> dict[str, Any]:
    """The value of each argument that the unit fixes. `StageFailure` for what Triton or a module does not hold."""
    defaults = {each.name: each.default for each in function.params}
    own = {name for name, _ in unit.reading.defaults}
    fixed = [each for each in unit.arguments if each.constant or each.type == "constexpr"]
    return {each.name: defaults[each.name] if each.name in own else _make_value(each, each.value) for each in fixed}


def _make_value(argument: Argument, value: Constant) -> Any:
    if isinstance(value, str) and value.startswith("tl."):
        dtype = v3_9.parse_dtype(value)
        if dtype is None:
            raise StageFailure(f"argument `{argument.name}`: Triton has no data type `{value}`")
        return dtype
    if not isinstance(value, Spelled):
        return value
    if value.is_tuple:
        return tuple(_make_value(argument, item) for item in items_of(value))
    return find_in_module(argument.name, value.text) if value.is_reference else python_value(value)


def find_in_module(argument: str, reference: str) -> Any:
    """What `module:name` stands for; the project's import session is open."""
    name, _, path = reference.partition(":")
    try:
        value = importlib.import_module(name)
        for word in path.split("."):
            value = getattr(value, word)
        return value
    except StageFailure:
        raise
    except Exception as error:  # the module is the user's and may raise anything
        message = f"argument `{argument}`: `{reference}` is not found: {type(error).__name__}: {error}"
        raise StageFailure(message) from error
