"""What a name in a module stands for, when imports and plain assignments only rename it.

In: a module's syntax and an expression in it. Out: a dotted name such as `triton.language.constexpr`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from precast.spec.children import walk
from precast.spec.syntax import ModuleSyntax

# Finds the module that an import names, `from ..common import x` as ("..common", "x"); None when it is not there.
Resolve = Callable[[ModuleSyntax, str, str], "ModuleSyntax | None"]
STEPS = 8  # of renaming that anyone would write


def spell_out(module: ModuleSyntax, node: ast.expr, resolve: Resolve) -> str:
    """The dotted name that a name or attribute stands for, as far as it can be followed."""
    there, last = _follow(module, node, resolve, STEPS)
    return there.dotted(last)


def may_hide(module: ModuleSyntax, node: ast.expr, word: str, resolve: Resolve) -> bool:
    """Whether a name or attribute that cannot be followed to its end comes from a statement that has the word."""
    there, last = _follow(module, node, resolve, STEPS)
    while isinstance(last, ast.Attribute):
        last = last.value
    return isinstance(last, ast.Name) and any(
        _binds(each, last.id) and word in ast.unparse(each)
        for each in there.statements
        if not isinstance(each, ast.FunctionDef)
    )


def _binds(statement: ast.stmt, name: str) -> bool:
    if isinstance(statement, ast.ClassDef):
        return statement.name == name
    stored = (each.id for each in walk(statement) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store))
    return name in stored


def _follow(module: ModuleSyntax, node: ast.expr, resolve: Resolve, steps: int) -> tuple[ModuleSyntax, ast.expr]:
    """Where a name or attribute ends, and in which module's words that is written."""
    if module.dotted(node).startswith("triton."):
        return module, node
    if isinstance(node, ast.Name) and steps:
        binding = module.binding(node.id)
        if isinstance(binding, ast.ImportFrom):
            original = next(each.name for each in binding.names if (each.asname or each.name) == node.id)
            there = resolve(module, "." * binding.level + (binding.module or ""), original)
            if there is not None:
                return _follow(there, ast.Name(original), resolve, steps - 1)
        elif isinstance(binding, ast.Assign | ast.AnnAssign) and isinstance(binding.value, ast.Name | ast.Attribute):
            return _follow(module, binding.value, resolve, steps - 1)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and steps:
        there = resolve(module, module.dotted(node.value), node.attr)
        if there is not None and there.binding(node.attr) is not None:
            return _follow(there, ast.Name(node.attr), resolve, steps - 1)
    return module, node


def has_text_annotations(module: ModuleSyntax) -> bool:
    """Whether annotations stay text, `from __future__ import annotations`: then Triton does not see through aliases."""
    future = (each for each in module.tree.body if isinstance(each, ast.ImportFrom) and each.module == "__future__")
    return any(alias.name == "annotations" for each in future for alias in each.names)
