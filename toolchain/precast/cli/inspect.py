"""`precast inspect`: registers, spills, sizes and IR of built units. In: the build folder. Out: a table or a text."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from precast.codec import to_json
from precast.errors import SpecError
from precast.report.inspect import BuiltUnit, find_units, read_built_units, read_stage
from precast.spec.naming import shorten_unit_text

UNFOLDED = 1_000_000  # columns
HELP = "show what is known of built units, or a stage's text of one"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("unit", nargs="?", default="*", help="a unit, variant or kernel; may be a glob (default: all)")
    parser.add_argument("--stage", help="print this stage's text of the one unit that matches")
    parser.add_argument("--json", action="store_true", help="one JSON object per unit and line")
    parser.add_argument("--project", type=Path, default=Path(), help="folder of pyproject.toml (default: this one)")


def run(arguments: argparse.Namespace) -> int:
    built = read_built_units(arguments.project / "build" / "units")
    if not built:
        raise SpecError("nothing is built here", hint="run `precast build` first")
    found = find_units(built, arguments.unit)
    if arguments.stage:
        return print_stage(found, arguments.stage)
    if arguments.json:
        for unit in found:
            print(to_json(unit.result))
        return 0
    print_table(found, sys.stdout)
    return 0


def print_table(found: tuple[BuiltUnit, ...], stream: TextIO) -> None:
    """The table; names fold at a terminal's edge alone, so that each unit is one line of a pipe or file."""
    Console(file=stream, width=None if stream.isatty() else UNFOLDED).print(make_table(found))


def print_stage(found: tuple[BuiltUnit, ...], stage: str) -> int:
    if len(found) > 1:
        raise SpecError(f"{len(found)} units match; --stage prints one", hint=f"the first is `{found[0].result.unit}`")
    sys.stdout.buffer.write(read_stage(found[0], stage))
    return 0


def make_table(found: tuple[BuiltUnit, ...]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("unit", overflow="fold")
    for name in ("code", "registers", "spills", "shared", "warps"):
        table.add_column(name, justify="right")
    for unit in found:
        facts = unit.result.facts
        cells = (facts.code_bytes, facts.registers, facts.spill_bytes, facts.shared_bytes, facts.num_warps)
        table.add_row(
            Text(shorten_unit_text(unit.result.unit)), *("–" if cell is None else str(cell) for cell in cells)
        )
    return table
