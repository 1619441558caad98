"""`precast build`: from kernels to a release. In: the project's folder and globs. Out: events and a summary."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from precast.errors import SpecError
from precast.graph.driver import build
from precast.graph.reporting import CarefulReporter, choose_reporter
from precast.graph.session import Request
from precast.worker.memory import default_worker_count

HELP = "Build the units of a project and its release."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-j", "--jobs", type=int, metavar="N", help="units at once (default: what cores and memory allow)"
    )
    parser.add_argument("-k", "--keep-going", action="store_true", help="build what can be built when a unit fails")
    parser.add_argument("--target", action="append", metavar="GLOB", help="only targets like this; repeatable")
    parser.add_argument("--kernel", action="append", metavar="GLOB", help="only kernels like this; repeatable")
    parser.add_argument(
        "--check",
        nargs="?",
        type=parse_percent,
        const=1.0,
        metavar="PERCENT",
        help="then build samples again from nothing and compare (default: 1 %%, at least 10 units)",
    )
    parser.add_argument("--project", type=Path, default=Path(), metavar="DIR", help="folder of pyproject.toml")
    parser.add_argument("--json", action="store_true", help="one JSON object per line; the last is the summary")


def parse_percent(text: str) -> float:
    """A share of the units, as `5` or `5%`."""
    try:
        percent = float(text.removesuffix("%"))
    except ValueError:
        percent = -1.0
    if not 0 <= percent <= 100:
        raise SpecError(f"`--check={text}` is no share of the units", hint="`--check` takes a percentage, 0 to 100")
    return percent


def run(arguments: argparse.Namespace) -> int:
    if arguments.jobs is not None and arguments.jobs < 1:
        raise SpecError(f"{arguments.jobs} units at once build nothing", hint="`-j` takes 1 or more")
    request = Request(
        kernels=tuple(arguments.kernel or ("*",)),
        targets=tuple(arguments.target or ("*",)),
        jobs=arguments.jobs or default_worker_count(),
        keep_going=arguments.keep_going,
        check=arguments.check,
    )
    reporter = CarefulReporter(choose_reporter(sys.stdout, "json" if arguments.json else ""))
    try:
        build(arguments.project, request, reporter)
    except BaseException:
        if reporter.fault is None:  # else it came of that
            raise
    if reporter.fault is not None:
        raise reporter.fault
    return 0
