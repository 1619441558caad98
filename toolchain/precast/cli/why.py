"""`precast why UNIT`: why a unit would be compiled again. In: a unit's text. Out: reasons, one a line."""

from __future__ import annotations

import argparse
from pathlib import Path

from precast.plan import plan_project
from precast.project import read_project
from precast.report.why import explain
from precast.spec.naming import parse_unit_text

HELP = "tell why a unit would be compiled again, or that it is up to date"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "unit", metavar="UNIT", help="as `precast plan` prints it: softmax:dtype=fp16,BLOCK=1024@cuda:90"
    )
    parser.add_argument("--project", type=Path, default=Path(), metavar="DIR", help="folder of pyproject.toml")


def run(arguments: argparse.Namespace) -> int:
    parse_unit_text(arguments.unit)  # what is no unit at all is told as such
    plan = plan_project(read_project(arguments.project))
    planned = plan.find(arguments.unit)
    reasons = explain(planned, arguments.project)
    print("\n".join([f"{planned.unit}:", *(f"  {reason}" for reason in reasons)]))
    return 0
