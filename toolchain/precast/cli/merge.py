"""`precast merge RELEASE…`: joins releases of one project that several machines built."""

from __future__ import annotations

import argparse
from pathlib import Path

from precast.graph.merging import merge_releases
from precast.layout import GENERATED

HELP = "Join releases of one project, built on several machines, into one."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("releases", type=Path, nargs="+", metavar="RELEASE", help="folders of the releases to join")
    parser.add_argument(
        "--project", type=Path, default=Path(), metavar="DIR", help=f"where `{GENERATED}` is, which gets the release"
    )


def run(arguments: argparse.Namespace) -> int:
    print(merge_releases(arguments.releases, arguments.project / GENERATED))
    return 0
