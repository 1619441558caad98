"""The error tree: what a user did wrong, told with place, cause and hint.

Every module raises these; `cli` alone prints them and chooses exit codes. A `PrecastError` is the user's to
mend (exit 1); a `BugError`, like any other exception, is ours (exit 2).
"""

from __future__ import annotations

import difflib
import os
import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath


@dataclass(frozen=True)
class Place:
    """A place in a file of the user's: 1-based line and column, and the length that the caret line underlines."""

    file: str
    line: int
    column: int = 1
    length: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"

    def within(self, start: int, length: int) -> Place:
        """A place in the same line, `start` characters on."""
        return Place(self.file, self.line, self.column + start, max(1, length))


class LatePlace(Place):
    """A place that is found when somebody asks: nobody does while nothing is wrong."""

    def __init__(self, find: Callable[[], Place]) -> None:
        self._find = find

    @cached_property
    def _found(self) -> Place:
        return self._find()

    @property
    def file(self) -> str:
        return self._found.file

    @property
    def line(self) -> int:
        return self._found.line

    @property
    def column(self) -> int:
        return self._found.column

    @property
    def length(self) -> int:
        return self._found.length

    def __eq__(self, other: object) -> bool:
        return self._found == other

    def __hash__(self) -> int:
        return hash(self._found)


class PrecastError(Exception):
    """Something that the user can mend: `message` says what, `where` says where, `hint` says what would do."""

    def __init__(self, message: str, where: Place | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message


def order_of(error: PrecastError) -> tuple[str, int, int]:
    """Sorts errors by place; those without one come first."""
    return (error.where.file, error.where.line, error.where.column) if error.where else ("", 0, 0)


class SpecError(PrecastError):
    """A spec, project setting or command line says something that is not so."""


class PlanError(PrecastError):
    """Specs that are right one by one do not go together."""


class PassError(PrecastError):
    """A pass or anchor does not exist, a pass refused its input, or its output is not valid IR."""

    pass_name = ""  # of the pass to blame, where that is known


class PluginError(PrecastError):
    """A pass plugin cannot be loaded."""


class ToolError(PrecastError):
    """A program or library that the build needs is missing, of another version, or out of space."""


class ReleaseError(PrecastError):
    """A release is damaged, of another schema, or not signed by the key that was asked for."""


class CompileError(PrecastError):
    """One unit did not compile. Several can be true at once; `cli` groups identical ones."""

    def __init__(
        self,
        message: str,
        where: Place | None = None,
        hint: str | None = None,
        *,
        unit: str,
        stage: str = "",
        pass_name: str = "",
        reproducer: str = "",
    ) -> None:
        super().__init__(message, where, hint)
        self.unit = unit
        self.stage = stage
        self.pass_name = pass_name
        self.reproducer = reproducer


class BuildFailed(PrecastError):
    """A build ended with failed units; each was reported when it failed, or is in `failures`."""

    def __init__(self, failures: tuple[PrecastError, ...]) -> None:
        super().__init__(f"{len(failures)} of the build's jobs failed")
        self.failures = failures


class PlanFailed(BuildFailed):
    """Several things in a project are wrong: all that were found are in `failures`, and nothing was built."""

    def __init__(self, failures: tuple[PrecastError, ...]) -> None:
        PrecastError.__init__(self, f"{len(failures)} errors in the project")
        self.failures = failures


class BugError(Exception):
    """A fault of Precast's own: the message says which belief did not hold."""


def relative_text(text: str, folder: PurePath | str) -> str:
    """`text` with files named relative to the project's `folder`, or to where Python finds packages.

    What Python says of an import holds absolute paths, which mean nothing in a log of another machine.
    """
    for place in (folder, *sorted(filter(os.path.isabs, sys.path), key=len, reverse=True)):
        text = text.replace(f"{place}/", "")
    return text


# What moves a terminal's cursor, turns its text round or is no character at all.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def escape_controls(text: str) -> str:
    """`text` as a terminal may have it: control characters as escapes, but for the ends of lines and tabs."""
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def printable(text: object, most: int = 200) -> str:
    """A name or value from outside on one line; what is longer than `most` characters is cut in its middle."""
    shown = escape_controls(str(text)).replace("\n", "\\n").replace("\t", "\\t")
    return shown if len(shown) <= most else f"{shown[: most // 2]}…{shown[-most // 2 :]}"


def find_nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """The known name that is most like `name`; "" where none is alike. A higher `cutoff`, up to 1, asks for more."""
    return next(iter(difflib.get_close_matches(name, list(known), n=1, cutoff=cutoff)), "")


def nearest_hint(name: str, known: Iterable[str], noun: str = "") -> str:
    """The hint for an unknown `name`: the nearest known one, or the list of what there is."""
    names = sorted(set(known))
    near = find_nearest(name, names)
    if near:
        return f"did you mean `{near}`?"
    if not names:
        return f"there are no {noun}" if noun else "there is none"
    listed = ", ".join(f"`{each}`" for each in names[:12]) + (", …" if len(names) > 12 else "")
    return f"known {noun}: {listed}" if noun else f"known: {listed}"
