"""Which units of a release a call means, by its constexprs and options; its run-time arguments are the launcher's.

In: the units of an open release, a `Call`. Out: a `Plan`, or why there is none. This file goes into a release's Python
package, with the standard library alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from precast.launch.package.calls import LONG, Call, number_of_constant, place_of, plain
from precast.spec.spelling import Spelled, python_value

# Options of Triton that decide nothing on a CPU, whatever their value.
CPU_IGNORES = frozenset({"num_warps", "num_ctas", "num_stages", "maxnreg"})
# What Triton takes for an axis that a call does not say.
_DEFAULTS = {"num_warps": 4, "num_ctas": 1}


class Miss(str):
    """Why a kernel does not take a call, for the end of a sentence; of several, the nearest is told."""

    nearness: tuple[int, int]
    can_be_built: bool  # a unit of other values would take it

    def __new__(cls, text: str, stage: int, within: int = 0, can_be_built: bool = True) -> Miss:
        self = super().__new__(cls, text)
        self.nearness = (stage, within)
        self.can_be_built = can_be_built
        return self


AT_SOURCE, AT_CONSTANTS, AT_OPTIONS, AT_VALUES, AT_UNITS = range(5)  # stages: where a miss is found


@dataclass(frozen=True)
class Unit:
    """One unit of a release, as its index describes it."""

    name: str
    target: str
    constants: dict[str, Any]
    options: dict[str, Any]  # every one that its target has
    axes: dict[str, Any]
    grid: tuple[str, ...]
    requires: tuple[str, ...] = ()
    warps: int = 0
    ctas: int = 0
    shared_bytes: int = 0

    @property
    def backend(self) -> str:
        return self.target.partition(":")[0]

    def has_constants(self, constants: dict[str, Any], numbers: Mapping[str, Any] = MappingProxyType({})) -> bool:
        """Whether these are its constexprs; `numbers` has what members of enumerations are besides."""
        return self.constants.keys() == constants.keys() and all(
            _is_as_good(value, numbers.get(name), self.constants[name]) for name, value in constants.items()
        )

    def has(self, constants: dict[str, Any]) -> bool:
        """Whether it has these very values."""
        return all(_is_same(value, self.constants[name]) for name, value in constants.items())

    def disagreement(self, options: dict[str, Any]) -> str:
        """The first option that the unit was not compiled with; empty where there is none."""
        for name, value in options.items():
            free = self.backend == "cpu" and name in CPU_IGNORES
            if not free and (name not in self.options or self.options[name] != value):
                return name
        return ""


@dataclass(frozen=True)
class Plan:
    """How calls with the same constexprs and options are launched: the axes to name."""

    axes: dict[str, Any]
    place: str = ""  # where the call's tensors are, if that matters: cpu, gpu, any


class Variants:
    """One kernel of the release with its units."""

    def __init__(self, release: Any, kernel: Any) -> None:
        self.kernel = kernel
        self.units: list[Unit] = []
        self._release = release
        self._plans: dict[tuple[Any, ...], Plan | Miss | None] = {}

    def find(self, call: Call, options: dict[str, Any]) -> Plan | Miss:
        """The plan for a call, or why there is none."""
        key = (*typed(call.constants), "and", *typed(options))
        try:
            hash(key)
        except TypeError:  # what cannot be a key is no unit's value either
            return Miss(describe_unhashable(call.constants, options), AT_CONSTANTS)
        if key not in self._plans:
            self._plans[key] = self._choose(call, options, "")
        found = self._plans[key]
        if found is None:
            place = place_of(call.values.values()) or "any"
            key = (*key, place)
            found = self._plans.get(key) or self._choose(call, options, place)
            self._plans[key] = found
        return found or Miss("it depends on the device which unit is meant", AT_OPTIONS)

    def _choose(self, call: Call, options: dict[str, Any], place: str) -> Plan | Miss | None:
        """The plan; why there is none; None where it depends on the device, and `place` does not say which."""
        fitting = [unit for unit in self.units if unit.has_constants(call.constants, call.numbers)]
        fitting = [unit for unit in fitting if unit.has(call.constants)] or fitting  # the values themselves first
        if not fitting:
            return Miss(f"no variant has {describe_values(call.constants)}", AT_CONSTANTS)
        refused = {unit.target: unit.disagreement(options) for unit in fitting if unit.disagreement(options)}
        agreeing = [unit for unit in fitting if not unit.disagreement(options)]
        refused = {target: name for target, name in refused.items() if target not in {each.target for each in agreeing}}
        if refused and agreeing and not place:
            return None
        if refused and agreeing:
            reached = self._reached(fitting, place)
            refused = {target: name for target, name in refused.items() if target in reached}
            agreeing = [unit for unit in agreeing if unit.target in reached]
        for name in refused.values():
            return Miss(f"no variant has {describe_values({name: options[name]})}", AT_OPTIONS)
        return Plan(self._axes(fitting[0].constants, options, agreeing), place)

    def _reached(self, units: Iterable[Unit], place: str) -> set[str]:
        """The targets that the device here can run."""
        fits = {each["unit"] for each in self._release.query() if each["fits"]}
        targets = {unit.target for unit in units if unit.name in fits}
        gpus = {target for target in targets if not target.startswith("cpu:")}
        return targets - gpus if place == "cpu" or not (gpus or place == "gpu") else gpus

    def _axes(self, constants: dict[str, Any], options: dict[str, Any], units: list[Unit]) -> dict[str, Any]:
        """Axes by value; of an option that the call does not say, Triton's default where it is a choice."""
        said = {**_DEFAULTS, **options, **constants}
        chosen = {}
        for axis in self.kernel.axes:
            values = [unit.axes[axis] for unit in units if axis in unit.axes]
            if axis in constants and values:
                chosen[axis] = _axis_value(constants[axis])
            elif axis in said and said[axis] in values:
                chosen[axis] = said[axis]
            elif axis in CPU_IGNORES and values and all(unit.backend == "cpu" for unit in units):
                chosen[axis] = values[0]
        return chosen


def read_variants(release: Any) -> dict[str, list[Variants]]:
    """The kernels of a release by the digest of their source."""
    kernels: dict[str, Variants] = {}
    found: dict[str, list[Variants]] = {}
    for entry in release.query():
        about = json.loads(entry["description"])
        name = entry["kernel"]
        if name not in kernels:
            kernels[name] = Variants(release, release.kernel(name))
            found.setdefault(about["source"], []).append(kernels[name])
        constants = {each: _constant_of(value) for each, value in about["constants"].items()}
        unit = Unit(entry["unit"], entry["target"], constants, about["options"], about["axes"], tuple(about["grid"]),
                    tuple(about["requires"]), entry["warps"], entry["ctas"], entry["shared_bytes"])  # fmt: skip
        kernels[name].units.append(unit)
    return found


def _is_same(value: Any, other: Any) -> bool:
    return type(value) is type(other) and bool(value == other)


def _is_as_good(value: Any, number: Any, own: Any) -> bool:
    """Whether a value, or the number that it is besides, is a unit's constant, or the number that that is besides: as
    Python compares members of enumerations, and so Triton's cache."""
    values = [value] if number is None else [value, number]
    owns = [own] if (own_number := number_of_constant(own)) is None else [own, own_number]
    return any(_is_same(one, other) for one in values for other in owns)


def _constant_of(described: Any) -> Any:
    """A constexpr's value from an index's description."""
    return Spelled(described["spelled"]) if isinstance(described, dict) else plain(described)


def _axis_value(value: Any) -> Any:
    """What a launch takes for an axis: of a spelling the number, else its text; of a data type Triton's own name."""
    if isinstance(value, str) and value.startswith("tl."):
        return f"tl.{LONG.get(value[3:], value[3:])}"
    number = python_value(value) if isinstance(value, Spelled) and not value.is_tuple else value
    return number if isinstance(number, int | float) or not isinstance(value, Spelled) else value.text


def describe_values(values: dict[str, Any]) -> str:
    """`BLOCK=128, MODE="fast"`."""
    words = (f"{name}={json.dumps(value) if isinstance(value, str) else value}" for name, value in values.items())
    return ", ".join(words) or "no constexprs"


def describe_unhashable(*tables: dict[str, Any]) -> str:
    for name, value in (pair for table in tables for pair in table.items()):
        if type(value).__hash__ is None:
            return f"no variant has a {type(value).__name__} for `{name}`"
    return "no variant has these constexprs and options"


def typed(values: dict[str, Any]) -> list[tuple[str, type, Any]]:
    """Items that differ where `1` and `True` do."""
    return [(name, type(value), value) for name, value in values.items()]
