"""`precast schema WHAT`: JSON Schemas of settings, specs and events, or the reference page. Out: a text."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator

from precast.report.reference import Command, events_schema, render_reference, settings_schema, spec_schema
from precast.schema import JsonSchema

HELP = "Print the JSON Schema of settings, specs or events, for editors and programs, or the reference page."

SCHEMAS: dict[str, Callable[[], JsonSchema]] = {
    "settings": settings_schema,
    "spec": spec_schema,
    "events": events_schema,
}
PAGE = "page"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "what",
        choices=(*SCHEMAS, PAGE),
        metavar="WHAT",
        help=f"{', '.join(SCHEMAS)}: a JSON Schema; {PAGE}: every key, option, command and event",
    )


def run(arguments: argparse.Namespace) -> int:
    if arguments.what == PAGE:
        print(render_reference(describe_commands()), end="")
    else:
        print(json.dumps(SCHEMAS[arguments.what](), indent=2, ensure_ascii=False))
    return 0


def describe_commands() -> Iterator[Command]:
    """Every command, as its parser has it."""
    from precast.cli import COMMANDS, build_parser, load_command

    parser = build_parser(COMMANDS)
    [commands] = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    for name in COMMANDS:
        command = commands.choices[name]
        actions = [each for each in command._actions if each.dest not in ("help", "more_folders")]
        usage = "".join(f" {_usage_of(each)}" for each in actions if not each.option_strings)
        rows = tuple((_name_of(each), _help_of(command, each)) for each in actions)
        yield Command(name, usage, _sentence(load_command(name).HELP), rows)


def _value_of(action: argparse.Action) -> str:
    """What stands for an argument's value."""
    if isinstance(action.metavar, str):
        return action.metavar
    return "|".join(map(str, action.choices)) if action.choices else action.dest.upper()


def _usage_of(action: argparse.Action) -> str:
    """A positional argument as a usage line has it."""
    value = _value_of(action)
    return {"*": f"[{value}…]", "+": f"{value}…", "?": f"[{value}]"}.get(str(action.nargs), value)


def _name_of(action: argparse.Action) -> str:
    if not action.option_strings:
        return f"`{_value_of(action)}`"
    value = "" if action.nargs == 0 else f" {_value_of(action)}"
    value = f"[={value.strip()}]" if action.nargs == "?" else value
    *short, last = action.option_strings
    return ", ".join(f"`{each}`" for each in (*short, f"{last}{value}"))


def _help_of(command: argparse.ArgumentParser, action: argparse.Action) -> str:
    words = {**vars(action), "prog": command.prog, "default": action.default}
    return (action.help or "") % words


def _sentence(text: str) -> str:
    text = text.rstrip(".")
    return f"{text[0].lower()}{text[1:]}."
