"""Which reporters a build has. In: a stream, what the user asked for, the environment. Out: reporters.

Each is imported when it is needed: a build with nothing to do needs next to nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

from precast.errors import SpecError, nearest_hint
from precast.progress.events import Reporter
from precast.progress.json_lines import JsonReporter
from precast.progress.plain import PlainReporter, QuietReporter

REPORTS = ("junit", "sarif")


def choose_reporter(stream: TextIO, style: str = "") -> Reporter:
    """The reporter for `style` (`json`, `plain`, `bar`, `quiet`, `verbose`), or the one that suits the stream."""
    if style == "json":
        return JsonReporter(stream)
    if style == "quiet":
        return QuietReporter(stream)
    live = stream.isatty() and os.environ.get("TERM") != "dumb"
    if style != "bar" and not (style in ("", "verbose") and live):
        return PlainReporter(stream)
    from precast.progress.terminal import TerminalReporter

    return TerminalReporter(stream, every_step=style == "verbose")


def parse_report(text: str) -> tuple[str, Path]:
    """`junit=build.xml` as a kind of report and where it goes."""
    kind, equals, path = text.partition("=")
    if not equals or not path:
        raise SpecError(f"`--report {text}` names no file", hint="write `--report junit=PATH` or `--report sarif=PATH`")
    if kind not in REPORTS:
        raise SpecError(f"there is no report `{kind}`", hint=nearest_hint(kind, REPORTS, "reports"))
    return kind, Path(path)


def make_reports(wanted: Sequence[tuple[str, Path]], project: Path, errors: TextIO) -> Iterator[Reporter]:
    """The reports that were asked for, and annotations where a forge takes them."""
    on_forge = os.environ.get("GITHUB_ACTIONS") == "true"  # runners of its kind say so, whoever's they are
    if not wanted and not on_forge:
        return
    from precast.progress.annotations import AnnotationReporter
    from precast.progress.junit import JunitReporter
    from precast.progress.places import find_places
    from precast.progress.sarif import SarifReporter

    places = find_places(project, os.environ)
    for kind, path in wanted:
        yield JunitReporter(path, places) if kind == "junit" else SarifReporter(path, places)
    if on_forge:
        yield AnnotationReporter(errors, places)
