"""A module's source as a syntax tree, with the few questions that signatures and imports ask of it.

In: Python source. Out: `ModuleSyntax`: what a module-level name is bound to, a name's dotted origin, literal values.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib.util import decode_source

from precast.errors import Place, SpecError
from precast.spec.bindings import STAR, count_bindings, count_loads
from precast.spec.children import walk, walk_statements
from precast.spec.model import Constant, spell
from precast.spec.toml import not_utf8
from precast.spec.types import TRITON_NAMES

Binding = ast.FunctionDef | ast.Assign | ast.AnnAssign | ast.ImportFrom


def parse_source(data: bytes, file: str) -> ModuleSyntax:
    """The module's syntax; `SpecError` at the user's line when it is not Python, in whatever encoding it declares."""
    try:
        return ModuleSyntax(ast.parse(_decode(data, file)), file)
    except SyntaxError as error:
        place = Place(file, error.lineno or 1, error.offset or 1)
        raise SpecError(f"not valid Python: {error.msg}", place) from None
    except ValueError as error:  # a null byte
        raise SpecError(f"not valid Python: {error}", Place(file, 1)) from None
    except (RecursionError, MemoryError):
        raise SpecError("its expressions are nested more deeply than Python can read", Place(file, 1)) from None


def _decode(data: bytes, file: str) -> str:
    try:
        return decode_source(data)
    except LookupError as error:  # `# coding: hex` names an encoding, but none of text
        raise SpecError(f"not valid Python: {error}".partition(";")[0], Place(file, 1)) from None
    except (SyntaxError, UnicodeDecodeError) as error:  # SyntaxError: the first lines tell no encoding
        try:
            data.decode("utf-8")
        except UnicodeDecodeError as wrong:
            hint = "save it as UTF-8, or name its encoding in the first line: `# coding: latin-1`"
            raise not_utf8(data, wrong.start, file, hint) from None
        raise SpecError(f"not valid Python: {error}", Place(file, 1)) from None


class ModuleSyntax:
    """One module's tree; `file` is the file as errors show it."""

    def __init__(self, tree: ast.Module, file: str) -> None:
        self.tree = tree
        self.file = file
        self.statements = tuple(_flat_statements(tree.body))
        self._imports = dict(_imported_names(tree))

    @cached_property
    def _bindings(self) -> Mapping[str, int]:
        return count_bindings(self.tree)

    def error(self, message: str, node: ast.AST, hint: str | None = None) -> SpecError:
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        return SpecError(message, Place(self.file, line, column + 1), hint)

    def functions(self) -> list[ast.FunctionDef]:
        """The functions at module level."""
        return [each for each in self.statements if isinstance(each, ast.FunctionDef)]

    def binding(self, name: str) -> Binding | None:
        """The last statement at module level that gives `name` its value."""
        statements = [each for each in self.statements if isinstance(each, Binding) and name in _bound_names(each)]
        return statements[-1] if statements else None

    def is_read_by(self, name: str, calls: str) -> bool:
        """Whether nothing of the module reads a name but calls of `calls` as one of their own arguments."""
        uses = (node for node in walk(self.tree) if isinstance(node, ast.Call))
        ours = (use for use in uses if self.dotted(use.func).rpartition(".")[2] == calls)
        given = [each for use in ours for each in (*use.args, *(keyword.value for keyword in use.keywords))]
        return sum(isinstance(each, ast.Name) and each.id == name for each in given) == count_loads(self.tree, name)

    def dotted(self, node: ast.expr) -> str:
        """A decorator's name with imports spelled out: `tl.constexpr` → `triton.language.constexpr`."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.insert(0, node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ".".join(parts)
        return ".".join([self._imports.get(node.id, node.id), *parts])

    def literal(self, node: ast.expr) -> tuple[bool, Constant]:
        """(True, value) for a literal, a Triton data type, or a name that the module binds once, to one of these."""
        try:
            return self._literal(node, frozenset())
        except RecursionError:
            return False, None

    @property
    def names(self) -> list[str]:
        """Every name that the module binds."""
        return [name for name in self._bindings if name != STAR]

    def is_bound(self, name: str) -> bool:
        """Whether the module may bind a name."""
        return name in self._bindings or STAR in self._bindings

    def is_bound_once(self, name: str) -> bool:
        """Whether exactly one statement of the module binds a name, so that its value is what is written there."""
        return self._bindings.get(name) == 1 and STAR not in self._bindings

    def _literal(self, node: ast.expr, seen: frozenset[str]) -> tuple[bool, Constant]:
        dotted = self.dotted(node) if isinstance(node, (ast.Attribute, ast.Name)) else ""
        word = dotted.removeprefix("triton.language.")
        if word != dotted and word in TRITON_NAMES.values():
            certain = isinstance(node, ast.Attribute) or self.is_bound_once(ast.unparse(node))
            return (True, f"tl.{word}") if certain else (False, None)
        if isinstance(node, ast.Name):
            binding = self.binding(node.id)
            if isinstance(binding, ast.Assign | ast.AnnAssign) and binding.value and node.id not in seen:
                certain = self.is_bound_once(node.id)
                return self._literal(binding.value, seen | {node.id}) if certain else (False, None)
            return False, None
        if isinstance(node, ast.Call) and dotted == "" and self.dotted(node.func).endswith("constexpr") and node.args:
            return self._literal(node.args[0], seen)
        try:
            value = ast.literal_eval(node)
            # A text such as "tl.float16" is how a spec writes a data type; a list is no constexpr.
            plain = not isinstance(value, list) and not str(value).startswith("tl.")
            return (True, spell(value)) if plain else (False, None)
        except (ValueError, TypeError, MemoryError):
            return False, None


def _bound_names(statement: Binding) -> list[str]:
    if isinstance(statement, ast.FunctionDef):
        return [statement.name]
    if isinstance(statement, ast.ImportFrom):
        return [each.asname or each.name for each in statement.names]
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _flat_statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Module-level statements, those under `if`, `try` and `with` included."""
    for statement in body:
        yield statement
        for field in ("body", "orelse", "finalbody"):
            if isinstance(statement, (ast.If, ast.Try, ast.With)):
                yield from _flat_statements(getattr(statement, field, []))
        for handler in getattr(statement, "handlers", []):
            yield from _flat_statements(handler.body)


def _imported_names(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Local name → dotted name, for absolute imports."""
    for node, _ in walk_statements(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield (alias.asname, alias.name) if alias.asname else (alias.name.partition(".")[0],) * 2
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"
