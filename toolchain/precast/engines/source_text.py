"""What Python source text says, for a digest: the tokens that count, and the names that it takes from outside.

In: text and its syntax. Out: words; names as chains, in the order in which they are read. This file needs the
standard library alone: it also goes into a release's Python package.
"""

from __future__ import annotations

import ast
import io
import token
import tokenize
from collections.abc import Iterable, Iterator

Chain = tuple[str, ...]  # `a.b.c` as its words

_SILENT = {token.NEWLINE, token.ENDMARKER, tokenize.NL, tokenize.COMMENT, tokenize.ENCODING}


class Names(ast.NodeVisitor):
    """The names that a text takes from outside: those that are read where nothing of its own surely has the name.

    Triton looks a name up among what was assigned so far, then outside; what only one branch assigns counts as both.
    """

    def __init__(self, local: Iterable[str] = ()) -> None:
        self.found: dict[Chain, None] = {}
        self.annotations: dict[Chain, None] = {}
        self.imports: dict[str, None] = {}
        self._local = set(local)

    def read_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, enclosing: Iterable[str] = ()) -> None:
        """Defaults where the function stands; its body with its own names."""
        every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        every += filter(None, (node.args.vararg, node.args.kwarg))
        self._visit_all([*node.args.defaults, *filter(None, node.args.kw_defaults)])
        for each in filter(None, [*(argument.annotation for argument in every), node.returns]):
            self._annotate(each)
        self._inside({*enclosing, *(argument.arg for argument in every)}, node.body)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self._read((node.id,))
        else:
            self._local.add(node.id)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        chain = chain_of(node)
        self._read(chain) if chain else self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        self._visit_all([node.value, *node.targets])

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self._read((node.target.id,))
        self._visit_all([node.value, node.target])

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self._annotate(node.annotation)
        self._visit_all([node.value, node.target] if node.value else [])

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self._visit_all([node.value, node.target])

    def visit_If(self, node: ast.If) -> None:
        self.visit(node.test)
        self._branch(node.body, node.orelse)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self.visit(node.test)
        self._branch([node.body], [node.orelse])

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        self.visit(node.iter)
        self._branch([node.target, *node.body], node.orelse)

    def visit_While(self, node: ast.While) -> None:
        self.visit(node.test)
        self._branch(node.body, node.orelse)

    def visit_Try(self, node: ast.Try) -> None:
        self._branch(node.body, *([each] for each in node.handlers), node.orelse)
        self._visit_all(node.finalbody)

    def visit_Match(self, node: ast.Match) -> None:
        self.visit(node.subject)
        self._branch(*([each] for each in node.cases), [])

    def visit_MatchAs(self, node: ast.MatchAs) -> None:
        self.generic_visit(node)
        self._local |= {node.name} if node.name else set()

    def visit_MatchStar(self, node: ast.MatchStar) -> None:
        self._local |= {node.name} if node.name else set()

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        self.generic_visit(node)
        self._local |= {node.rest} if node.rest else set()

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        self._local |= {node.name} if node.name else set()
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._visit_all(node.decorator_list)
        self.read_function(node, self._local)
        self._local.add(node.name)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        arguments += filter(None, (node.args.vararg, node.args.kwarg))
        self._visit_all([*node.args.defaults, *filter(None, node.args.kw_defaults)])
        self._inside({*self._local, *(each.arg for each in arguments)}, [node.body])

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._visit_all([*node.decorator_list, *node.bases, *node.keywords])
        outside = set(self._local)
        for each in node.body:
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
                self._visit_all(each.decorator_list)
                self.read_function(each, outside)  # a method does not see the names of its class
                self._local.add(each.name)
            else:
                self.visit(each)
        self._local = outside | {node.name}

    def visit_ListComp(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> None:
        self._inside(self._local, [*node.generators, node.elt])

    def visit_DictComp(self, node: ast.DictComp) -> None:
        self._inside(self._local, [*node.generators, node.key, node.value])

    def visit_comprehension(self, node: ast.comprehension) -> None:
        self._visit_all([node.iter, node.target, *node.ifs])

    def visit_Import(self, node: ast.Import) -> None:
        for each in node.names:
            self.imports[each.name] = None
            self._local.add((each.asname or each.name).partition(".")[0])

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        self.imports["." * node.level + (node.module or "")] = None
        self._local |= {each.asname or each.name for each in node.names}

    visit_AsyncFunctionDef, visit_AsyncFor, visit_TryStar = visit_FunctionDef, visit_For, visit_Try
    visit_SetComp = visit_GeneratorExp = visit_ListComp

    def _read(self, chain: Chain) -> None:
        if chain[0] not in self._local:
            self.found[chain] = None

    def _annotate(self, node: ast.expr) -> None:
        inner = Names(self._local)
        inner.visit(node)
        self.annotations.update(inner.found)

    def _visit_all(self, nodes: Iterable[ast.AST]) -> None:
        for node in nodes:
            self.visit(node)

    def _branch(self, *bodies: Iterable[ast.AST]) -> None:
        """Bodies of which any may run: only what all of them assign is assigned after them."""
        before, after = self._local, []
        for body in bodies:
            self._local = set(before)
            self._visit_all(body)
            after.append(self._local)
        self._local = set.intersection(*after)

    def _inside(self, local: set[str], nodes: Iterable[ast.AST]) -> None:
        """Nodes with names of their own, which end with them."""
        before, self._local = self._local, set(local)
        self._visit_all(nodes)
        self._local = before


def chain_of(node: ast.AST) -> Chain:
    """`a.b.c` as its words; empty for anything else."""
    words: list[str] = []
    while isinstance(node, ast.Attribute):
        words.append(node.attr)
        node = node.value
    return (node.id, *reversed(words)) if isinstance(node, ast.Name) else ()


def names_set(definition: ast.ClassDef) -> set[str]:
    """The attributes that a class's own body assigns."""
    assigned = [each for each in definition.body if isinstance(each, ast.Assign | ast.AnnAssign)]
    targets = [
        target for each in assigned for target in (each.targets if isinstance(each, ast.Assign) else [each.target])
    ]
    return {target.id for target in targets if isinstance(target, ast.Name)}


def words_of(text: str, definition: ast.FunctionDef | ast.ClassDef, first: int) -> Iterator[str]:
    """The tokens from line `first` on, without docstrings; an indent is one word whatever its width."""
    docstrings = list(_docstring_spans(definition))
    lines = text.splitlines(keepends=True)
    formatted: tuple[int, int] | None = None
    for each in tokenize.generate_tokens(io.StringIO(text).readline):
        name = token.tok_name[each.type]
        if each.start[0] < first or any(start <= each.start < end for start, end in docstrings):
            continue
        if name == "FSTRING_START":  # Python 3.12 and later take a formatted string apart
            formatted = formatted or each.start
        elif name == "FSTRING_END" and formatted:
            yield _slice(lines, formatted, each.end)
            formatted = None
        elif formatted is None and each.type not in _SILENT:
            yield "indent" if each.type == token.INDENT else "dedent" if each.type == token.DEDENT else each.string


def _docstring_spans(definition: ast.FunctionDef | ast.ClassDef) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    for node in ast.walk(definition):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) or len(node.body) == 1:
            continue
        first = node.body[0]
        if ast.get_docstring(node, clean=False) is not None:
            yield (first.lineno, first.col_offset), (first.end_lineno or first.lineno, first.end_col_offset or 0)


def _slice(lines: list[str], start: tuple[int, int], end: tuple[int, int]) -> str:
    if start[0] == end[0]:
        return lines[start[0] - 1][start[1] : end[1]]
    middle = "".join(lines[start[0] : end[0] - 1])
    return lines[start[0] - 1][start[1] :] + middle + lines[end[0] - 1][: end[1]]
