"""`precast build`: from kernels to a release. In: the project's folder and globs. Out: events and a summary.

What only a build with something to do needs is imported then.
"""

from __future__ import annotations

import argparse
import os
import sys
from argparse import BooleanOptionalAction
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from precast.cache.settings import ADDRESS_HINT, CacheWish, find_address_fault, shown
from precast.cli.arguments import add_globs, add_project
from precast.errors import SpecError
from precast.graph.lock import locked
from precast.graph.request import Request
from precast.graph.snapshot import Found, find_earlier, snapshot_path
from precast.layout import BUILD
from precast.progress.careful import CarefulReporter
from precast.progress.choosing import choose_reporter, make_reports, parse_report
from precast.progress.events import Summary, tell_end

if TYPE_CHECKING:
    from precast.graph.session import Session

HELP = "Build the units of a project and its release."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_globs(parser, positional=True)
    parser.add_argument(
        "-j", "--jobs", type=int, metavar="N", help="units at once (default: what cores and memory allow)"
    )
    parser.add_argument("-k", "--keep-going", action="store_true", help="build what can be built when a unit fails")
    parser.add_argument("-n", "--dry-run", action="store_true", help="list what would be made and why; make nothing")
    loudness = parser.add_mutually_exclusive_group()
    loudness.add_argument("-q", "--quiet", action="store_true", help="say what goes wrong and nothing else")
    loudness.add_argument("-v", "--verbose", action="store_true", help="say why each step is made, and when it is")
    loudness.add_argument("--json", action="store_true", help="one JSON object per line; the last is the summary")
    parser.add_argument(
        "--check",
        nargs="?",
        type=parse_percent,
        const=1.0,
        metavar="PERCENT",
        help="then build samples again from nothing and compare (default: 1 %%, at least 10 units)",
    )
    parser.add_argument(
        "--candidates",
        action="store_true",
        help="build every config of the kernels that have problems, for `precast tune`",
    )
    parser.add_argument("--cache", metavar="URL", help="the shared cache: a folder or an address")
    parser.add_argument("--no-cache", dest="cache", action="store_const", const="", help="no shared cache")
    parser.add_argument("--cache-read", action=BooleanOptionalAction, help="whether to take from the shared cache")
    parser.add_argument("--cache-write", action=BooleanOptionalAction, help="whether to give to the shared cache")
    parser.add_argument("--executor", metavar="URL", help="have a cluster compile: dask://HOST:PORT or ray://HOST:PORT")
    parser.add_argument(
        "--report",
        action="append",
        type=parse_report,
        metavar="KIND=PATH",
        help="also write the outcome as `junit` or `sarif`; repeatable",
    )
    add_project(parser)


def parse_percent(text: str) -> float:
    """A share of the units, as `5` or `5%`."""
    try:
        percent = float(text.removesuffix("%"))
    except ValueError:
        percent = -1.0
    if not 0 <= percent <= 100:
        raise SpecError(f"`--check={text}` is no share of the units", hint="`--check` takes a percentage, 0 to 100")
    return percent


def parse_address(url: str | None) -> str | None:
    """The address that a command line gives; a folder is meant from where the command runs."""
    if url and (fault := find_address_fault(url)):
        raise SpecError(f"`{shown(url, whole=False)}` is no address of a cache: {fault}", hint=ADDRESS_HINT)
    return os.path.abspath(os.path.expanduser(url)) if url and "://" not in url else url


def parse_executor(address: str | None) -> str:
    """The cluster that a command line names; "" for none."""
    if not address:
        return ""
    from precast.worker.connecting import ADDRESS_HINT, find_address_fault

    fault = find_address_fault(address)
    if fault:
        raise SpecError(f"`{address}` is no address of a cluster: {fault}", hint=ADDRESS_HINT)
    return address


def run(arguments: argparse.Namespace) -> int:
    style = next((each for each in ("json", "quiet", "verbose") if getattr(arguments, each)), "")
    reports = tuple(make_reports(arguments.report or (), arguments.project, sys.stderr))
    request = Request(
        kernels=(*arguments.kernels, *(arguments.kernel or ())) or ("*",),
        targets=tuple(arguments.target or ("*",)),
        jobs=arguments.jobs or 0,
        keep_going=arguments.keep_going,
        candidates=arguments.candidates,
        check=arguments.check,
        cache=CacheWish(parse_address(arguments.cache), arguments.cache_read, arguments.cache_write),
        executor=parse_executor(arguments.executor),
    )
    earlier, refusal = None, check_jobs(arguments.jobs)
    try:
        earlier = None if refusal or arguments.dry_run else look_for_earlier(arguments.project, request)
    except Exception as error:  # told when there is a reporter
        refusal = error
    unmoved = summarize(arguments.project, earlier) if earlier and not earlier.moved else None
    plain = "plain" if unmoved and style in ("", "verbose") else style  # nothing is shown while it runs
    reporter = CarefulReporter(choose_reporter(sys.stdout, plain), *reports)

    def work() -> None:
        if refusal is not None:
            raise refusal
        if unmoved is not None:
            reporter.finish(unmoved)
        elif arguments.dry_run:
            preview_build(arguments, request, reporter)
        else:
            build_moved(arguments, request, reporter, earlier)

    return run_reported(work, reporter)


def check_jobs(count: int | None) -> Exception | None:
    if count is None or count > 0:
        return None
    return SpecError(f"{count} units at once build nothing", hint="`-j` takes 1 or more")


def run_reported(work: Callable[[], None], reporter: CarefulReporter) -> int:
    """Runs `work`, whose end the reporter hears of, whatever it is; what could not be written is the error of all."""
    try:
        work()
    except BaseException as error:
        if not reporter.finished:
            tell_end(reporter, error)
        if reporter.fault is None:  # else it came of that
            raise
    if reporter.fault is not None:
        raise reporter.fault
    return 0


def look_for_earlier(folder: Path, request: Request) -> Found | None:
    """An earlier build of the same, as far as it still stands; None when it does not, or more is asked for."""
    if request.check is not None or not (folder / snapshot_path(request)).exists():
        return None
    with locked(folder / BUILD):
        return find_earlier(folder, request)


def summarize(folder: Path, earlier: Found) -> Summary:
    """The summary of a build that has nothing to do."""
    snapshot = earlier.snapshot
    return Summary(0, snapshot.units, 0, snapshot.units, str(folder.resolve() / snapshot.release))


def preview_build(arguments: argparse.Namespace, request: Request, reporter: CarefulReporter) -> None:
    """Lists what would be made, and why."""
    from precast.cli.preview import print_preview
    from precast.graph.driver import preview

    with preview(arguments.project, request, reporter) as session:
        print_preview(session, as_json=arguments.json)
        if arguments.json:
            reporter.finish(Summary(units=len(session.steps.units)))


def build_moved(
    arguments: argparse.Namespace, request: Request, reporter: CarefulReporter, earlier: Found | None
) -> None:
    """Builds what may have something to do."""
    from precast.cli.preview import print_preview
    from precast.graph.driver import build
    from precast.worker.memory import default_worker_count

    def explain(session: Session) -> None:
        print_preview(session, as_json=False)

    request = replace(request, jobs=request.jobs or default_worker_count())
    build(arguments.project, request, reporter, explain if arguments.verbose else None, earlier)


def refuse(words: Sequence[str], error: SpecError) -> None:
    """Tells programs that read `--json` of a command line that is wrong."""
    if "--json" in words:
        tell_end(choose_reporter(sys.stdout, "json"), error)
