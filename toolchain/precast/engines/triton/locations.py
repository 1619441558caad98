"""Source locations in IR text, made independent of where things are on this machine.

In: text with absolute paths. Out: text with paths relative to the project, to its module folders or to the folder of
installed packages, all below `precast:`, which is no folder anywhere, so that no later tool finds and stamps a file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

ROOT = "precast:"
_LOCATION = re.compile(r'"(/[^"\n]*)":(?=\d+:\d+)')


def remap_locations(text: str, project: Path, python_path: Sequence[Path]) -> str:
    """`text` with the path of each location remapped."""
    names: dict[str, str] = {}

    def replace(match: re.Match[str]) -> str:
        path = match[1]
        if path not in names:
            names[path] = portable_name(Path(path), project, python_path)
        return f'"{ROOT}/{names[path]}":'

    return _LOCATION.sub(replace, text)


def portable_name(path: Path, project: Path, python_path: Sequence[Path]) -> str:
    """A file's name that is the same wherever project and interpreter are."""
    for folder in (project, *sorted(python_path, key=lambda each: -len(each.parts))):
        if path.is_relative_to(folder) and "site-packages" not in path.relative_to(folder).parts:
            return path.relative_to(folder).as_posix()
    parts = path.parts
    for marker in ("site-packages", "dist-packages"):
        if marker in parts:
            return "/".join(parts[parts.index(marker) + 1 :])
    return path.name
