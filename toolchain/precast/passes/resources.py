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


def find_resources(pattern: str, project: Path) -> tuple[str, ...]:
    """The files that a pattern of `reads` names: a path or a glob, of the project or (`package:…`) of a package.

    Sorted. `PluginError` when there is none.
    """
    package, colon, inside = pattern.rpartition(":")
    root = resolve_resource(f"{package}:.", project) if colon else project
    try:
        found = [each for each in root.glob(inside) if each.is_file()] if inside else []
    except (ValueError, NotImplementedError, IndexError):  # an absolute path, or no glob
        found = [Path(inside)] if Path(inside).is_file() else []
    if not found:
        raise PluginError(f"there is no file `{pattern}`")
    return tuple(
        sorted(
            f"{package}:{each.relative_to(root).as_posix()}" if colon else name_resource(each, project)
            for each in found
        )
    )


def glob_folders(pattern: str, project: Path) -> tuple[Path, ...]:
    """The folders whose names decide what a glob of `reads` finds; none for a plain path."""
    package, colon, inside = pattern.rpartition(":")
    parts = Path(inside).parts
    fixed = next((index for index, part in enumerate(parts) if any(each in part for each in "*?[")), None)
    if fixed is None:
        return ()
    root = resolve_resource(f"{package}:.", project) if colon else project
    base, depth = root.joinpath(*parts[:fixed]), "**" if "**" in parts else "/".join(parts[fixed:-1])
    below = [each for each in base.glob(depth) if each.is_dir()] if depth else []
    return tuple(sorted({base, *below}))


def name_resource(path: Path, project: Path) -> str:
    """The text that names `path`: relative to the project where it lies in it, else by package, else absolute."""
    if path.is_relative_to(project):
        return path.relative_to(project).as_posix()
    folders = [folder for folder in sys.path if folder and path.is_relative_to(folder)]
    inside = path.relative_to(max(folders, key=len)) if folders else path
    package, rest = inside.parts[0].removesuffix(".py"), "/".join(inside.parts[1:])
    return f"{package}:{rest}" if package.isidentifier() and (rest or inside.suffix == ".py") else str(path)
