"""Files that plugins are made of, named so that the name is the same on every machine.

In: a text, `path` (relative to the project, or absolute) or `package:path` (inside an installed package; with an
empty path, a module's own file). Out: an absolute path; and back.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from precast.errors import PluginError


def resolve_resource(text: str, project: Path) -> Path:
    """The file that `text` names; it need not exist. `PluginError` when the package is not installed."""
    package, colon, path = text.partition(":")
    if not colon:
        return project / text
    spec = importlib.util.find_spec(package) if package.isidentifier() else None
    if spec is None or not spec.origin:
        raise PluginError(f"`{text}`: there is no package `{package}`")
    return Path(spec.origin).parent / path if path else Path(spec.origin)


def name_resource(path: Path, project: Path) -> str:
    """The text that names `path`: relative to the project where it lies in it, else by package, else absolute."""
    if path.is_relative_to(project):
        return path.relative_to(project).as_posix()
    folders = [folder for folder in sys.path if folder and path.is_relative_to(folder)]
    inside = path.relative_to(max(folders, key=len)) if folders else path
    package, rest = inside.parts[0].removesuffix(".py"), "/".join(inside.parts[1:])
    return f"{package}:{rest}" if package.isidentifier() and (rest or inside.suffix == ".py") else str(path)
