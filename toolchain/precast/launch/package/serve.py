"""Existing `kernel[grid](…)` calls of Triton, run from a release: no compiler at run time.

In: an open release. Out: a `Server`, which stands in for `JITFunction.run` and `Autotuner.run` until it is stopped. A
call is the release's when the function's source has the digest that the release was built from, its constexprs and
options are a unit's, and its arguments fit. This file goes into a release's Python package.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

from precast.engines.source_digest import SourceDigest, digest_source
from precast.launch.package.calls import Call, Launched, place_of
from precast.launch.package.fragment import Unstated, render_fragment
from precast.launch.package.variants import CPU_IGNORES, Plan, Variants, read_variants, typed

# Statuses of a launch: no unit for the device, none for the call, an argument that does not fit; what no unit of
# the spec would take.
_NO_FIT, _UNMET = (5, 6, 7), 13


class Unservable(str):
    """Why a call was refused, where no unit would take it."""


class MissingVariant(RuntimeError):
    """A call that the release has no unit for; the message ends with the spec that would make one."""


class Server:
    """Serves Triton's calls from `release` until `stop`, or the end of a `with` block."""

    def __init__(self, release: Any, fallback: str, refusal: type[Exception]) -> None:
        if fallback not in ("error", "jit"):
            raise ValueError(f'fallback is "error" or "jit", not {fallback!r}')
        self.strict = fallback == "error"
        self.active = False
        self._refusal = refusal
        self._kernels = read_variants(release)
        self._units = [unit for group in self._kernels.values() for each in group for unit in each.units]
        self._is_for_cpu = all(unit.backend == "cpu" for unit in self._units)
        self._options = frozenset(CPU_IGNORES.union(*(unit.options for unit in self._units)))
        self._names = release.kernels
        self._known: dict[int, tuple[Any, SourceDigest]] = {}

    def start(self) -> Server:
        """Takes the place of Triton's own way to launch, on top of servers that are on."""
        from triton.runtime.autotuner import Autotuner
        from triton.runtime.jit import JITFunction

        with _lock():
            if not self.active:
                self.active = True
                _put_on(JITFunction, self, _run)
                _put_on(Autotuner, self, _run_tuned)
        return self

    def stop(self) -> None:
        """Serves no more; with the last server that is on, Triton has its own way back."""
        from triton.runtime.autotuner import Autotuner
        from triton.runtime.jit import JITFunction

        with _lock():
            self.active = False
            for owner in (JITFunction, Autotuner):
                while (layer := getattr(owner.run, "precast_layer", None)) and not layer[0].active:
                    owner.run = layer[1]

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def launch(self, call: Call) -> Launched | str:
        """Launches from the release; why it could not is a text."""
        return self._try(call, self._launch_planned)

    def fits(self, call: Call) -> bool:
        """Whether `launch` would: an empty grid is checked as any other."""
        tried = self._try(call, lambda variants, plan, call: self._attempt(variants, plan, call, (0,)))
        return not isinstance(tried, str)

    def essence(self, call: Call) -> tuple[Any, ...]:
        """What decides a launch: the call's values, and of its options those that count where its tensors lie."""
        options = call.options(self._options)
        place = place_of(call.values.values())
        if place == "cpu" or (not place and self._is_for_cpu):
            options = {name: value for name, value in options.items() if name not in CPU_IGNORES}
        return call.run_time(), typed(call.constants), typed(options)

    def refuse(self, call: Call, reason: str) -> MissingVariant:
        """The error that says why, with the spec of the unit that the call needs."""
        own = [unit for variants in self._variants_of(call.function)[0] for unit in variants.units]
        sentence = f"the release cannot run `{call.name}`: {reason}"
        fault = self._digest_of(call.function).fault
        if fault or isinstance(reason, Unservable):
            return MissingVariant(sentence)
        try:
            text = render_fragment(call, call.options(self._options), self._units, own, self._names)
        except Unstated as error:
            return MissingVariant(f"{sentence}; no spec can state it: {error}")
        return MissingVariant(f"{sentence}; this would make it:\n{text}")

    def _try(self, call: Call, attempt: Callable[[Variants, Plan, Call], str]) -> Launched | str:
        """The kernel of the release that could be used as `attempt` does, or why there is none.

        A kernel that has the constexprs and options speaks before one that has not.
        """
        kernels, reason = self._variants_of(call.function)
        options = call.options(self._options)
        plans = [(variants, variants.find(call, options)) for variants in kernels]
        for _, plan in plans:
            reason = plan if isinstance(plan, str) else reason
        for variants, plan in plans:
            if not isinstance(plan, str) and not (reason := attempt(variants, plan, call)):
                return Launched(variants.kernel, plan.axes, call)
        return reason

    def _launch_planned(self, variants: Variants, plan: Plan, call: Call) -> str:
        sizes = call.sizes()
        hooks = getattr(call.function, "pre_run_hooks", ())
        refused = self._attempt(variants, plan, call, (0,)) if hooks else ""
        if refused:
            return refused
        for hook in hooks:
            hook(*call.arguments, **call.keywords)
        return self._attempt(variants, plan, call, sizes)

    def _attempt(self, variants: Variants, plan: Plan, call: Call, sizes: tuple[int, ...]) -> str:
        """Launches; the launcher's own sentence where a unit or an argument does not fit."""
        try:
            variants.kernel[sizes](*call.run_time(), **plan.axes)
            return ""
        except ValueError as error:  # tensors of several devices, or without memory
            return Unservable(error)
        except (self._refusal, TypeError, OverflowError) as error:
            if getattr(error, "status", 0) == _UNMET:
                return Unservable(error)
            if getattr(error, "status", _NO_FIT[0]) not in _NO_FIT:
                raise
            return str(error)

    def _variants_of(self, function: Any) -> tuple[list[Variants], str]:
        """The kernels of a function's source, and why there is none."""
        digest = self._digest_of(function)
        if digest.fault:
            return [], f"its source cannot be compared: {digest.fault}"
        return self._kernels.get(digest.text, []), "its source is not in the release, or has changed"

    def _digest_of(self, function: Any) -> SourceDigest:
        entry = self._known.get(id(function))
        if entry is None or entry[0] is not function or not entry[1].is_current():
            with _lock():  # Python 3.11 does not parse in several threads at a time
                entry = self._known[id(function)] = (function, digest_source(function))
        return entry[1]


def _lock() -> Any:
    """One lock for the servers of every release in the process, each of which has its own copy of this file."""
    shared: dict[str, Any] = vars(sys.modules["triton.runtime.jit"])
    return shared.setdefault("_precast_lock", threading.RLock())


def _put_on(owner: Any, server: Server, run: Callable[..., Any]) -> None:
    """Puts `run` in place of a class's own; it finds the servers below through `precast_layer`."""

    def layered(self: Any, *arguments: Any, **keywords: Any) -> Any:
        servers, below = _layers(layered)
        return run(servers, below, self, arguments, keywords)

    layered.precast_layer = (server, owner.run)  # type: ignore[attr-defined]
    owner.run = layered


def _layers(run: Any) -> tuple[list[Any], Callable[..., Any]]:
    """The servers that are on, the last started first, and what is below them all."""
    servers = []
    while layer := getattr(run, "precast_layer", None):
        servers += [layer[0]] if layer[0].active else []
        run = layer[1]
    return servers, run


def _run(servers: list[Any], below: Callable[..., Any], function: Any, arguments: Any, keywords: Any) -> Any:
    """In place of `JITFunction.run`: the first release that can; else the first that insists complains."""
    strict = [server for server in servers if server.strict]
    if servers and not keywords.get("warmup"):
        call = _read_call(function, arguments, keywords, strict)
        reasons = {}
        for server in servers if call else ():
            reasons[server] = server.launch(call)
            if not isinstance(reasons[server], str):
                return reasons[server]
        if strict:
            raise strict[0].refuse(call, reasons[strict[0]])
    return below(function, *arguments, **keywords)


def _run_tuned(servers: list[Any], below: Callable[..., Any], tuner: Any, arguments: Any, keywords: Any) -> Any:
    """In place of `Autotuner.run`: nothing is measured where a release has units for one of the configs alone."""
    if not servers or keywords.get("warmup") or len(tuner.configs) < 2:
        return below(tuner, *arguments, **keywords)
    tuner.nargs = dict(zip(tuner.arg_names, arguments, strict=False))
    configs = tuner.prune_configs(keywords) if tuner.early_config_prune or tuner.perf_model else tuner.configs
    calls = [_tuned_call(tuner.fn, arguments, {**keywords, **config.all_kwargs()}) for config in configs]
    if None in calls:
        return below(tuner, *arguments, **keywords)
    for server in servers:
        found = _fitting(server, configs, calls)
        if len(found) == 1:
            return _run_config(tuner, found[0], arguments, keywords)
        if server.strict:
            raise _refuse_tuned(server, calls, len(found))
    return below(tuner, *arguments, **keywords)


def _fitting(server: Any, configs: list[Any], calls: list[Any]) -> list[Any]:
    """The configs that the server has units for, one of those that differ in nothing that counts where they run."""
    found: list[tuple[Any, Any]] = []
    for config, call in zip(configs, calls, strict=True):
        essence = (config.pre_hook, server.essence(call))
        if server.fits(call) and all(essence != each for each, _ in found):
            found.append((essence, config))
    return [config for _, config in found]


def _refuse_tuned(server: Any, calls: list[Any], count: int) -> MissingVariant:
    if count == 0:
        return server.refuse(calls[0], f"it has units for none of the {len(calls)} configs of its autotuner")  # type: ignore[no-any-return]
    return MissingVariant(
        f"the release cannot run `{calls[0].name}`: it has units for {count} of the {len(calls)} configs of its "
        "autotuner, and none is measured here; build the one that is to run"
    )


def _run_config(tuner: Any, config: Any, arguments: Any, keywords: Any) -> Any:
    """What Triton does once a config is chosen."""
    tuner.best_config = config
    chosen = config.all_kwargs()
    if config.pre_hook is not None:
        config.pre_hook({**dict(zip(tuner.arg_names, arguments, strict=False)), **keywords, **chosen})
    return tuner.fn.run(*arguments, **keywords, **chosen)


def _tuned_call(function: Any, arguments: Any, keywords: Mapping[str, Any]) -> Call | None:
    """The call that a tuner's config leads to, through `@triton.heuristics`; None through anything else."""
    said = dict(keywords)
    while not hasattr(function, "params"):
        if not hasattr(function, "values"):
            return None
        for name, heuristic in function.values.items():
            said[name] = heuristic({**dict(zip(function.arg_names, arguments, strict=False)), **said})
        function = function.fn
    return _read_call(function, arguments, said, [])


def _read_call(function: Any, arguments: Any, keywords: Mapping[str, Any], strict: list[Any]) -> Call | None:
    """The call; None where the arguments are not the function's and Triton shall say so."""
    rest = {name: value for name, value in keywords.items() if name not in ("grid", "warmup")}
    try:
        return Call(function, arguments, rest, keywords["grid"])
    except TypeError:
        if strict:
            raise
        return None
