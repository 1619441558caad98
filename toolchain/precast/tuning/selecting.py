"""Which units of a kernel ship, and when each is taken: what evidence comes to.

In: a kernel's spec and units, evidence. Out: the units that enter the release, and the rules of its selection table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from precast.spec.model import KernelSpec, Unit
from precast.tuning.buckets import Measured, Row, make_rows
from precast.tuning.choosing import choose_configs
from precast.tuning.describing import Config, config_of
from precast.tuning.reading import Evidence
from precast.tuning.rules import Condition, Plain, SelectionRule, plain

SHOWN = 3  # conditions of a rule in its text


@dataclass(frozen=True)
class Selection:
    """What ships of a kernel on one target."""

    axes: tuple[str, ...]  # that are tuned
    configs: tuple[Config, ...]  # in the order of the spec
    rules: tuple[SelectionRule, ...]
    warnings: tuple[str, ...] = ()


def select(spec: KernelSpec, units: Sequence[Unit], evidence: Sequence[Evidence], source: str) -> Selection | None:
    """The choice for the units of a kernel on one target; None where no evidence is of their configs.

    `source` is the digest of the kernel's source as it is now.
    """
    axes = evidence[0].axes if evidence else ()
    configs = tuple(dict.fromkeys(config_of(unit, axes) for unit in units))
    warnings, usable = [], []
    for each in evidence:
        found = _match(each, configs) if each.axes == axes else None
        if found is None:
            message = f"{each.file}: no config of `{spec.name}` on {each.target} is in it"
            warnings.append(f"{message}; `precast tune` measures anew")
            continue
        if each.source and each.source != source:
            message = f"{each.file} was measured with another source of `{spec.name}`"
            warnings.append(f"{message}; `precast tune` measures anew")
        usable.append((each, found))
    if not usable:
        return Selection(axes, configs, (), tuple(warnings)) if warnings else None
    times = [problem.times for _, problems in usable for problem in problems]
    ships = {number for each, _ in usable for number, config in enumerate(configs) if _ships(each, config)}
    chosen = choose_configs(times, _find_author(usable, configs), ships, spec.tuning.ship)
    rules = [
        _make_rule(spec, units, each, row, configs) for each, problems in usable for row in make_rows(problems, chosen)
    ]
    return Selection(axes, tuple(configs[number] for number in sorted(chosen)), tuple(rules), tuple(warnings))


def state_rules(spec: KernelSpec, units: Sequence[Unit]) -> tuple[SelectionRule, ...]:
    """The rows that a spec states itself, for one target's units."""
    known = {name for unit in units for name, _ in unit.variant.values}
    target = str(units[0].target)
    return tuple(
        SelectionRule(
            spec.name, row.conditions, tuple((name, plain(value)) for name, value in row.axes if name in known), "",
            target, _describe_row("stated", row.conditions),
        )
        for row in spec.tuning.rows
    )  # fmt: skip


def _describe_row(tier: str, conditions: Sequence[tuple[str, str, int]]) -> str:
    words = [" ".join(map(str, each)) for each in conditions]
    return ", ".join([tier, *words[:SHOWN], *(["…"] if len(words) > SHOWN else [])])


def _plainly(config: Config) -> dict[str, Plain]:
    return {name: plain(value) for name, value in config}


def _ships(evidence: Evidence, config: Config) -> bool:
    return any(_plainly(config) == evidence.configs[number] for number in evidence.ships)


def _find_author(usable: Sequence[tuple[Evidence, Sequence[Measured]]], configs: Sequence[Config]) -> int:
    """The author's config: the first of the spec but for those that were measured and ran nowhere."""
    for number, config in enumerate(configs):
        was_measured = any(_plainly(config) in each.configs for each, _ in usable)
        if not was_measured or any(problem.times[number] is not None for _, found in usable for problem in found):
            return number
    return 0


def _match(evidence: Evidence, configs: Sequence[Config]) -> list[Measured] | None:
    """The problems with times for `configs`, None for those that were not measured; None when none was."""
    places = [
        next((n for n, each in enumerate(evidence.configs) if each == _plainly(config)), -1) for config in configs
    ]
    if all(place < 0 for place in places):
        return None
    return [
        Measured(each.axes, each.sizes, tuple(None if place < 0 else each.times[place] for place in places))
        for each in evidence.problems
    ]


def _make_rule(
    spec: KernelSpec, units: Sequence[Unit], evidence: Evidence, row: Row, configs: Sequence[Config]
) -> SelectionRule:
    known = [pair for unit in units for pair in unit.variant.values]
    given = dict(row.axes)
    axes = dict.fromkeys((name, plain(value)) for name, value in known if name in given)
    conditions = tuple(Condition(*each) for each in row.conditions)
    text = _describe_row(row.tier, conditions)
    fitting = [pair for pair in axes if pair[1] == given[pair[0]]]
    chosen = _plainly(configs[row.config]).items()
    return SelectionRule(
        spec.name, conditions, (*fitting, *chosen), evidence.device, evidence.target, f"{text} ({evidence.file})"
    )
