"""Which files a kernel's module can be made of: its imports, followed with `ast`. More than is used, never less.

In: a module's file and the search folders. Out: every file of the project and of `pythonpath` that its imports reach,
wherever in a file they stand. Of installed packages only what can hold kernel code: modules that import Triton
themselves, and those that re-export a name which is asked of them. Triton itself is a tool and has its own identity.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from precast.digest import FileDigests
from precast.reads import Read, relative_path
from precast.spec.asking import Edge, reach
from precast.spec.children import walk, walk_statements
from precast.spec.modules import ModuleFile, ModuleFinder
from precast.spec.sources import absolute_name

INSTALLED = "<installed>/"
TOOLS = frozenset({"triton", "mlir", "llvmlite", "numpy"})


@dataclass(frozen=True)
class SourceFile:
    """One file of a closure; `name` is project-relative, or `<installed>/package/module.py`."""

    name: str
    path: Path
    digest: str

    @property
    def installed(self) -> bool:
        return self.name.startswith(INSTALLED)


@dataclass(frozen=True)
class ImportRecord:
    """One import statement: `from dotted import names`, or `import dotted` with no names.

    `top` says that it stands at module level, where re-exports do.
    """

    dotted: str
    names: tuple[str, ...]
    top: bool


@dataclass(frozen=True)
class Imports:
    """What a file imports, and the attribute names in it: what it may ask of a module that it imports whole."""

    records: tuple[ImportRecord, ...]
    attributes: frozenset[str]

    @property
    def has_triton(self) -> bool:
        return any(each.top and each.dotted.partition(".")[0] == "triton" for each in self.records)


def read_imports(source: bytes) -> dict[str, Any]:
    """The imports of a file, JSON-able; of one that is not Python, none (loading it will say so)."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {"records": [], "attributes": []}
    records = [[*found, top] for node, top in walk_statements(tree) for found in _imports_of(node)]
    attributes = sorted({node.attr for node in walk(tree) if isinstance(node, ast.Attribute)})
    return {"records": records, "attributes": attributes}


def _imports_of(node: ast.AST) -> Iterator[tuple[str, list[str]]]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield alias.name, []
    elif isinstance(node, ast.ImportFrom):
        yield "." * node.level + (node.module or ""), [alias.name for alias in node.names]


class Closure:
    """Follows imports; keeps what it read, so that the kernels of one project share the work."""

    def __init__(
        self, folder: Path, python_path: tuple[Path, ...], installed: tuple[Path, ...], digests: FileDigests
    ) -> None:
        self._folder = folder
        self._python_path = python_path
        self._installed = installed
        self._digests = digests
        self._finder = ModuleFinder()
        self._imports: dict[Path, Imports] = {}
        self._found: dict[tuple[str, Path, Path], ModuleFile | None] = {}
        self._files: dict[Path, SourceFile] = {}
        self._bits: dict[str, int] = {}
        self._numbers: dict[tuple[ModuleFile, Path], int] = {}
        self._modules: list[tuple[ModuleFile, Path]] = []
        self._edges: dict[int, tuple[Edge, ...]] = {}

    @property
    def reads(self) -> Iterator[Read]:
        """Where it looked for modules, found or not."""
        return self._finder.reads

    def files(self, start: ModuleFile) -> tuple[SourceFile, ...]:
        """The files that `start`'s imports reach, itself included, sorted by name."""
        starts = [self._number(each, start.root) for each in self._with_packages(start, start.root)]
        reached = (self._modules[number][0] for number in reach(starts, self._edges_of))
        kept = {module.file: module for module in reached if self._counts(module)}
        return tuple(sorted(map(self._source_file, kept.values()), key=lambda each: each.name))

    def _is_installed(self, module: ModuleFile) -> bool:
        return module.root in self._installed and module.root not in self._python_path

    def _counts(self, module: ModuleFile) -> bool:
        return not self._is_installed(module) or self._read(module).has_triton

    def _source_file(self, module: ModuleFile) -> SourceFile:
        if module.file not in self._files:
            if self._is_installed(module):
                name = f"{INSTALLED}{module.file.relative_to(module.root).as_posix()}"
            else:
                name = relative_path(module.file, self._folder)
            self._files[module.file] = SourceFile(name, module.file, self._digests.digest(module.file))
        return self._files[module.file]

    def _read(self, module: ModuleFile) -> Imports:
        if module.file not in self._imports:
            data = self._digests.record("imports", module.file, read_imports)
            records = tuple(ImportRecord(dotted, tuple(names), top) for dotted, names, top in data["records"])
            self._imports[module.file] = Imports(records, frozenset(data["attributes"]))
        return self._imports[module.file]

    def _number(self, module: ModuleFile, root: Path) -> int:
        """A module, in searches from a kernel below `root`, as the number of a node."""
        node = (module, root)
        if node not in self._numbers:
            self._numbers[node] = len(self._modules)
            self._modules.append(node)
        return self._numbers[node]

    def _set_of(self, names: Iterable[str]) -> int:
        """A set of names as a number, a bit for each."""
        total = 0
        for name in names:
            total |= 1 << self._bits.setdefault(name, len(self._bits))
        return total

    def _edges_of(self, number: int) -> tuple[Edge, ...]:
        """The imports of a module, each with the names that it asks of what it imports."""
        if number not in self._edges:
            module, root = self._modules[number]
            self._edges[number] = tuple(self._find_edges(module, root))
        return self._edges[number]

    def _find_edges(self, module: ModuleFile, root: Path) -> Iterator[Edge]:
        imports = self._read(module)
        whole, installed = self._counts(module), self._is_installed(module)
        attributes = self._set_of(imports.attributes)
        for record in imports.records:
            dotted = absolute_name(record.dotted, module.package)
            if dotted.partition(".")[0] in TOOLS or (installed and not record.top):
                continue
            if not whole and not record.names:
                continue
            names = self._set_of(record.names)
            # An installed module that only re-exports: followed for the names that are asked of it.
            needed = 0 if whole or "*" in record.names else names
            targets = dict.fromkeys(self._imported(dotted, record.names, module, root))
            if targets:
                yield Edge(needed, names or attributes, tuple(self._number(each, root) for each in targets))

    def _imported(self, dotted: str, names: Iterable[str], importer: ModuleFile, root: Path) -> Iterator[ModuleFile]:
        """The modules that one import statement runs: the one it names, names that are modules, their packages."""
        for name in (dotted, *(f"{dotted}.{each}" for each in names if each != "*")):
            module = self._find(name, importer.root, root)
            if module:
                yield from self._with_packages(module, importer.root)

    def _with_packages(self, module: ModuleFile, root: Path) -> Iterator[ModuleFile]:
        """The module and the packages around it, whose `__init__` an import of it runs."""
        yield module
        parts = module.name.split(".")
        for count in range(1, len(parts)):
            package = self._find(".".join(parts[:count]), module.root, root)
            if package:
                yield package

    def _find(self, name: str, first: Path, second: Path) -> ModuleFile | None:
        key = (name, first, second)
        if key not in self._found:
            folders = tuple(dict.fromkeys((first, second, *self._python_path, *self._installed)))
            self._found[key] = self._finder.find(name, folders)
        return self._found[key]
