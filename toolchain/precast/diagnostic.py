"""Errors as text: place, cause, the line with a caret, hint, and how to reproduce. In: errors. Out: strings."""

from __future__ import annotations

import hashlib
import os
from collections import defaultdict
from collections.abc import Iterable

from precast.bounded import read_bounded
from precast.errors import BuildFailed, CompileError, Place, PrecastError, escape_controls, order_of, printable

UNITS_SHOWN = 4
LINES_SHOWN, LETTERS_SHOWN, PLACE_SHOWN = 60, 6000, 1000
COLUMNS_SHOWN = 240  # of a source line
MESSAGE_FILE = "message.txt"  # in a reproducer: what went wrong, in full


def format_error(error: PrecastError) -> str:
    """The whole text of an error for a terminal or a log, without a closing newline or control characters.

    Of a message that is too long for that, the start, and the file that has all of it.
    """
    if isinstance(error, BuildFailed):
        return format_failures(error.failures)
    return _format_one(error, [error.unit] if isinstance(error, CompileError) else [])


def _format_one(error: PrecastError, units: list[str]) -> str:
    message = shorten(error.message, error.reproducer if isinstance(error, CompileError) else "")
    lines = [f"{printable(error.where, PLACE_SHOWN)}: error: {message}" if error.where else f"error: {message}"]
    lines += quote_place(error.where)
    if isinstance(error, CompileError):
        lines += describe_unit(error, units)
    if error.hint:
        lines.append(f"hint: {shorten(error.hint)}")
    return escape_controls("\n".join(lines))


def is_long(text: str) -> bool:
    """Whether a text is cut where it is shown."""
    return len(text.splitlines()) > LINES_SHOWN or len(text) > LETTERS_SHOWN


def shorten(text: str, reproducer: str = "") -> str:
    """The start of a long text and where all of it is: in the failure's reproducer, or a file made for it."""
    if not is_long(text):
        return text
    lines = text.splitlines()
    start = "\n".join(lines[:LINES_SHOWN])[:LETTERS_SHOWN]
    place = f"{reproducer}/{MESSAGE_FILE}" if reproducer else _keep(text)
    more = f"{len(lines)} lines and {len(text)} characters"
    return f"{start} …\n  (of {more}; all of it: {place})" if place else f"{start} …\n  (of {more})"


def _keep(text: str) -> str:
    """A file in the temporary folder that holds a text; empty when there is no space for it."""
    import tempfile  # for what hardly ever happens

    data = escape_controls(text).encode()
    try:
        path = os.path.join(tempfile.gettempdir(), f"precast-message-{hashlib.sha256(data).hexdigest()[:12]}.txt")
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
    except OSError:
        return ""
    return path


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
    return _format_one(first, sorted(error.unit for error in group if isinstance(error, CompileError)))


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
        text = read_bounded(where.file).decode("utf-8", "replace").splitlines()[where.line - 1]
    except (OSError, IndexError):
        return []
    start = max(where.column, len(text) - len(text.lstrip()) + 1)  # a place that has a line only: its first word
    if len(text) > COLUMNS_SHOWN:
        skipped = max(0, start - COLUMNS_SHOWN // 2)
        text, start = text[skipped : skipped + COLUMNS_SHOWN], start - skipped
    before = "".join("\t" if letter == "\t" else " " for letter in text[: start - 1])
    caret = "^" + "~" * (min(where.length, max(len(text) - start + 1, 1)) - 1)
    return [f"    {text}", f"    {before}{caret}"]
