"""What a build that was killed leaves half done, and the mark by which the next one knows that there may be some.

In: the folder of a project, from who holds its lock. Out: no drafts below its build folder, however the last build
ended. All of that folder is looked through only where a build did not come to its proper end: the mark is on the disk
before anything else of a build is, and goes when the build has gone well. What is written at other times lies in few
folders.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from precast.layout import BUILD, ENTRIES, KERNELS, PLUGINS, SNAPSHOTS
from precast.store import is_draft, remove_drafts, write_file

MARK = f"{BUILD}/unfinished"
# Where commands write that build nothing, and a build after its end.
_UNMARKED = (BUILD, KERNELS, PLUGINS, SNAPSHOTS, ENTRIES)


def holds_unfinished(folder: Path) -> bool:
    """Whether there may be something that was not finished."""
    return (folder / MARK).exists() or any(_holds_drafts(folder / each) for each in _UNMARKED)


def _holds_drafts(folder: Path) -> bool:
    return folder.is_dir() and any(map(is_draft, os.listdir(folder)))


def begin_writing(folder: Path) -> None:
    """Removes what was not finished, and leaves the mark."""
    if (folder / MARK).exists():
        remove_drafts(folder / BUILD)
    for each in _UNMARKED:
        remove_drafts(folder / each, deep=False)
    write_file(folder / MARK, b"", durable=True)


def end_writing(folder: Path) -> None:
    """Takes the mark away, when all is finished. If that fails, the next build looks in vain."""
    with contextlib.suppress(OSError):
        (folder / MARK).unlink(missing_ok=True)
