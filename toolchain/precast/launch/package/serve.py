"""Existing `kernel[grid](…)` calls of Triton, run from a release: no compiler at run time.

In: an open release. Out: a `Server`, which stands in for `JITFunction.run` and `Autotuner.run` until it is stopped. A
call is the release's when the function's source has the digest that the release was built from, its constexprs and
options are a unit's, and its arguments fit. This file goes into a release's Python package.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from precast.engines.source_digest import SourceDigest, digest_source
from precast.launch.package.calls import Call, place_of
from precast.launch.package.errors import MissingVariant
from precast.launch.package.fragment import render_fragment
from precast.launch.package.hooks import Launched, Told, launch_hooked
from precast.launch.package.layers import find_layers, layered_birth, put_on, serving_lock, take_off, tuner_classes
from precast.launch.package.specialization import add_call, learn_function
from precast.launch.package.specs import Unstated
from precast.launch.package.tuned import run_tuned
from precast.launch.package.variants import (
    AT_SOURCE,
    AT_UNITS,
    AT_VALUES,
    CPU_IGNORES,
    Miss,
    Plan,
    Variants,
    read_variants,
    typed,
)

# Statuses of a launch: no unit for the device, none for the call, an argument that does not fit; what no unit of
# the spec would take.
_NO_FIT, _UNMET = (5, 6, 7), 13


class Server:
    """Serves Triton's calls from `release` until `stop`, or the end of a `with` block."""

    def __init__(self, release: Any, fallback: str, refusal: type[Exception]) -> None:
        if fallback not in ("error", "jit"):
            raise ValueError(f'fallback is "error" or "jit", not {fallback!r}')
        self.strict = fallback == "error"
        self.active = False
        self.missing = MissingVariant
        self.choices: weakref.WeakKeyDictionary[Any, dict[Any, Any]] = weakref.WeakKeyDictionary()  # of tuners
        self._release = release
        self._refusal = refusal
        self._kernels = read_variants(release)
        self._units = [unit for group in self._kernels.values() for each in group for unit in each.units]
        self._is_for_cpu = all(unit.backend == "cpu" for unit in self._units)
        self.options = frozenset(CPU_IGNORES.union(*(unit.options for unit in self._units)))
        kernels = (each.kernel for group in self._kernels.values() for each in group)
        self.compared = frozenset(name for kernel in kernels for name in kernel.compares)  # by selection tables
        self._names = release.kernels
        self._known: dict[int, tuple[weakref.ref[Any], str, SourceDigest]] = {}
        self._entries: dict[int, tuple[SourceDigest, Any]] = {}  # of the dispatcher
        self._dispatcher: Any = None

    def start(self) -> Server:
        """Takes the place of Triton's own way to launch, on top of servers that are on."""
        from triton import knobs
        from triton.language import constexpr
        from triton.runtime.autotuner import Autotuner
        from triton.runtime.jit import JITFunction

        with serving_lock():
            if not self.active:
                self.active = True
                self._entries.clear()
                self._dispatcher = self._release.dispatcher(_run, knobs.runtime, constexpr)
                put_on(JITFunction, "run", self, self._dispatcher)
                put_on(JITFunction, "__getitem__", self, self._dispatcher.subscript())
                for owner in tuner_classes(Autotuner):
                    put_on(owner, "run", self, _layered_tuner())
                put_on(Autotuner, "__init_subclass__", self, layered_birth(Autotuner, self, _layered_tuner))
        return self

    def stop(self) -> None:
        """Serves no more; with the last server that is on, Triton has its own way back."""
        from triton.runtime.autotuner import Autotuner
        from triton.runtime.jit import JITFunction

        with serving_lock():
            if self.active:
                self.active = False
                self._dispatcher.stop()
            for name in ("run", "__getitem__"):
                take_off(JITFunction, name)
            for owner in tuner_classes(Autotuner):
                take_off(owner, "run")
            take_off(Autotuner, "__init_subclass__")

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def launch(self, call: Call) -> Launched | Miss:
        """Launches from the release; why it could not where it could not."""
        plans, nearest = self._plan(call)
        launched = self._try(plans, nearest, call, self._launch_planned)
        if isinstance(launched, Launched):
            self._remember(call, plans)
        return launched

    def fits(self, call: Call) -> bool:
        """Whether `launch` would: an empty grid is checked as any other."""
        return isinstance(self._try(*self._plan(call), call, self._attempt), Launched)

    def essence(self, call: Call) -> tuple[Any, ...]:
        """What decides a launch: the call's values, and of its options those that count where its tensors lie."""
        options = call.options(self.options)
        place = place_of(call.values.values())
        if place == "cpu" or (not place and self._is_for_cpu):
            options = {name: value for name, value in options.items() if name not in CPU_IGNORES}
        return call.run_time(), typed(call.constants), typed(options)

    def preferred(self, calls: Sequence[Call]) -> int | None:
        """Of calls that differ in a tuner's config alone, the one whose unit the release's selection table names; None
        where it names none of them."""
        plans = [self._plan(call)[0] for call in calls]
        for variants in {id(each): each for found in plans for each, _ in found}.values():
            axes = [next((plan.axes for each, plan in found if each is variants), None) for found in plans]
            known = [each for each in axes if each is not None]
            shared = {name: value for name, value in known[0].items() if all(each.get(name) == value for each in known)}
            open_ = {name for each in known for name in each} - shared.keys()
            try:
                name, *_, row = variants.kernel.choose(*calls[0].run_time(), **shared)
            except (TypeError, ValueError, OverflowError, self._refusal):
                continue
            unit = next(each for each in variants.units if each.name == name)
            for place, each in enumerate(axes):
                if row and each is not None and all(unit.axes.get(axis) == each.get(axis) for axis in open_):
                    return place
        return None

    def refuse(self, call: Call, reason: Miss) -> MissingVariant:
        """The error that says why, with the spec of the unit that the call needs."""
        own = [unit for variants in self._variants_of(call.function)[0] for unit in variants.units]
        sentence = f"the release cannot run `{call.name}`: {reason}"
        if self._digest_of(call.function).fault or not reason.can_be_built:
            return MissingVariant(sentence)
        try:
            text = render_fragment(call, call.options(self.options), self._units, own, self._names)
        except Unstated as error:
            return MissingVariant(f"{sentence}; no spec can state it: {error}")
        return MissingVariant(f"{sentence}; this would make it:\n{text}")

    def _plan(self, call: Call) -> tuple[list[tuple[Variants, Plan]], Miss]:
        """The kernels that have the call's constexprs and options, in their order; why the nearest other has not."""
        kernels, nearest = self._variants_of(call.function)
        options = call.options(self.options)
        plans = []
        for variants in kernels:
            plan = variants.find(call, options)
            if isinstance(plan, Plan):
                plans.append((variants, plan))
            else:
                nearest = max(nearest, plan, key=_nearness)
        return plans, nearest

    def _try(
        self,
        plans: Sequence[tuple[Variants, Plan]],
        nearest: Miss,
        call: Call,
        attempt: Callable[[Variants, Plan, Call], Miss | None],
    ) -> Launched | Miss:
        """The first kernel that could be used as `attempt` does, or why the nearest could not."""
        for variants, plan in plans:
            miss = attempt(variants, plan, call)
            if miss is None:
                return Launched(variants, plan.axes, call)
            nearest = max(nearest, miss, key=_nearness)
        return nearest

    def _remember(self, call: Call, plans: Sequence[tuple[Variants, Plan]]) -> None:
        """Has the extension launch the next such call by itself."""
        key, digest = id(call.function), self._digest_of(call.function)
        before, entry = self._entries.get(key, (None, None))
        if before is not digest or (entry is not None and not entry.is_current()):
            entry = learn_function(self._dispatcher, call.function, digest, self.options)
            self._entries[key] = (digest, entry)
        if entry is not None:
            add_call(entry, call, self.options, plans)

    def _launch_planned(self, variants: Variants, plan: Plan, call: Call) -> Miss | None:
        sizes = call.sizes()
        hooks = getattr(call.function, "pre_run_hooks", ())
        miss = self._attempt(variants, plan, call) if hooks else None
        if miss is not None:
            return miss
        for hook in hooks:
            hook(*call.arguments, **call.keywords)
        return self._attempt(variants, plan, call, sizes)

    def _attempt(self, variants: Variants, plan: Plan, call: Call, sizes: tuple[int, ...] = ()) -> Miss | None:
        """Launches, or without sizes only checks; the launcher's own sentence where something does not fit."""
        try:
            if sizes:
                launch_hooked(variants, plan.axes, sizes, call.run_time(), None, Told.of(call.function), call.values)
            else:
                variants.kernel[(0,)](*call.run_time(), **plan.axes)
            return None
        except ValueError as error:  # tensors of several devices, or without memory
            return Miss(str(error), AT_VALUES, can_be_built=False)
        except (TypeError, OverflowError) as error:
            return Miss(str(error), AT_VALUES)
        except self._refusal as error:
            if getattr(error, "status", 0) not in (*_NO_FIT, _UNMET):
                raise
            can_be_built = getattr(error, "status", 0) != _UNMET
            return Miss(str(error), AT_UNITS, getattr(error, "nearness", 0), can_be_built)

    def _variants_of(self, function: Any) -> tuple[list[Variants], Miss]:
        """The kernels of a function's source, and why there is none."""
        digest = self._digest_of(function)
        if digest.fault:
            return [], Miss(f"its source cannot be compared: {digest.fault}", AT_SOURCE)
        return self._kernels.get(digest.text, []), Miss("its source is not in the release, or has changed", AT_SOURCE)

    def _digest_of(self, function: Any) -> SourceDigest:
        text: str = function.src
        known = self._known.get(id(function))
        if known is None or known[0]() is not function or known[1] != text or not known[2].is_current():
            forget = partial(self._forget, id(function))
            with serving_lock():  # Python 3.11 does not parse in several threads at a time
                known = (weakref.ref(function, forget), text, digest_source(function))
            self._known[id(function)] = known
        return known[2]

    def _forget(self, key: int, _: object) -> None:
        """Of a function that is no more."""
        self._known.pop(key, None)
        if self._entries.pop(key, None) is not None:
            self._dispatcher.forget(key)


def _nearness(miss: Miss) -> tuple[int, int]:
    return miss.nearness


def _run(dispatcher: Any, function: Any, arguments: Any, keywords: Any) -> Any:
    """In place of `JITFunction.run`: the first release that can; else the first that insists complains."""
    servers, below = find_layers(dispatcher)
    strict = [server for server in servers if server.strict]
    if servers and not keywords.get("warmup"):
        call = _read_call(function, arguments, keywords, strict)
        reasons = {}
        for server in servers if call else ():
            reasons[server] = server.launch(call)
            if not isinstance(reasons[server], str):  # another release has a class of its own for what was launched
                return reasons[server]
        if strict:
            raise strict[0].refuse(call, reasons[strict[0]])
    return below(function, *arguments, **keywords)


def _layered_tuner() -> Any:
    """A `run` of tuners that asks the servers first."""

    def layered(self: Any, *arguments: Any, **keywords: Any) -> Any:
        servers, below = find_layers(layered)
        read_call = partial(_read_call, strict=[])
        return run_tuned(servers, below, read_call, self, arguments, keywords)

    return layered


def _read_call(function: Any, arguments: Any, keywords: Mapping[str, Any], strict: Sequence[Any]) -> Call | None:
    """The call; None where the arguments are not the function's and Triton shall say so."""
    rest = {name: value for name, value in keywords.items() if name not in ("grid", "warmup")}
    try:
        return Call(function, arguments, rest, keywords["grid"])
    except TypeError:
        if strict:
            raise
        return None
