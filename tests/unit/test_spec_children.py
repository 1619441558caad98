"""Walks over syntax trees meet what `ast.walk` meets."""

import ast
from pathlib import Path

import pytest

from precast.spec.children import walk, walk_statements

ROOT = Path(__file__).parents[2]
FORMS = """
import a
x = {**a, 1: lambda: [each for each in a if -each]}
def f(b=1, *c):
    global x
    import in_function
    class C:
        import in_class
    for _ in a:
        import in_loop
    else:
        import in_else
async def g():
    async with a as b:
        import in_with
try:
    import in_try
except (A, B) as error:
    import in_handler
else:
    import in_orelse
finally:
    import in_final
match a:
    case {"x": 1, **rest}:
        import in_case
class D:
    import in_top_class
    def method(self):
        import in_method
while a:
    if a:
        import in_if
    elif b:
        import in_elif
"""
SOURCES = [FORMS, *(path.read_text() for path in sorted((ROOT / "kernels").glob("*.py"))[:5])]


@pytest.mark.parametrize("source", SOURCES)
def test_every_node_that_holds_something_is_met_in_the_same_order(source):
    tree = ast.parse(source)
    assert [each for each in walk(tree) if each._fields] == [each for each in ast.walk(tree) if each._fields]


@pytest.mark.parametrize("source", SOURCES)
def test_every_statement_is_met(source):
    tree = ast.parse(source)
    every = {each for each in ast.walk(tree) if isinstance(each, ast.stmt | ast.ExceptHandler | ast.match_case)}
    assert {each for each, _ in walk_statements(tree)} == every | {tree}


def test_which_statements_stand_outside_of_functions():
    imports = [(node, top) for node, top in walk_statements(ast.parse(FORMS)) if isinstance(node, ast.Import)]
    outside = {"a", "in_try", "in_handler", "in_orelse", "in_final", "in_case", "in_top_class", "in_if", "in_elif"}
    assert {node.names[0].name for node, top in imports if top} == outside
    assert len(imports) == FORMS.count("import ")
