"""What an imported kernel says about itself. In: a jit function and the tuner around it. Out: an `ImportedKernel`."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from typing import Any

from precast.engines.triton import v3_9
from precast.spec.decorators import CONFIG_OPTIONS
from precast.spec.imported import ImportedKernel, ImportedParameter
from precast.spec.model import Constant, Spelled, Values, format_constant, spell
from precast.spec.types import TRITON_NAMES


class Unstated(Exception):
    """No spec can state a value; the text says what it is."""


def describe_imported(function: Any, tuner: Any) -> ImportedKernel:
    """Parameters, defaults and configs of a jit function; `tuner` is the autotuner around it, or None."""
    parameters = tuple(_describe_parameter(each) for each in function.params)
    gluon = v3_9.is_gluon_function(function)
    if tuner is None:
        return ImportedKernel(parameters, gluon)
    try:
        return ImportedKernel(parameters, gluon, tuple(describe_config(each) for each in tuner.configs))
    except Unstated as fault:
        return ImportedKernel(parameters, gluon, (), str(fault))


def _describe_parameter(parameter: Any) -> ImportedParameter:
    # Of a default, Triton's own `has_default` asks whether it equals something, which an array refuses to say.
    default = parameter._param.default
    if default is parameter._param.empty:
        return ImportedParameter(parameter.name, parameter.is_constexpr)
    try:
        return ImportedParameter(parameter.name, parameter.is_constexpr, True, state_constant(default))
    except Unstated as fault:
        return ImportedParameter(parameter.name, parameter.is_constexpr, True, None, str(fault))


def describe_config(config: Any) -> Values:
    """A `triton.Config`: its constexprs, then every option that it sets."""
    options = {name: getattr(config, name) for name in CONFIG_OPTIONS}
    said: Mapping[str, Any] = {**config.kwargs, **{name: value for name, value in options.items() if value is not None}}
    try:
        return tuple((name, state_constant(value)) for name, value in said.items())
    except Unstated as fault:
        raise Unstated(f"{fault} in one of its configs") from None


def state_constant(value: Any) -> Constant:
    """A constexpr's value as a spec states it; `Unstated` where none can."""
    value = v3_9.unwrap_constexpr(value)
    if isinstance(value, enum.IntFlag) and value.name not in type(value).__members__:
        return int(value)  # several flags at once
    if isinstance(value, enum.Enum):
        return _reference(type(value), value.name)
    if v3_9.is_jit_function(value):
        return _reference(value.fn)
    if v3_9.is_dtype(value):
        return f"tl.{TRITON_NAMES.get(value.name, value.name)}"
    if type(value) is tuple:
        return Spelled(f"({','.join(map(format_constant, map(state_constant, value)))})")
    if isinstance(value, str) and value.startswith("tl."):
        raise Unstated(f'the text "{value}", which a spec takes for a data type,')
    try:
        return spell(value if not isinstance(value, list) else object())
    except (TypeError, ValueError):
        raise Unstated(f"a value of type {type(value).__name__}") from None


def _reference(owner: Any, *attributes: str | None) -> Spelled:
    """`module:name` of what a module holds."""
    words: Iterable[str] = (owner.__qualname__, *(f"{each}" for each in attributes))
    text = f"{owner.__module__}:{'.'.join(words)}"
    if not all(part.isidentifier() for part in text.replace(":", ".").split(".")) or None in attributes:
        raise Unstated(f"`{text}`, which no module holds by that name,")
    return Spelled(text)
