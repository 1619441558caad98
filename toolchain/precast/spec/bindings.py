"""How often the names of a module are bound, and where lists could change: what makes a name's value certain.

In: a module's tree. Out: counts of the statements that bind each module-level name. What other modules or `exec` do
is not seen here; the worker compares what it imports with what was read.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping

from precast.spec.children import child_nodes, walk

STAR = "*"  # the entry of `from module import *`, which may bind any name
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def count_bindings(tree: ast.Module) -> Mapping[str, int]:
    """How many statements bind each name of the module, in whatever block; `global` in a function is one as well."""
    counts: Counter[str] = Counter()
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop()
        counts.update(_bound_by(node))
        if isinstance(node, (*_SCOPES, ast.Lambda)):
            counts.update(name for each in walk(node) if isinstance(each, ast.Global) for name in each.names)
        else:
            waiting.extend(child_nodes(node))
    return counts


def _bound_by(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id
    elif isinstance(node, _SCOPES):
        yield node.name
    elif isinstance(node, ast.Import):
        yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield from (alias.asname or alias.name for alias in node.names)
    elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
        yield node.name
    elif isinstance(node, ast.MatchMapping) and node.rest:
        yield node.rest


def count_loads(tree: ast.AST, name: str) -> int:
    """How often anything in a tree reads a name."""
    names = (each for each in walk(tree) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load))
    return sum(each.id == name for each in names)
