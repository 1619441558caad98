"""Whether the places that a build writes to can be written: no file where a folder belongs, and the reverse.

In: the outputs of stale steps. Out: nothing, or the error that names what is in the way.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from precast.errors import ToolError
from precast.layout import STORE


def refuse_misplaced(root: Path, outputs: Iterable[str]) -> None:
    """`ToolError` for the first path, relative to `root`, that is taken by something of another kind."""
    paths, folders = sorted(set(outputs)), set[str]()
    for path in (f"{STORE}/x", *paths):
        folders.update(_folders_of(path, folders))
    for folder in sorted(folders):
        place = os.path.join(root, folder)
        if not os.path.isdir(place) and os.path.lexists(place):
            what = "a file" if os.path.exists(place) else "a link that leads nowhere"
            raise ToolError(f"{folder} is {what}, and a folder belongs there", hint="move it away")
    for path in paths:
        if os.path.isdir(os.path.join(root, path)):
            raise ToolError(f"{path} is a folder, and a file belongs there", hint="move it away")


def _folders_of(path: str, known: set[str]) -> Iterator[str]:
    """The folders above a path, up to one that is known."""
    folder = os.path.dirname(path)
    while folder and folder not in known:
        yield folder
        folder = os.path.dirname(folder)
