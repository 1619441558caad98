"""Where a plugin stands in its module, found with `ast`, so that a message about it can point there.

In: a loaded module and a definition in it. Out: line and column, counted from 1; (0, 0) where it is not found.
"""

from __future__ import annotations

import ast
from types import ModuleType
from typing import Any

from precast.bounded import read_bounded

Spot = tuple[int, int]
NOT_FOUND: Spot = (0, 0)


def find_definition(module: ModuleType, definition: Any) -> Spot:
    """The class or assignment that makes `definition`."""
    statement = _find_statement(module, definition)
    return _spot(statement) if statement else NOT_FOUND


def find_anchor(module: ModuleType, definition: Any) -> Spot:
    """What `definition` says of `at`: in its class's body or its call's arguments; else the definition."""
    statement = _find_statement(module, definition)
    if statement is None:
        return NOT_FOUND
    for node in ast.walk(statement):
        if isinstance(node, ast.keyword) and node.arg == "at":
            return _spot(node.value)
        if isinstance(node, ast.Assign) and "at" in _bound_names(node):
            return _spot(node)
    return _spot(statement)


def _find_statement(module: ModuleType, definition: Any) -> ast.stmt | None:
    names = {name for name, value in vars(module).items() if value is definition}
    try:
        tree = ast.parse(read_bounded(module.__file__ or ""))
    except (OSError, SyntaxError):
        return None
    return next((each for each in reversed(tree.body) if names & _bound_names(each)), None)


def _bound_names(statement: ast.stmt) -> set[str]:
    if isinstance(statement, ast.ClassDef):
        return {statement.name}
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return {node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)}


def _spot(node: ast.stmt | ast.expr) -> Spot:
    return node.lineno, node.col_offset + 1
