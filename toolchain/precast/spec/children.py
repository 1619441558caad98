"""The nodes of a syntax tree, as `ast.walk` gives them and in a fraction of its time: a plan walks every source."""

from __future__ import annotations

import ast
from collections.abc import Iterator

_BLOCKS = ("body", "handlers", "orelse", "finalbody", "cases")


def child_nodes(node: ast.AST) -> list[ast.AST]:
    """The nodes right below a node, in the order of its fields; contexts and operators, which hold nothing, are not."""
    found: list[ast.AST] = []
    for name in node._fields:
        value = getattr(node, name, None)
        if value.__class__ is list:
            found += [each for each in value if isinstance(each, ast.AST)]
        elif isinstance(value, ast.AST) and value._fields:
            found.append(value)
    return found


def walk(tree: ast.AST) -> Iterator[ast.AST]:
    """A node and every node below it, those of a level before the next."""
    waiting = [tree]
    for node in waiting:
        waiting += child_nodes(node)
        yield node


def walk_statements(tree: ast.AST) -> Iterator[tuple[ast.AST, bool]]:
    """As `walk`, without expressions, and whether each node stands outside of functions."""
    waiting = [(tree, True)]
    for node, top in waiting:
        yield node, top
        below = top and not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        for name in _BLOCKS:
            block = getattr(node, name, None)
            if block:
                waiting += [(each, below) for each in block]
