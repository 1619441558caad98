"""Whether an import that is happening now stands where its failure is expected. In: the call stack. Out: yes or no.

`try: import x` with a handler for `ImportError`, `suppress(ImportError)` and `importlib.util.find_spec` must see that
a module is missing; any other import of a missing module gets a stand-in.
"""

from __future__ import annotations

import ast
import types
from functools import lru_cache

from precast.bounded import read_bounded

EXPECTED = {"ImportError", "ModuleNotFoundError", "PackageNotFoundError", "Exception", "BaseException"}
FINDERS = ("/importlib/util.py", "<frozen importlib.util>")  # find_spec asks; nothing is imported
MACHINERY = ("<frozen importlib", "/importlib/__init__.py")


def is_expected_failure(frame: types.FrameType | None, outermost: str) -> bool:
    """Whether some caller, up to the file `outermost`, would handle an `ImportError` raised at `frame`."""
    while frame is not None and frame.f_code.co_filename != outermost:
        file = frame.f_code.co_filename
        if file.endswith(FINDERS):
            return True
        if not any(part in file for part in MACHINERY):
            lines = guarded_lines(file)
            if any(first <= frame.f_lineno <= last for first, last in lines):
                return True
        frame = frame.f_back
    return False


def guarded_lines(file: str) -> tuple[tuple[int, int], ...]:
    """Ranges of lines in a file whose import errors are handled there. Unreadable files have none."""
    try:
        return _guarded_lines_of(read_bounded(file))
    except (OSError, SyntaxError, ValueError):
        return ()


@lru_cache(maxsize=1024)
def _guarded_lines_of(source: bytes) -> tuple[tuple[int, int], ...]:
    tree = ast.parse(source)
    return tuple(_range(node) for node in ast.walk(tree) if _handles(node))


def _range(node: ast.AST) -> tuple[int, int]:
    assert isinstance(node, ast.Try | ast.With)
    return node.body[0].lineno, node.body[-1].end_lineno or node.body[-1].lineno


def _handles(node: ast.AST) -> bool:
    if isinstance(node, ast.Try):
        return any(each.type is None or _names(each.type) & EXPECTED for each in node.handlers)
    if isinstance(node, ast.With):
        calls = [item.context_expr for item in node.items if isinstance(item.context_expr, ast.Call)]
        return any("suppress" in _names(call.func) and _names(*call.args) & EXPECTED for call in calls)
    return False


def _names(*nodes: ast.expr) -> set[str]:
    found = {each.id for node in nodes for each in ast.walk(node) if isinstance(each, ast.Name)}
    return found | {each.attr for node in nodes for each in ast.walk(node) if isinstance(each, ast.Attribute)}
