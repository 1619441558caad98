"""`precast record -- COMMAND`: a program's launches as specs. In: a command. Out: a spec file, and what is in it."""

from __future__ import annotations

import argparse
from pathlib import Path

from precast.cli.streams import say
from precast.errors import SpecError
from precast.recording.merging import Merged
from precast.recording.process import record_command

HELP = "Run a program, and write the specs of all kernels that it launches through Triton."
DEFAULT = Path("kernels", "recorded.toml")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "%(prog)s [-h] [-o FILE] -- COMMAND ..."
    parser.add_argument(
        "-o", "--output", type=Path, default=DEFAULT, metavar="FILE", help=f"the spec file (default: {DEFAULT})"
    )
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="COMMAND", help="the program with its arguments")


def run(arguments: argparse.Namespace) -> int:
    words = arguments.words[1:] if arguments.words[:1] == ["--"] else arguments.words
    if not words:
        raise SpecError("there is no program to record", hint="write `precast record -- python train.py`")
    ran = record_command(arguments.output, words)
    say("\n".join(describe(ran.merged, arguments.output)))
    return ran.code


def describe(merged: Merged, file: Path) -> list[str]:
    """What was recorded, and what was not, line by line."""
    if not merged.kernels:
        lines = [f"{file}: the program launched no kernel that could be recorded"]
    else:
        news = f"{', '.join(merged.added)} in {file}" if merged.added else f"nothing that {file} did not have"
        lines = [f"recorded {_count(merged.variants, 'variant')} of {_count(merged.kernels, 'kernel')}; new: {news}"]
    return lines + [f"not recorded: {each.what}: {each.reason}" for each in merged.unsaid]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
