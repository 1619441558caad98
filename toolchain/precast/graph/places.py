"""Whether the places that a build writes to can be written: no file where a folder belongs, and the reverse.

In: the outputs of stale steps. Out: nothing, or the error that names what is in the way.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from precast.errors import ToolError
from precast.layout import STORE


def refuse_misplaced(root: Path, outputs: Iterable[str]) -> None:
    """`ToolError` for the first path, relative to `root`, that is taken by something of another kind."""
    paths = sorted(set(outputs))
    folders = {parent for path in (f"{STORE}/x", *paths) for parent in PurePosixPath(path).parents}
    for folder in sorted(folders):
        if (root / folder).exists() and not (root / folder).is_dir():
            raise ToolError(f"{folder} is a file, and a folder belongs there", hint="move it away")
    for path in paths:
        if (root / path).is_dir():
            raise ToolError(f"{path} is a folder, and a file belongs there", hint="move it away")
