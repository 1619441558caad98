"""Which files decide what a plugin does, and their digest.

In: a plugin module's place. Out: its own file with what it imports inside its own package or folder, found with `ast`
(more than is used, never less), and one digest over names and bytes.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
from collections.abc import Iterable, Iterator
from pathlib import Path

from precast.errors import PluginError
from precast.passes.resources import resolve_resource


def digest_files(project: Path, files: Iterable[str]) -> str:
    """sha256 hex over the names and bytes of `files` (named as `resources` says). Missing files count as such."""
    total = hashlib.sha256()
    for name in sorted(files):
        label = Path(name).name if Path(name).is_absolute() else name  # no absolute path in a digest
        total.update(f"{label}\0{_digest_file(name, project)}\n".encode())
    return total.hexdigest()


def _digest_file(name: str, project: Path) -> str:
    try:
        return hashlib.sha256(resolve_resource(name, project).read_bytes()).hexdigest()
    except (OSError, PluginError):
        return "missing"


def find_module_file(name: str) -> Path | None:
    """The file of an installed module, found without importing it (parent packages are)."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
    return Path(spec.origin) if spec and spec.origin and spec.has_location else None


def reach_files(start: Path, root: Path) -> tuple[Path, ...]:
    """`start` and every file below `root` that its imports reach, sorted.

    `root` is the folder that holds the plugin's siblings, or its top-level package; `start` may name siblings by
    plain names, relative imports, or through the package's own name.
    """
    seen: set[Path] = set()
    waiting = [start]
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        waiting += [found for found in _imports(path, root) if found not in seen]
    return tuple(sorted(seen))


def _imports(path: Path, root: Path) -> Iterator[Path]:
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):  # loading the module will say so
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _resolve(root, alias.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            base, parts = root, (node.module or "").split(".") if node.module else []
            if node.level:
                base = path.parents[node.level - 1]
            for alias in node.names:
                yield from _resolve(base, [*parts, alias.name])


def _resolve(base: Path, parts: list[str]) -> Iterator[Path]:
    """Files that importing `parts` from `base` executes; a leading name equal to the package's own is itself."""
    if parts and parts[0] == base.name and (base / "__init__.py").is_file():
        base = base.parent
    place = base
    for part in parts:
        place = place / part
        for candidate in (place.with_name(f"{place.name}.py"), place / "__init__.py"):
            if candidate.is_file():
                yield candidate
    if base != place and (base / "__init__.py").is_file():
        yield base / "__init__.py"
