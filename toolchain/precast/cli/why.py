"""`precast why UNIT…`: why units would be compiled again. In: units' texts or globs. Out: reasons, one a line."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from fnmatch import fnmatchcase
from pathlib import Path

from precast.cli.arguments import add_project
from precast.errors import SpecError, escape_controls, nearest_hint
from precast.graph.index import Index
from precast.graph.steps import plan_selection, selection_name
from precast.layout import INDEX_FILE
from precast.plan import Plan, PlannedUnit, plan_project
from precast.project import read_project
from precast.report.why import UP_TO_DATE, explain
from precast.spec.naming import parse_unit_text
from precast.target import expand_native

HELP = "Tell why units would be compiled again, or that they are up to date."
GLOB_LETTERS = frozenset("*?[")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "unit",
        nargs="+",
        metavar="UNIT",
        help="as `precast plan --json` prints it (softmax:dtype=fp16,BLOCK=1024@cuda:90), or a glob of such",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object per unit and line")
    add_project(parser)


def run(arguments: argparse.Namespace) -> int:
    wanted = [expand_native(each) for each in arguments.unit]
    for text in wanted:
        if not GLOB_LETTERS.intersection(text):
            parse_unit_text(text)  # what is no unit at all is told as such
    plan = plan_project(read_project(arguments.project))
    for planned, reasons in explain_all(select_units(plan, wanted), arguments.project, plan):
        if arguments.json:
            print(json.dumps({"unit": str(planned.unit), "reasons": reasons}, ensure_ascii=False))
        else:
            print(escape_controls("\n".join([f"{planned.unit}:", *(f"  {reason}" for reason in reasons)])))
    return 0


def select_units(plan: Plan, wanted: Sequence[str]) -> list[PlannedUnit]:
    """The units that are named or matched, in the plan's order; an error for a word that none is meant by."""
    chosen: set[str] = set()
    texts = [str(planned.unit) for planned in plan.units]
    for text in wanted:
        matching = [each for each in texts if each == text or fnmatchcase(each, text)]
        if not matching and GLOB_LETTERS.intersection(text):
            raise SpecError(f"no unit matches `{text}`", hint=nearest_hint(text, texts, "units"))
        chosen.update(matching or [str(plan.find(text).unit)])
    return [planned for planned in plan.units if str(planned.unit) in chosen]


def explain_all(
    units: Sequence[PlannedUnit], project: Path, plan: Plan
) -> Iterator[tuple[PlannedUnit, tuple[str, ...]]]:
    if not (project / INDEX_FILE).is_file():
        for planned in units:
            yield planned, explain(planned, project)
        return
    with closing(Index(project / INDEX_FILE, project.resolve())) as index:
        changes = {kernel: explain_selection(plan, kernel, index) for kernel in {each.unit.kernel for each in units}}
        for planned in units:
            reasons = tuple(each for each in explain(planned, project, index) if each != UP_TO_DATE)
            yield planned, (*reasons, *changes[planned.unit.kernel]) or (UP_TO_DATE,)


def explain_selection(plan: Plan, kernel: str, index: Index) -> tuple[str, ...]:
    """Whether calls of a kernel are given other units than in the last release, which compiles none of them anew."""
    found = next((each for each in plan.selection if each.kernel == kernel), None)
    record = index.step(selection_name(kernel))
    if found is None:
        return ("selection changed: there is no evidence any more",) if record else ()
    step = plan_selection(plan.makers, found)
    fresh = record is not None and record.key == step.full_key(index.digest)
    return () if fresh else (f"selection changed: {', '.join(found.files)}",)
