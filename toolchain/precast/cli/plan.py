"""`precast plan`: every unit, its outputs, and what the sources' decorators say. In: a project. Out: text or JSON."""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Sized
from pathlib import Path

from precast.graph.steps import check_launchers
from precast.plan import Plan, plan_project
from precast.project import read_project
from precast.spec.model import KernelSpec, Values, format_constant

HELP = "list every unit and output of the project; needs no compiler"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--project", type=Path, default=Path(), metavar="DIR", help="folder of pyproject.toml")
    parser.add_argument("--kernel", action="append", metavar="GLOB", help="only kernels that match (may be repeated)")
    parser.add_argument("--target", action="append", metavar="GLOB", help="only targets that match (may be repeated)")
    parser.add_argument("--json", action="store_true", help="one JSON object")


def run(arguments: argparse.Namespace) -> int:
    project = read_project(arguments.project)
    plan = plan_project(project, kernels=arguments.kernel or ("*",), targets=arguments.target or ("*",))
    check_launchers(plan)
    if arguments.json:
        print(json.dumps(describe_plan(plan)))
    else:
        print("\n".join(list_plan(plan)))
    for warning in plan.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    return 0


def describe_plan(plan: Plan) -> dict[str, list[dict[str, object]]]:
    """The plan as JSON: the unit's text is unique, its outputs are relative to the project."""
    return {
        "units": [
            {
                "unit": str(planned.unit),
                "kernel": planned.unit.kernel,
                "variant": str(planned.unit.variant).partition(":")[2],
                "target": str(planned.unit.target),
                "hints": [str(hint) for hint in planned.unit.variant.hints],
                "requires": list(planned.unit.requires),
                "outputs": list(planned.outputs),
            }
            for planned in plan.units
        ]
    }


def list_plan(plan: Plan) -> Iterator[str]:
    """Kernel by kernel: its source and decorators, then each unit with its outputs."""
    units = defaultdict(list)
    for planned in plan.units:
        units[planned.unit.kernel].append(planned)
    for spec in plan.kernels:
        yield f"{spec.name}  {spec.source.text}"
        yield from (f"  {line}" for line in describe_decorators(spec))
        for planned in units[spec.name]:
            yield f"  {planned.unit}"
            yield from (f"    {path}" for path in planned.outputs)
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
