"""Calls of autotuned functions: the config that the release has units for, without measuring anything.

In: a tuner, of Triton's class or a library's own under it, with the arguments of a call. Out: the tuner's own way to
launch, with one config to choose from. This file goes into a release's Python package, with the standard library alone.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from precast.launch.package.calls import Call
from precast.launch.package.variants import Miss

Below = Callable[..., Any]
ReadCall = Callable[[Any, Any, Mapping[str, Any]], Call | None]


def run_tuned(
    servers: Sequence[Any], below: Below, read_call: ReadCall, tuner: Any, arguments: Any, keywords: Any
) -> Any:
    """In place of `Autotuner.run`, and of a `run` of its own that a class under it has."""
    if not servers or keywords.get("warmup") or len(tuner.configs) < 2:
        return below(tuner, *arguments, **keywords)
    for server in servers:
        choices = server.choices.setdefault(tuner, {})
        key = _key_of(tuner, arguments, keywords, server.compared)
        if key in choices:
            try:
                return _run_sole(below, tuner, choices[key], arguments, keywords)
            except server.missing:  # chosen for other arguments
                del choices[key]
        sole = _choose(server, read_call, tuner, arguments, keywords)
        if isinstance(sole, Exception):
            raise sole
        if sole is not None:
            choices[key] = sole
            return _run_sole(below, tuner, sole, arguments, keywords)
    return below(tuner, *arguments, **keywords)


def _run_sole(below: Below, tuner: Any, sole: Any, arguments: Any, keywords: Any) -> Any:
    """What the tuner does once a config is chosen: hooks, and the launch."""
    result = below(sole, *arguments, **keywords)
    tuner.best_config = sole.best_config = sole.configs[0]
    return result


def _choose(server: Any, read_call: ReadCall, tuner: Any, arguments: Any, keywords: Any) -> Any:
    """The tuner with one config to choose from; an error to raise; None where another may look at the call."""
    sole = copy.copy(tuner)
    sole.nargs = dict(zip(tuner.arg_names, arguments, strict=False))
    pruned = sole.prune_configs(keywords) if tuner.early_config_prune or tuner.perf_model else tuner.configs
    configs = [_stated(server, tuner, each) for each in pruned]
    calls = [_call_of(read_call, tuner.fn, arguments, {**keywords, **each.all_kwargs()}) for each in configs]
    if None in calls:
        return None
    found = _fitting(server, configs, calls)
    place = server.preferred([call for _, call in found]) if len(found) > 1 else None
    if len(found) == 1 or place is not None or (found and server.strict):
        sole.configs = [found[place or 0][0]]  # what the release's table names, else the author's first
        return sole
    return _refuse(server, calls) if server.strict else None


def _stated(server: Any, tuner: Any, config: Any) -> Any:
    """A config without what neither the function nor a target of the release knows: it decides nothing."""
    known = {*tuner.arg_names, *server.options}
    if known.issuperset(config.kwargs):
        return config
    stated = copy.copy(config)
    stated.kwargs = {name: value for name, value in config.kwargs.items() if name in known}
    return stated


def _fitting(server: Any, configs: Sequence[Any], calls: Sequence[Any]) -> list[tuple[Any, Any]]:
    """The configs that the server has units for, with their calls; one of those that differ in nothing that counts
    where they run."""
    found: list[tuple[Any, Any, Any]] = []
    for config, call in zip(configs, calls, strict=True):
        essence = (config.pre_hook, server.essence(call))
        if server.fits(call) and all(essence != each for each, _, _ in found):
            found.append((essence, config, call))
    return [(config, call) for _, config, call in found]


def _refuse(server: Any, calls: Sequence[Any]) -> Exception:
    return server.refuse(calls[0], Miss(f"it has units for none of the {len(calls)} configs of its autotuner", 0))  # type: ignore[no-any-return]


def _call_of(read_call: ReadCall, function: Any, arguments: Any, keywords: Mapping[str, Any]) -> Call | None:
    """The call that a tuner's config leads to, through heuristics and what libraries put around a function."""
    said = dict(keywords)
    while not hasattr(function, "params"):
        for name, heuristic in getattr(function, "values", {}).items():
            said[name] = heuristic({**dict(zip(function.arg_names, arguments, strict=False)), **said})
        function = getattr(function, "fn", None)
        if function is None:
            return None
    return read_call(function, arguments, said)


def _key_of(tuner: Any, arguments: Any, keywords: Mapping[str, Any], compared: frozenset[str]) -> tuple[Any, ...]:
    """What a choice is made once for: what the tuner's own key names, what the release's selection table compares, and
    of all others what decides between units."""
    named = {**dict(zip(tuner.arg_names, arguments, strict=False)), **keywords}
    exact = compared.union(getattr(tuner, "keys", ()))
    return tuple((name, _trait_of(value, name in exact)) for name, value in named.items() if name != "grid")


def _trait_of(value: Any, exactly: bool) -> Any:
    if isinstance(value, bool | str) or value is None or (exactly and isinstance(value, int | float)):
        return type(value), value
    if isinstance(value, int):
        return type(value), value == 1, value % 16 == 0, value.bit_length() // 32
    return type(value), getattr(value, "dtype", None)
