"""Arguments that several commands share. In: a parser. Out: the same, with them; and the folders that they name."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from precast.bounded import read_bounded
from precast.errors import SpecError
from precast.layout import SETTINGS


def add_project(parser: argparse.ArgumentParser) -> None:
    """`--project`; without it the project is the one that the working directory lies in."""
    parser.add_argument(
        "--project", type=Path, metavar="DIR", help="folder of pyproject.toml (default: this one or one above it)"
    )


def add_globs(parser: argparse.ArgumentParser, *, positional: bool = False) -> None:
    """`--kernel` and `--target`, and kernels as plain words."""
    if positional:
        parser.add_argument("kernels", nargs="*", metavar="KERNEL", help="only kernels like this; may be globs")
    parser.add_argument("--target", action="append", metavar="GLOB", help="only targets like this; repeatable")
    parser.add_argument("--kernel", action="append", metavar="GLOB", help="only kernels like this; repeatable")


def add_sort(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--sort", default="", metavar="COLUMN", help="by this column; downwards with `-` before it: `--sort=-code`"
    )


def add_folder(parser: argparse.ArgumentParser, name: str) -> None:
    """`-C`, which may stand before and after the command; `name` is where its value is kept."""
    parser.add_argument(
        "-C", dest=name, action="append", metavar="DIR", help="run there; files are named as from there"
    )


def find_command(words: Sequence[str]) -> str:
    """The word that is the command: the first, or the one after `-C`; "" when options stand there."""
    place = 0
    while place < len(words) and words[place].startswith("-C"):
        place += 2 if words[place] == "-C" else 1
    return words[place] if place < len(words) and not words[place].startswith("-") else ""


@contextmanager
def entered(folders: Sequence[str]) -> Iterator[None]:
    """The working directory moved to the last of `folders`, each relative to the one before it, and back."""
    before = os.getcwd() if folders else ""
    try:
        for folder in folders:
            if not os.path.isdir(folder):
                raise SpecError(f"there is no folder `{folder}`", hint="`-C` takes the folder to run in")
            os.chdir(folder)
        yield
    finally:
        if before:
            os.chdir(before)


def has_settings(folder: Path) -> bool:
    """Whether a folder is a project's, or may be: its settings are there and cannot be read or parsed."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        table = tomllib.loads(read_bounded(folder / SETTINGS).decode("utf-8-sig"))
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError):
        return True
    tools = table.get("tool", {})
    return not isinstance(tools, dict) or "precast" in tools


def find_project(start: Path) -> Path:
    """The nearest folder at or above `start` whose settings have a [tool.precast] table; `start` when there is none.

    As a path relative to `start`, so that messages name files as they are reached from it.
    """
    above = (start.joinpath(*[".."] * count) for count in range(len(start.resolve().parents) + 1))
    return next((each for each in above if has_settings(each)), start)
