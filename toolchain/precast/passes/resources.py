"""Where a file that a plugin names lies. In: `path` or `package:path`. Out: an absolute path."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from precast.errors import PluginError


def resolve_resource(text: str, project: Path) -> Path:
    """The file that `text` names: relative to the project's folder, absolute, or `package:path` inside a package.

    `PluginError` when the package is not installed; the file itself need not exist.
    """
    package, colon, path = text.partition(":")
    if not colon:
        return project / text
    spec = importlib.util.find_spec(package) if package.isidentifier() else None
    if spec is None or not spec.submodule_search_locations:
        raise PluginError(f"`{text}`: there is no package `{package}`")
    return Path(next(iter(spec.submodule_search_locations))) / path
