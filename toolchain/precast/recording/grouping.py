"""Which variants of a function are one kernel: those that one launcher can take.

In: variants of a function, what kernels it has. Out: the variants that each of them is to have besides, and those of
new ones. A number in one launch and a tensor in another are two kernels: a launcher has one type for an argument.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from precast.errors import PlanError
from precast.launch.formats.interface import describe_interface
from precast.launch.names import find_name_faults
from precast.launch.package.specs import Variant, make_table
from precast.spec import model
from precast.spec.spelling import Constant, Spelled, spell
from precast.spec.types import BITS, ArgumentType, parse_type
from precast.target import Target

_SOURCE = model.Source("", "", "")
_TARGET = Target.parse("cuda:90")  # which decides nothing of a launcher


@dataclass
class Group:
    """The variants of one kernel; `name` is empty where the file is yet to have it."""

    name: str
    held: list[Variant]
    added: list[Variant] = field(default_factory=list)

    @property
    def every(self) -> list[Variant]:
        return [*self.held, *self.added]

    @property
    def rows(self) -> set[str]:
        return {each.row for each in self.every}


def group_variants(function: str, kernels: Mapping[str, Sequence[Variant]], missing: Sequence[Variant]) -> list[Group]:
    """The function's kernels with what each is to have besides: the last one that can take it, else a new one.

    All hint sets of a row are in one kernel, so that a call finds the one with the most hints.
    """
    groups = [Group(name, list(held)) for name, held in kernels.items()]
    rows: dict[str, list[Variant]] = {}
    for each in missing:
        home = next((group for group in groups if each.row in group.rows), None)
        if home is None:
            rows.setdefault(each.row, []).append(each)
        else:
            home.added.append(each)
    together = list(itertools.chain(*rows.values()))
    for variants in [together] if _find_home(function, groups, together) else rows.values():
        home = _find_home(function, groups, variants)
        if home is None:
            home = Group("", [])
            groups.append(home)
        home.added += variants
    return groups


def _find_home(function: str, groups: Sequence[Group], variants: Sequence[Variant]) -> Group | None:
    found = (each for each in reversed(groups) if not find_launcher_fault(function, [*each.every, *variants]))
    return next(found, None)


def find_launcher_fault(function: str, variants: Sequence[Variant]) -> str:
    """Why variants cannot be one kernel of a release; empty where they can."""
    rows = list({each.row: each for each in variants}.values())
    names = dict.fromkeys(name for each in rows for name in each.types)
    types = [[parse_type(each.types.get(name, "none")) for name in names] for each in rows]
    for name, column in zip(names, zip(*types, strict=True), strict=True):
        if not all(_agree(*pair) for pair in itertools.combinations(dict.fromkeys(column), 2)):
            return f"argument `{name}` is of another kind in another variant"
    configs = make_table("", rows).get("configs", [{}])
    units = [_unit_of(function, config, list(names), each) for config, each in zip(configs, types, strict=True)]
    try:
        interface = describe_interface("release", units)
    except PlanError as error:
        return error.message
    return next((f"{fault.message}: {fault.hint}" for fault in find_name_faults(interface)), "")


def _agree(one: ArgumentType, other: ArgumentType) -> bool:
    """Whether the JIT specialises both by the same rules, as far as a launcher may take both: it knows no hints of
    truth values, and none of what is in a tuple."""
    if "none" in (one.kind, other.kind):
        return True
    if "tuple" in (one.kind, other.kind):
        return one.kind == other.kind and all(map(_agree, one.items, other.items))
    return (BITS.get(str(one)) == 1) == (BITS.get(str(other)) == 1)


def _unit_of(
    function: str, config: Mapping[str, Any], names: Sequence[str], types: Sequence[ArgumentType]
) -> model.Unit:
    values = tuple((name, _constant_of(value)) for name, value in config.items())
    arguments = tuple(model.Argument(name, str(kind)) for name, kind in zip(names, types, strict=True))
    return model.Unit(model.Variant(function, values), _TARGET, _SOURCE, arguments, (), ())


def _constant_of(value: Any) -> Constant:
    """A constexpr's value from its TOML, the reverse of `specs.state_value`."""
    if isinstance(value, list):
        return spell(tuple(map(_constant_of, value)))
    if isinstance(value, str) and value[:1] == '"':
        return str(json.loads(value))
    if value == "None":
        return None
    return Spelled(value) if isinstance(value, str) and ":" in value else spell(value)
