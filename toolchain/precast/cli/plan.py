"""`precast plan`: every unit, and what the sources' decorators say. In: a project. Out: tables or JSON."""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator, Sized

from precast.cli.arguments import add_globs, add_project, add_sort
from precast.cli.streams import say, terminal_columns
from precast.graph.steps import check_launchers
from precast.plan import Plan, PlannedUnit, plan_project
from precast.project import read_project
from precast.report.inspect import describe_conditions
from precast.report.table import Row, render_table, sort_units
from precast.spec.model import KernelSpec, Values, format_constant

HELP = "List every unit of the project and, as JSON, every output; needs no compiler."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_globs(parser, positional=True)
    add_sort(parser)
    add_project(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object")


def run(arguments: argparse.Namespace) -> int:
    project = read_project(arguments.project)
    kernels = (*arguments.kernels, *(arguments.kernel or ())) or ("*",)
    plan = plan_project(project, kernels=kernels, targets=arguments.target or ("*",))
    check_launchers(plan)
    if arguments.json:
        print(json.dumps(describe_plan(plan, arguments.sort)))
    else:
        print("\n".join(list_plan(plan, arguments.sort, terminal_columns())))
    for warning in plan.warnings:
        say(f"warning: {warning}")
    return 0


def describe_plan(plan: Plan, sort: str = "") -> dict[str, list[dict[str, object]]]:
    """The plan as JSON: the unit's text is unique, its outputs are relative to the project."""
    return {
        "units": [
            {
                "unit": str(planned.unit),
                "kernel": planned.unit.kernel,
                "variant": str(planned.unit.variant).partition(":")[2],
                "target": str(planned.unit.target),
                **describe_conditions(planned.unit),
                "outputs": list(planned.outputs),
            }
            for planned in sort_units(plan.units, _row_of, sort)
        ]
    }


def _row_of(planned: PlannedUnit) -> Row:
    return Row(planned.unit.variant, planned.unit.target, {})


def list_plan(plan: Plan, sort: str = "", columns: int | None = None) -> Iterator[str]:
    """Kernel by kernel: its source and decorators, then a table of its units."""
    rows = defaultdict(list)
    for planned in sort_units(plan.units, _row_of, sort):
        rows[planned.unit.kernel].append(_row_of(planned))
    for spec in plan.kernels:
        yield f"{spec.name}  {spec.source.text}  {count(rows[spec.name], 'unit')}"
        yield from (f"  {line}" for line in describe_decorators(spec))
        inside = None if columns is None else columns - 2
        yield from (f"  {line}" for line in render_table(rows[spec.name], inside))
    targets = {planned.unit.target for planned in plan.units}
    parts = (count(plan.units, "unit"), count(plan.kernels, "kernel"), count(targets, "target"))
    yield "{} of {} for {}".format(*parts)


def count(things: Sized, noun: str) -> str:
    return f"{len(things)} {noun}" if len(things) == 1 else f"{len(things)} {noun}s"


def describe_decorators(spec: KernelSpec) -> Iterator[str]:
    """What @triton.autotune and @triton.heuristics say, and whether the spec makes use of it."""
    if spec.source_configs is None:
        yield f"autotune: configs that the source computes{'' if spec.configs_of_source else '; not used'}"
    for config in spec.source_configs or ():
        yield f"autotune: {describe_config(config)}{'' if config in spec.configs else '; not used'}"
    if spec.heuristics:
        yield f"heuristics: {', '.join(spec.heuristics)}; the spec gives their values"


def describe_config(config: Values) -> str:
    return ", ".join(f"{name}={format_constant(value)}" for name, value in config)
