"""`precast package DIR --out FOLDER`: a release as a wheel and as a tar.zst, the same bytes each time."""

from __future__ import annotations

import argparse
from pathlib import Path

from precast.release.package import package_release

HELP = "Pack a release as a wheel and as a tar.zst."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("release", type=Path, metavar="DIR", help="a release directory, or a link to one")
    parser.add_argument("--out", type=Path, default=Path("dist"), metavar="FOLDER", help="default: dist")


def run(arguments: argparse.Namespace) -> int:
    for path in package_release(arguments.release, arguments.out):
        print(path)
    return 0
