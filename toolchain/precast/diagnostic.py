"""Errors as text: place, cause, the line with a caret, hint, and how to reproduce. In: errors. Out: strings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from precast.errors import BuildFailed, CompileError, Place, PrecastError, escape_controls, order_of

UNITS_SHOWN = 4


def format_error(error: PrecastError) -> str:
    """The whole text of an error for a terminal or a log, without a closing newline or control characters."""
    if isinstance(error, BuildFailed):
        return format_failures(error.failures)
    return escape_controls(_format_one(error))


def _format_one(error: PrecastError) -> str:
    lines = [f"{error.where}: error: {error.message}" if error.where else f"error: {error.message}"]
    lines += quote_place(error.where)
    if isinstance(error, CompileError):
        lines += describe_unit(error, [error.unit])
    if error.hint:
        lines.append(f"hint: {error.hint}")
    return "\n".join(lines)


def format_failures(failures: Iterable[PrecastError]) -> str:
    """All failures of a build, by place, whatever order they came in; those that say the same thing at the same place
    stand once, with their units."""
    groups: dict[tuple[str, str, str], list[PrecastError]] = defaultdict(list)
    for failure in failures:
        groups[(type(failure).__name__, str(failure.where), failure.message)].append(failure)
    return "\n\n".join(format_group(group) for group in sorted(groups.values(), key=lambda group: order_of(group[0])))


def format_group(group: list[PrecastError]) -> str:
    first = group[0]
    if len(group) == 1 or not isinstance(first, CompileError):
        return format_error(first)
    units = sorted(error.unit for error in group if isinstance(error, CompileError))
    lines = [f"{first.where}: error: {first.message}" if first.where else f"error: {first.message}"]
    lines += quote_place(first.where)
    lines += describe_unit(first, units)
    if first.hint:
        lines.append(f"hint: {first.hint}")
    return "\n".join(lines)


def describe_unit(error: CompileError, units: list[str]) -> list[str]:
    """The lines that name unit, stage, pass and the command that replays the failure."""
    shown = ", ".join(units[:UNITS_SHOWN])
    if len(units) > UNITS_SHOWN:
        shown += f" and {len(units) - UNITS_SHOWN} more"
    single = len(units) == 1 and not units[0].endswith(":*")
    lines = [f"  unit:  {shown}" if single else f"  units: {shown}"]
    if error.stage:
        lines.append(f"  stage: {error.stage}")
    if error.pass_name:
        lines.append(f"  pass:  {error.pass_name}")
    if error.reproducer:
        lines.append(f"  reproduce: precast repro {error.reproducer}")
    return lines


def quote_place(where: Place | None) -> list[str]:
    """The source line and a caret under the place; nothing when the file cannot be read."""
    if where is None:
        return []
    try:
        with open(where.file, encoding="utf-8", errors="replace") as file:
            text = file.read().splitlines()[where.line - 1]
    except (OSError, IndexError):
        return []
    start = max(where.column, len(text) - len(text.lstrip()) + 1)  # a place that has a line only: its first word
    before = "".join("\t" if letter == "\t" else " " for letter in text[: start - 1])
    caret = "^" + "~" * (min(where.length, max(len(text) - start + 1, 1)) - 1)
    return [f"    {text}", f"    {before}{caret}"]
