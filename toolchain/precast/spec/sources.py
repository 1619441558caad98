"""Finds a kernel's source and reads its signature, without importing it.

In: `softmax.py:softmax_kernel` or `package.module:function`. Out: a `Source` and a `Signature`. Keeps the syntax of
the modules that it has read, for one plan, and all that it asked of the file system.
"""

from __future__ import annotations

import ast
import hashlib
import keyword
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from precast.bounded import read_bounded
from precast.errors import SpecError
from precast.reads import Read, ReadKind, digest_place, relative_path
from precast.spec.model import Source
from precast.spec.modules import ModuleFile, ModuleFinder, module_of_file, reads_around
from precast.spec.signature import Signature, UnreadSignature, read_signature
from precast.spec.syntax import ModuleSyntax, parse_source
from precast.spec.toml import Node

FORMS = "write it as `file.py:function` or `package.module:function`"


class SourceReader:
    """`folder` is the project's, `python_path` the folders of `pythonpath`, `installed` the interpreter's own."""

    def __init__(self, folder: Path, python_path: tuple[Path, ...], installed: tuple[Path, ...] = ()) -> None:
        self.folder = folder
        self.python_path = python_path
        self.installed = installed
        self._syntax: dict[Path, ModuleSyntax] = {}
        self._modules: dict[str, ModuleFile] = {}
        self._by_path: dict[Path, ModuleFile] = {}
        self._finder = ModuleFinder()
        self._asked: dict[str, Read] = {}
        self.visited: set[Path] = set()

    @contextmanager
    def noting(self) -> Iterator[set[Path]]:
        """The files whose syntax the block asks for, whether they were read before or not."""
        before, self.visited = self.visited, set()
        try:
            yield self.visited
        finally:
            self.visited = before

    @property
    def reads(self) -> Iterator[Read]:
        """What was asked of the file system, found or not."""
        yield from self._asked.values()
        yield from self._finder.reads

    def _note(self, read: Read) -> Read:
        return self._asked.setdefault(read.place, read)

    def read(self, node: Node, beside: Path) -> tuple[Source, Signature | None]:
        """The source that a spec's `source` key names; `beside` is the spec's folder. `SpecError` with the place.

        There is no signature when only an import can tell it.
        """
        place, colon, function = node.text().partition(":")
        if not colon or not place or not is_function_text(function):
            raise node.error(f"`{node.text()}` does not name a kernel's source", FORMS)
        by_file = place.endswith(".py")
        module = self._by_file(node, Path(os.path.normpath(beside / place))) if by_file else self._by_name(node, place)
        signature: Signature | None = None
        try:
            signature = read_signature(self.syntax(module), function, self._resolve)
        except UnreadSignature:
            pass
        except SpecError as error:
            raise error if error.where else node.error(error.message, error.hint) from None
        installed = module.root in self.installed and module.root not in self.python_path
        file = str(module.file) if installed else relative_path(module.file, self.folder)
        return Source(file, "" if by_file else place, function, signature is not None and signature.gluon), signature

    def locate(self, source: Source) -> ModuleFile:
        """The module of a source that `read` returned."""
        if not source.module:
            return self.module_of(self.folder / source.file)
        module = self.find(source.module)
        if module is None:
            raise SpecError(f"module `{source.module}` is not found")
        return module

    def syntax(self, module: ModuleFile) -> ModuleSyntax:
        """The module's syntax; `SpecError` at its own line when it is not Python."""
        self.visited.add(module.file)
        if module.file not in self._syntax:
            name = self.show(module.file)
            try:
                data = read_bounded(module.file)
            except OSError as error:
                raise SpecError(f"cannot read `{name}`: {(error.strerror or str(error)).lower()}") from None
            self._note(Read(ReadKind.SOURCE, str(module.file), hashlib.sha256(data).hexdigest()))
            self._syntax[module.file] = parse_source(data, name)
            self._modules[name] = module
        return self._syntax[module.file]

    def show(self, file: Path) -> str:
        """A file as errors name it: through the project's folder as the user gave it."""
        relative = relative_path(file, self.folder)
        return str(file) if relative.startswith("..") else str(self.folder / relative)

    def is_file(self, file: Path) -> bool:
        return self._note(Read(ReadKind.PLACE, str(file), digest_place(file))).digest == "file"

    def module_of(self, file: Path) -> ModuleFile:
        """The module that a file named by path is."""
        if file not in self._by_path:
            for read in reads_around(file):
                self._note(read)
            self._by_path[file] = module_of_file(file)
        return self._by_path[file]

    def find(self, name: str, *first: Path) -> ModuleFile | None:
        """The module of a dotted name, looked for in `first`, in `pythonpath` and among installed packages."""
        return self._finder.find(name, (*first, *self.python_path, *self.installed))

    def _by_file(self, node: Node, file: Path) -> ModuleFile:
        if not self.is_file(file):
            raise node.error(f"there is no file `{self.show(file)}`", "the path is relative to the spec's folder")
        return self.module_of(file)

    def _by_name(self, node: Node, name: str) -> ModuleFile:
        module = self.find(name)
        if module is None:
            shown = ", ".join(f"`{os.path.relpath(folder, self.folder)}`" for folder in self.python_path)
            raise node.error(f"module `{name}` is not found", f"`pythonpath` of [tool.precast] is {shown}")
        return module

    def _resolve(self, importer: ModuleSyntax, dotted: str, name: str) -> ModuleSyntax | None:
        """The module that `from dotted import name` takes `name` from."""
        here = self._modules[importer.file]
        absolute = absolute_name(dotted, here.package)
        module = self.find(absolute, here.root)
        return self.syntax(module) if module else None


def is_function_text(text: str) -> bool:
    """Whether a text names a function: a name, one in a class (`Kernels.add`), or a factory's call (`make(64)`)."""
    if text.isidentifier():  # as nearly all are
        return not keyword.iskeyword(text)
    try:
        node: ast.expr = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        return False
    node = node.func if isinstance(node, ast.Call) else node
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and text == text.strip()


def absolute_name(dotted: str, package: str) -> str:
    """`..common` in package `stack.ops` → `stack.common`; an absolute name as it is."""
    level = len(dotted) - len(dotted.lstrip("."))
    if not level:
        return dotted
    parts = package.split(".")
    base = parts[: max(0, len(parts) - (level - 1))]
    return ".".join([*base, *filter(None, [dotted[level:]])])
