"""`precast inspect`: registers, spills, sizes and IR of built units. In: the build folder. Out: tables or a text."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from precast.artifact import Facts
from precast.cli.arguments import add_project, add_sort
from precast.cli.streams import say, terminal_columns
from precast.codec import to_json
from precast.errors import PrecastError, SpecError, escape_controls
from precast.plan import plan_project
from precast.project import read_project
from precast.report.inspect import BuiltUnit, describe_conditions, find_units, read_built_units, read_stage
from precast.report.table import Cell, Row, number_cell, render_table, size_cell, sort_units
from precast.spec.naming import parse_unit_text
from precast.target import expand_native

UNKNOWN: dict[str, object] = {"hints": None, "requires": None, "equal": None}  # of a unit that is planned no more
HELP = "Show what is known of built units, or a stage's text of one."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "unit", nargs="*", default=["*"], help="units, variants or kernels; may be globs (default: all)"
    )
    parser.add_argument("--stage", help="print this stage's text of the one unit that matches")
    add_sort(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object per unit and line")
    add_project(parser)


def run(arguments: argparse.Namespace) -> int:
    built = read_built_units(arguments.project / "build" / "units")
    if not built:
        raise SpecError("nothing is built here", hint="run `precast build` first")
    found = find_units(built, *(expand_native(each) for each in arguments.unit))
    if arguments.stage:
        return print_stage(found, arguments.stage)
    if arguments.json:
        conditions = read_conditions(arguments.project)
        for unit in sort_units(found, _row_of, arguments.sort):
            print(json.dumps({**json.loads(to_json(unit.result)), **conditions.get(unit.result.unit, UNKNOWN)}))
        return 0
    print("\n".join(list_units(found, arguments.sort, terminal_columns())))
    return 0


def read_conditions(folder: Path) -> dict[str, dict[str, object]]:
    """What launches of each unit must meet, as the specs say it now; nothing, and a warning, where they cannot be
    read."""
    try:
        plan = plan_project(read_project(folder))
    except PrecastError as error:
        say(f"warning: what launches must meet is not known: {escape_controls(str(error))}")
        return {}
    return {str(each.unit): describe_conditions(each.unit) for each in plan.units}


def list_units(found: Sequence[BuiltUnit], sort: str = "", columns: int | None = None) -> Iterator[str]:
    """Kernel by kernel, a table of its units."""
    ordered = sorted(sort_units(found, _row_of, sort), key=lambda unit: unit.kernel)
    for place, (kernel, units) in enumerate(groupby(ordered, lambda unit: unit.kernel)):
        if place:
            yield ""
        rows = list(map(_row_of, units))
        yield kernel
        inside = None if columns is None else columns - 2
        yield from (f"  {line}" for line in render_table(rows, inside))


def _row_of(unit: BuiltUnit) -> Row:
    name = parse_unit_text(unit.result.unit)
    return Row(name.variant, name.target, describe_facts(unit.result.facts))


def describe_facts(facts: Facts) -> dict[str, Cell]:
    return {
        "code": size_cell(facts.code_bytes),
        "registers": number_cell(facts.registers),
        "spills": size_cell(facts.spill_bytes),
        "shared": size_cell(facts.shared_bytes),
        "warps": number_cell(facts.num_warps),
    }


def print_stage(found: Sequence[BuiltUnit], stage: str) -> int:
    if len(found) > 1:
        raise SpecError(f"{len(found)} units match; --stage prints one", hint=f"the first is `{found[0].result.unit}`")
    sys.stdout.buffer.write(read_stage(found[0], stage))
    return 0
