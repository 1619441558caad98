"""`precast record -- COMMAND`: a program's launches as specs. In: a command. Out: a spec file, and what is in it."""

from __future__ import annotations

import argparse
from pathlib import Path

from precast.cli.streams import say
from precast.errors import SpecError
from precast.recording.merging import Merged
from precast.recording.process import record_command
from precast.target import Backend, Target

HELP = "Run a program, and write the specs of all kernels that it launches through Triton."
DEFAULT = Path("kernels", "recorded.toml")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "%(prog)s [-h] [-o FILE] [--no-device TARGET] -- COMMAND ..."
    parser.add_argument(
        "-o", "--output", type=Path, default=DEFAULT, metavar="FILE", help=f"the spec file (default: {DEFAULT})"
    )
    parser.add_argument("--no-device", metavar="TARGET", help="as on this GPU (cuda:90, …), which is not there")
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="COMMAND", help="the program with its arguments")


def run(arguments: argparse.Namespace) -> int:
    words = arguments.words[1:] if arguments.words[:1] == ["--"] else arguments.words
    if not words:
        raise SpecError("there is no program to record", hint="write `precast record -- python train.py`")
    target = "" if arguments.no_device is None else _parse_target(arguments.no_device)
    ran = record_command(arguments.output, words, target)
    say("\n".join(describe(ran.merged, arguments.output, target)))
    return ran.code


def _parse_target(text: str) -> str:
    target = Target.parse(text)
    if target.kind is Backend.CPU:
        raise SpecError("every machine has a CPU, so that a program is recorded on it", hint="leave out `--no-device`")
    return str(target)


def describe(merged: Merged, file: Path, target: str = "") -> list[str]:
    """What was recorded, and what was not, line by line."""
    if not merged.kernels:
        lines = [f"{file}: the program launched no kernel that could be recorded"]
    else:
        news = f"{', '.join(merged.added)} in {file}" if merged.added else f"nothing that {file} did not have"
        without = f" as assumed for {target}, without a device" if target else ""
        counts = f"{_count(merged.variants, 'variant')} of {_count(merged.kernels, 'kernel')}"
        lines = [f"recorded {counts}{without}; new: {news}"]
    return lines + [f"not recorded: {each.what}: {each.reason}" for each in merged.unsaid]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
