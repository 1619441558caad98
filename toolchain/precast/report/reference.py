"""The reference: every key, option, command and event. In: their descriptions as data. Out: a page, JSON Schemas.

What it says is what the checkers, the command line's parser and the writer of events go by.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from precast.progress.event_keys import EVENTS
from precast.schema import Array, Either, JsonSchema, Key, Shape, Table
from precast.settings import PROJECT_KEYS
from precast.spec.keys import KERNEL_KEYS, OPTION_KEYS

DIALECT = "https://json-schema.org/draft/2020-12/schema"
INTRODUCTION = """\
# Reference

Every key, option, command and event. `precast schema page` prints this page for the Precast that is installed, and
`precast schema settings`, `spec` and `events` print JSON Schemas. [kernels.md](kernels.md), [building.md](building.md)
and [ci.md](ci.md) explain.
"""


@dataclass(frozen=True)
class Command:
    """A command of `precast`: what follows its name, what it does, and its arguments with what each means."""

    name: str
    usage: str
    meaning: str
    arguments: tuple[tuple[str, str], ...]


def settings_schema() -> JsonSchema:
    """The JSON Schema of a pyproject.toml, which says nothing of other tools' tables."""
    tool = {"type": "object", "properties": {"precast": PROJECT_KEYS.schema}}
    return {"$schema": DIALECT, "title": "pyproject.toml", "type": "object", "properties": {"tool": tool}}


def spec_schema() -> JsonSchema:
    """The JSON Schema of a spec file."""
    document = Table("", (Key("kernel", Table("", others=KERNEL_KEYS), "Kernels by name", required=True),))
    return {"$schema": DIALECT, "title": "Precast spec", **document.schema}


def events_schema() -> JsonSchema:
    """The JSON Schema of one line of `precast build --json`."""
    return {"$schema": DIALECT, "title": "Precast event", "anyOf": [_event_schema(*each) for each in EVENTS.items()]}


def _event_schema(name: str, table: Table) -> JsonSchema:
    schema = table.schema
    properties, required = schema["properties"], schema["required"]
    assert isinstance(properties, dict) and isinstance(required, list)
    return {**schema, "properties": {"event": {"const": name}, **properties}, "required": ["event", *required]}


def render_reference(commands: Iterable[Command]) -> str:
    """The page, in Markdown."""
    parts = [
        INTRODUCTION,
        "## Settings\n\nIn `pyproject.toml`.\n",
        *_tables(PROJECT_KEYS),
        "## Specs\n\nIn `kernels/*.toml`, or what `kernels` of the settings selects.\n",
        *_tables(KERNEL_KEYS),
        "## Options of the compiler\n\nIn `[tool.precast.defaults]`, and of a kernel in `options`, `matrix`, `configs` "
        "and `target`. A target passes over what only others have.\n",
        _render_rows(("option", "value", "which"), _option_rows()),
        "## Commands\n\n`precast COMMAND …`; `-C DIR`, before or after it, runs it there, and `-V` says the version.\n",
        *(_render_command(each) for each in commands),
        "## Events\n\nOf `precast build --json`: one object a line, of which `event` is the name.\n",
        *(_render_table(f"### `{name}`\n\n{table.header.capitalize()}.\n", table) for name, table in EVENTS.items()),
    ]
    return "\n".join(parts)


def _tables(table: Table) -> Iterator[str]:
    """A table and, after it, those that its keys have, but for options, which have a section of their own."""
    yield _render_table(f"### `{table.header}`\n", table)
    for key in table.keys:
        for inner in _inner_tables(key.shape):
            if inner is not OPTION_KEYS:
                yield from _tables(inner)


def _inner_tables(shape: Shape) -> Iterator[Table]:
    """The nearest tables with a header inside a shape."""
    if isinstance(shape, Table) and shape.header:
        yield shape
    elif isinstance(shape, Table) and shape.others:
        yield from _inner_tables(shape.others)
    elif isinstance(shape, Array):
        yield from _inner_tables(shape.of)
    elif isinstance(shape, Either):
        for each in shape.shapes:
            yield from _inner_tables(each)


def _render_table(heading: str, table: Table) -> str:
    rows = [(f"`{key.name}`", key.shape.words, _default(key), key.meaning) for key in table.keys]
    if table.others:
        rows.append(("any other name" if rows else "any name", table.others.words, "", table.others_meaning))
    names = ("key", "value", "default", "meaning")
    shown = [place for place in range(4) if place != 2 or any(key.default for key in table.keys)]
    return (
        heading
        + "\n"
        + _render_rows([names[place] for place in shown], [[row[each] for each in shown] for row in rows])
    )


def _default(key: Key) -> str:
    return "needed" if key.required else key.default


def _option_rows() -> Iterator[Sequence[str]]:
    return ((f"`{key.name}`", key.shape.words, key.meaning) for key in OPTION_KEYS.keys)


def _render_command(command: Command) -> str:
    heading = f"### `precast {command.name}`\n\n`precast {command.name}{command.usage}`: {command.meaning}\n"
    return heading + "\n" + _render_rows(("argument", "meaning"), command.arguments)


def _render_rows(names: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [" | ".join(cell.replace("|", "\\|") for cell in row) for row in (names, *rows)]
    lines.insert(1, "|".join(["---"] * len(names)))
    return "".join(f"| {line} |\n" if "---|" not in line else f"|{line}|\n" for line in lines)
