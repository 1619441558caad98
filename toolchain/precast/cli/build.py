"""`precast build`: from kernels to a release. In: the project's folder and globs. Out: events and a summary."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from precast.errors import SpecError
from precast.graph.lock import locked
from precast.graph.reporting import CarefulReporter, Reporter, Summary, choose_reporter
from precast.graph.request import Request
from precast.graph.snapshot import find_unmoved, snapshot_path
from precast.layout import BUILD

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
        jobs=arguments.jobs or 0,
        keep_going=arguments.keep_going,
        check=arguments.check,
    )
    style = "json" if arguments.json else ""
    unmoved = summarize_unmoved(arguments.project, request)
    reporter = CarefulReporter(choose_reporter(sys.stdout, style or ("plain" if unmoved else "")))
    try:
        if unmoved is None:
            build_moved(arguments.project, request, reporter)
        else:
            reporter.finish(unmoved)
    except BaseException:
        if reporter.fault is None:  # else it came of that
            raise
    if reporter.fault is not None:
        raise reporter.fault
    return 0


def summarize_unmoved(folder: Path, request: Request) -> Summary | None:
    """The summary of a build that has nothing to do; None when there may be something, or more is asked for."""
    if request.check is not None or not (folder / snapshot_path(request)).exists():
        return None
    with locked(folder / BUILD):
        found = find_unmoved(folder, request)
    if found is None:
        return None
    return Summary(0, found.units, 0, found.units, str(folder.resolve() / found.release))


def build_moved(folder: Path, request: Request, reporter: Reporter) -> None:
    """Builds what may have something to do; only then is all that is needed for it imported."""
    from precast.graph.driver import build
    from precast.worker.memory import default_worker_count

    build(folder, replace(request, jobs=request.jobs or default_worker_count()), reporter)
