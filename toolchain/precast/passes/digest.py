"""Which files decide what a plugin does, and their digest.

In: a plugin module's place. Out: its own file with what it imports inside its own package or folder, found with `ast`
(more than is used, never less), the outside modules that these files name, and one digest over names and bytes.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from precast.bounded import MOST_FILE_BYTES, read_bounded
from precast.errors import PluginError
from precast.passes.resources import resolve_resource
from precast.passes.selection import PassUse


def digest_files(project: Path, files: Iterable[str], outside: str = "") -> str:
    """sha256 hex over the names and bytes of `files` (named as `resources` says). Missing files count as such.

    `outside` stands for what a plugin imports from elsewhere, where there is any.
    """
    return digest_contents(read_contents(project, files), outside)


def digest_contents(contents: Mapping[str, bytes | None], outside: str = "") -> str:
    """`digest_files` of files that have been read."""
    total = hashlib.sha256()
    for name in sorted(contents):
        label = Path(name).name if Path(name).is_absolute() else name  # no absolute path in a digest
        data = contents[name]
        total.update(f"{label}\0{'missing' if data is None else hashlib.sha256(data).hexdigest()}\n".encode())
    total.update(outside.encode())
    return total.hexdigest()


def read_contents(project: Path, files: Iterable[str]) -> dict[str, bytes | None]:
    """The bytes of `files` by name, each read once; None for one that cannot be read."""
    return {name: _read(name, project) for name in files}


def _read(name: str, project: Path) -> bytes | None:
    try:
        return read_bounded(resolve_resource(name, project), MOST_FILE_BYTES)
    except (OSError, PluginError):
        return None


def digest_use(use: PassUse, project: Path) -> str:
    """The digest that `use` has by its files' bytes as they are now."""
    return digest_files(project, use.files, use.outside) if use.files else use.digest


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


def named_modules(files: Iterable[Path]) -> tuple[str, ...]:
    """Every module that an absolute import in `files` names, wherever the import stands, sorted."""
    names: set[str] = set()
    for node in (node for path in files for node in _nodes(path)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module)
    return tuple(sorted(names))


def _nodes(path: Path) -> Iterator[ast.AST]:
    try:
        tree = ast.parse(read_bounded(path))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):  # loading the module will say so
        return
    yield from ast.walk(tree)


def _imports(path: Path, root: Path) -> Iterator[Path]:
    for node in _nodes(path):
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
