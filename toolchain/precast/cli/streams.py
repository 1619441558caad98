"""Standard streams that may be closed, full or dead. In: text. Out: the text, if it can be written; no exception."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import sys
from collections.abc import Iterator

OUTPUT = "standard output"


class Output(io.TextIOWrapper):
    """Standard output, whose errors name it as those of files name theirs; what its encoding lacks is escaped."""

    def __init__(self, stream: io.TextIOWrapper) -> None:
        super().__init__(stream.buffer, stream.encoding, "backslashreplace", line_buffering=stream.line_buffering)
        self._stream = stream  # which would close what both write to

    def write(self, text: str) -> int:
        with _naming_output():
            return super().write(text)

    def flush(self) -> None:
        with _naming_output():
            super().flush()


@contextlib.contextmanager
def _naming_output() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        error.filename = OUTPUT
        raise


def open_standard_streams() -> None:
    """Gives the descriptors 0 to 2 to the null device where they are closed, lest a file of ours gets their numbers.
    What goes wrong with standard output is then told as such."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # it gets the lowest number that is free
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout = Output(sys.stdout)


def say(text: str) -> None:
    """Text on standard error, if that can be written."""
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


def close_output() -> OSError | None:
    """Writes out what is still to be written to standard output. What refused, which is then not tried again."""
    try:
        sys.stdout.flush()
    except OSError as error:
        with contextlib.suppress(OSError, ValueError):  # there may be no descriptor behind it
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return error
    return None


def terminal_columns() -> int | None:
    """The width of the terminal that standard output is; None when it is none."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None
