"""`precast sign DIR --key FILE`: an ed25519 signature beside a release's manifest, and keys to make it with."""

from __future__ import annotations

import argparse
from pathlib import Path

from precast.errors import SpecError
from precast.release.sign import make_keys, public_key_hex, sign_release

HELP = "Sign a release with an ed25519 key, or make a pair of keys."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("release", type=Path, nargs="?", metavar="DIR", help="a release directory")
    parser.add_argument("--key", type=Path, metavar="FILE", help="private key (PEM)")
    parser.add_argument("--new-keys", type=Path, metavar="FOLDER", help="make precast.key and precast.pub there")


def run(arguments: argparse.Namespace) -> int:
    if arguments.new_keys:
        private, public = make_keys(arguments.new_keys)
        print(f"{private}\n{public}\nfor a launcher's open: {public_key_hex(public)}")
        return 0
    if not arguments.release or not arguments.key:
        raise SpecError("nothing to sign", hint="precast sign DIR --key FILE, or precast sign --new-keys FOLDER")
    print(sign_release(arguments.release, arguments.key))
    return 0
