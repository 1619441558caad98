"""Files as other programs name them. In: a file as a message names it. Out: its path in the repository.

A forge shows an annotation or a finding where the path is relative to the checkout, wherever the build was started.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from precast.errors import Place
from precast.layout import SETTINGS

# What forges call the folder that they have checked out.
CHECKOUTS = ("GITHUB_WORKSPACE", "CI_PROJECT_DIR")


@dataclass(frozen=True)
class Places:
    """`origin` is where the command was started, `project` the project's folder, `checkout` the repository's."""

    origin: Path
    project: Path
    checkout: Path

    def path_of(self, file: str) -> str:
        """The path of a file in the checkout, with `/`; absolute for one that lies elsewhere."""
        candidates = (self.origin / file, self.project / file)
        path = Path(os.path.normpath(next((each for each in candidates if each.exists()), candidates[0])))
        return path.relative_to(self.checkout).as_posix() if path.is_relative_to(self.checkout) else path.as_posix()

    def place_of(self, where: Place | None) -> Place:
        """The place, or for none the project's settings, for a finding must stand somewhere."""
        where = where or Place(str(self.project / SETTINGS), 1)
        return Place(self.path_of(where.file), max(where.line, 1), max(where.column, 1), where.length)


def split_place(message: str) -> tuple[Place | None, str]:
    """The place that a warning begins with, and the rest of it."""
    found = re.match(r"([^\n:]+):(\d+):(\d+): ", message)
    if found is None:
        return None, message
    return Place(found[1], int(found[2]), int(found[3])), message[found.end() :]


def find_places(project: Path, environ: Mapping[str, str]) -> Places:
    """The places for a command that runs here, now."""
    origin = Path.cwd()
    named = next((environ[name] for name in CHECKOUTS if environ.get(name)), "")
    checkout = Path(os.path.normpath(origin / named))
    folder = Path(os.path.normpath(origin / project))
    return Places(origin, folder, checkout if folder.is_relative_to(checkout) else origin)
