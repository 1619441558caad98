"""Diagnostics of native code: MLIR writes them to file descriptor 2, so that is where they are caught.

In: a block of code that calls libtriton. Out: what it wrote there, which is also passed on to where it belonged.
One job at a time in a process: threads would mix their diagnostics.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

_PARSED_FILE = re.compile(r"\S*pass-output-\w+\.mlir")


class Diagnostics:
    """Text that native code wrote while a `capture_diagnostics` block ran; empty until the block ends."""

    text = ""

    def first_error(self) -> str:
        """The first line that reports an error, without the name of the file that was parsed; else ``""``."""
        for line in self.text.splitlines():
            if "error:" in line:
                return _PARSED_FILE.sub("IR", line.strip())
        return ""


@contextmanager
def capture_diagnostics(*, forward: bool = True) -> Iterator[Diagnostics]:
    """Catches file descriptor 2; on the way out gives it back and, with `forward`, writes there what was caught."""
    caught = Diagnostics()
    sys.stderr.flush()
    saved = os.dup(2)
    try:
        with tempfile.TemporaryFile() as file:
            os.dup2(file.fileno(), 2)
            try:
                yield caught
            finally:
                sys.stderr.flush()
                os.dup2(saved, 2)
                file.seek(0)
                data = file.read()
                caught.text = data.decode(errors="replace")
                if forward and data:
                    os.write(saved, data)
    finally:
        os.close(saved)
