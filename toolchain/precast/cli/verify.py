"""`precast verify DIR`: is a release what its manifest says, and who signed it. In: a release. Out: a verdict."""

from __future__ import annotations

import argparse
from pathlib import Path

from precast.release.sign import verify_signature
from precast.release.verify import verify_release

HELP = "Check every digest of a release, and its signature when a key is given."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("release", type=Path, metavar="DIR", help="a release directory, or a link to one")
    parser.add_argument("--key", type=Path, metavar="FILE", help="public ed25519 key (PEM) that must have signed it")


def run(arguments: argparse.Namespace) -> int:
    manifest = verify_release(arguments.release, allow_bytecode=not arguments.key)
    if arguments.key:
        verify_signature(arguments.release, arguments.key)
    signed = f", signed by {arguments.key}" if arguments.key else ""
    print(f"{manifest.name} {manifest.version}: {len(manifest.units)} units, {len(manifest.files)} files, good{signed}")
    return 0
