"""`precast cache stats|gc|verify|warm`: looks after the shared cache of a project, or the one at `--cache`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from precast.cache.place import CacheFault, Listed
from precast.cache.settings import SIZE_HINT, CacheSettings, CacheWish, format_size, parse_size, shown
from precast.cache.shared import open_place
from precast.cache.upkeep import Holdings, count_items, find_damaged, shrink
from precast.cli.build import parse_address
from precast.errors import SpecError, ToolError
from precast.project import read_project

HELP = "Look after the shared cache."
ACTIONS = {
    "stats": "say what it holds",
    "gc": "remove what was used longest ago, until it is as small as its limit says",
    "verify": "find and remove what is damaged",
    "warm": "take what it has of the project's units, give it what is built here",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = "; ".join(f"{name}: {text}" for name, text in ACTIONS.items())
    parser.add_argument("action", choices=tuple(ACTIONS), metavar="ACTION", help=actions.replace("%", "%%"))
    parser.add_argument("--cache", metavar="URL", help="a folder or an address, instead of the project's")
    parser.add_argument("--limit", metavar="SIZE", help="for gc: `10GB`, instead of the project's `limit`")
    parser.add_argument("--project", type=Path, default=Path(), metavar="DIR", help="folder of pyproject.toml")


def run(arguments: argparse.Namespace) -> int:
    wish = CacheWish(parse_address(arguments.cache))
    if arguments.action == "warm":
        return warm(arguments.project, wish)
    settings = wish.over(CacheSettings() if arguments.cache else read_project(arguments.project).cache)
    if not settings.url:
        raise SpecError("the project has no shared cache", hint="write `url` in [tool.precast.cache], or give --cache")
    try:
        place = _listed(settings.url, arguments.project)
        return _act(arguments, place, settings)
    except CacheFault as fault:
        raise ToolError(f"the cache at {shown(settings.url)} fails: {fault.cause}") from None


def _listed(url: str, folder: Path) -> Listed:
    place = open_place(url, folder)
    if not hasattr(place, "items"):
        raise SpecError(
            f"the server at {shown(url)} does not say what it holds",
            hint="run this where its files are: `--cache FOLDER`",
        )
    return place  # type: ignore[return-value]  # it has all that is asked of one


def _act(arguments: argparse.Namespace, place: Listed, settings: CacheSettings) -> int:
    if arguments.action == "stats":
        print(_words(count_items(place)))
    elif arguments.action == "gc":
        print(f"removed {_words(shrink(place, _limit(arguments.limit, settings)))}; left {_words(count_items(place))}")
    else:
        damaged = list(find_damaged(place))
        for item in damaged:
            place.remove(item)
            print(f"removed {item.kind}/{item.name}: damaged")
        print(f"{len(damaged)} damaged")
        return 1 if damaged else 0
    return 0


def _limit(text: str | None, settings: CacheSettings) -> int:
    if text is None:
        if not settings.limit:
            raise SpecError("gc needs a limit", hint='give `--limit 10GB`, or write `limit = "10GB"`')
        return settings.limit
    try:
        return parse_size(text)
    except ValueError:
        raise SpecError(f"`{text}` is no size", hint=SIZE_HINT) from None


def _words(holdings: Holdings) -> str:
    return f"{holdings.entries} entries, {holdings.blobs} blobs, {format_size(holdings.bytes)}"


def warm(folder: Path, wish: CacheWish) -> int:
    """Takes and gives without compiling anything."""
    from precast.graph.warming import warm_cache

    warnings: list[str] = []
    note: Callable[[str], None] = warnings.append
    done = warm_cache(read_project(folder), wish, note)
    for warning in warnings:
        print(f"warning: {warning}")
    print(f"{done.taken} units taken, {done.given} given, {done.absent} to be compiled")
    return 0
