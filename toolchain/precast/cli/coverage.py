"""`precast coverage RELEASE FILE…`: can a release serve what was recorded? In: both. Out: what it lacks, as specs."""

from __future__ import annotations

import argparse
from pathlib import Path

from precast.cli.streams import say
from precast.launch.package.fragment import kernel_name
from precast.launch.package.specs import make_table, render_kernel
from precast.recording.coverage import compare_release

HELP = "Compare a release with recorded spec files, and print the specs of the variants that it lacks."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("release", type=Path, metavar="RELEASE", help="a release's folder")
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="spec files that `precast record` wrote")


def run(arguments: argparse.Namespace) -> int:
    """0 where every recorded launch is served, 1 where some are not."""
    coverage = compare_release(arguments.release, arguments.files)
    for each in coverage.unread:
        say(f"warning: kernel {each} says more than recording writes: it is not compared")
    taken: set[str] = set()
    for lack in coverage.missing:
        name = kernel_name(lack.kernel, taken)
        taken.add(name)
        print(f"# missing on {', '.join(lack.targets)}")
        print(f"{render_kernel(name, make_table(lack.source, lack.variants))}\n")
    lacking = {(lack.kernel, variant.key) for lack in coverage.missing for variant in lack.variants}
    print(f"{coverage.variants - len(lacking)} of {coverage.variants} recorded variants are served")
    if coverage.assumed:
        print(f"{coverage.assumed} of them belong to kernels that were recorded without a device, as assumed")
    return 1 if lacking else 0
