"""What the extension keeps of a served call, so that the next one of the same function and constexprs runs without us.

In: a call that was launched, its function's digest, the kernels that have units for it. Out: entries of the server's
dispatcher. This file goes into a release's Python package, with the standard library alone.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Any

from precast.engines.source_digest import SourceDigest
from precast.launch.package.calls import Call, star_of, unwrapped
from precast.launch.package.hooks import Launched
from precast.launch.package.variants import Plan, Variants

_PLACES = {"": 0, "cpu": 1, "gpu": 2, "any": 3}  # as the extension numbers them
_MOST_NAMED_OPTIONS = 64  # bits of the extension's word; parameters beyond it are no options too


def learn_function(dispatcher: Any, function: Any, digest: SourceDigest, known: frozenset[str]) -> Any:
    """The dispatcher's entry of a function; None for one that is to be looked at in every call."""
    from triton.runtime.jit import JITFunction

    doubles = [number for number, each in enumerate(function.params) if each.name in known]
    if vars(JITFunction)["run"] is not dispatcher or star_of(function.fn) or not digest.is_current():
        return None
    if max(doubles, default=0) >= _MOST_NAMED_OPTIONS:
        return None
    if any(not function.params[number].is_constexpr for number in doubles):
        return None  # an option whose value is an argument
    parameters = tuple(
        (each.name, each.is_constexpr, each.default) if each.has_default else (each.name, each.is_constexpr)
        for each in function.params
    )
    text = "_src" if "_src" in vars(function) else "src"  # which Triton's newer property reads
    own = ((None, name, True, getattr(function, name)) for name in ("fn", text, "debug", "pre_run_hooks"))
    watches = (*own, *digest.watches())
    double_meaning = sum(1 << number for number in doubles)
    has_own_run = type(function).run is not dispatcher or "run" in vars(function)
    known_by = (parameters, function.pre_run_hooks, double_meaning, has_own_run, watches)
    return dispatcher.learn(function, function.fn.__name__, *known_by)


def add_call(entry: Any, call: Call, known: frozenset[str], plans: Iterable[tuple[Variants, Plan]]) -> None:
    """Adds the call's constexprs and options with the kernels that have units for them."""
    parameters = call.function.params
    constants = tuple(unwrapped(call.values[each.name]) for each in parameters if each.is_constexpr)
    names = {each.name for each in parameters}
    options = {name: unwrapped(value) for name, value in call.keywords.items() if name not in names}
    options = {name: value for name, value in options.items() if value is not None}
    if not all(map(_is_lasting, (*constants, *options.values()))):
        return
    by_name = sum(
        1 << number for number, each in enumerate(parameters) if each.name in known and each.name in call.keywords
    )
    kernels = tuple((variants.kernel, plan.axes, Launched(variants, plan.axes, call)) for variants, plan in plans)
    place = next((plan.place for _, plan in plans if plan.place), "")
    flat = tuple(part for pair in options.items() for part in pair)
    entry.add(constants, flat, by_name, _PLACES[place], kernels)


def _is_lasting(value: Any) -> bool:
    """Whether a value never changes, so that the extension may compare it by identity or as a number or text."""
    if isinstance(value, tuple):
        return type(value) is tuple and all(map(_is_lasting, value))
    if value is None or isinstance(value, bool | int | float | str | enum.Enum):
        return True
    is_number = (
        type(value).__module__ == "numpy" and hasattr(value, "__index__") and not hasattr(type(value), "__len__")
    )
    return is_number or type(value).__name__ == "dtype" or (hasattr(value, "fn") and hasattr(value, "src"))
