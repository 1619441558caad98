"""What a plugin author's code raised, in a line and at a line.

In: an exception. Out: its text, and the innermost place in given files that it came through.
"""

from __future__ import annotations

import traceback
from collections.abc import Collection
from pathlib import Path


def describe_error(error: BaseException) -> str:
    """An exception from a plugin's own code, in a line."""
    if isinstance(error, SystemExit):
        return f"it called `sys.exit({'' if error.code is None else repr(error.code)})`"
    if isinstance(error, SyntaxError):
        return f"SyntaxError: {error.msg}"
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def find_line(error: BaseException, files: Collection[Path]) -> tuple[Path, int] | None:
    """The innermost line of `files` that the exception came through; a syntax error's own line."""
    if isinstance(error, SyntaxError) and error.filename and Path(error.filename) in files:
        return Path(error.filename), error.lineno or 1
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if Path(frame.filename) in files:
            return Path(frame.filename), frame.lineno or 1
    return None
