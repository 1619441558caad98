"""`precast verify DIR`: is a release what its manifest says, and what is demanded. In: a release. Out: a verdict."""

from __future__ import annotations

import argparse
from pathlib import Path

from precast.errors import printable
from precast.release.policy import Policy, verify_against

HELP = "Check every file of a release or an installed package, and demand a name, a version and a signature of it."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("release", type=Path, metavar="DIR", help="a release, a link to one, or an installed package")
    parser.add_argument(
        "--key", type=Path, metavar="FILE", help="public ed25519 key (PEM), or key ring, that must have signed it"
    )
    parser.add_argument("--name", metavar="NAME", help="the project that it must be a release of")
    parser.add_argument("--at-least", metavar="VERSION", help="the oldest version of the project that it may have")


def run(arguments: argparse.Namespace) -> int:
    policy = Policy(arguments.name, arguments.at_least, arguments.key)
    manifest = verify_against(arguments.release, policy)
    signed = f", signed by {printable(arguments.key)}" if arguments.key else ""
    print(f"{manifest.name} {manifest.version}: {len(manifest.units)} units, {len(manifest.files)} files, good{signed}")
    return 0
