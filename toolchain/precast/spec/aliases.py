"""What a name in a module stands for, when imports and plain assignments only rename it.

In: a module's syntax and an expression in it. Out: a dotted name such as `triton.language.constexpr`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from precast.spec.syntax import ModuleSyntax

# Finds the module that an import names, `from ..common import x` as ("..common", "x"); None when it is not there.
Resolve = Callable[[ModuleSyntax, str, str], "ModuleSyntax | None"]
STEPS = 8  # of renaming that anyone would write


def spell_out(module: ModuleSyntax, node: ast.expr, resolve: Resolve, steps: int = STEPS) -> str:
    """The dotted name that a name or attribute stands for, as far as it can be followed."""
    dotted = module.dotted(node)
    if dotted.startswith("triton."):
        return dotted
    if isinstance(node, ast.Name) and steps:
        binding = module.binding(node.id)
        if isinstance(binding, ast.ImportFrom):
            original = next(each.name for each in binding.names if (each.asname or each.name) == node.id)
            there = resolve(module, "." * binding.level + (binding.module or ""), original)
            if there is not None:
                return spell_out(there, ast.Name(original), resolve, steps - 1)
        elif isinstance(binding, ast.Assign) and isinstance(binding.value, ast.Name | ast.Attribute):
            return spell_out(module, binding.value, resolve, steps - 1)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and steps:
        there = resolve(module, module.dotted(node.value), node.attr)
        if there is not None and there.binding(node.attr) is not None:
            return spell_out(there, ast.Name(node.attr), resolve, steps - 1)
    return dotted


def has_text_annotations(module: ModuleSyntax) -> bool:
    """Whether annotations stay text, `from __future__ import annotations`: then Triton does not see through aliases."""
    future = (each for each in module.tree.body if isinstance(each, ast.ImportFrom) and each.module == "__future__")
    return any(alias.name == "annotations" for each in future for alias in each.names)
