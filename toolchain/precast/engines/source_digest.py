"""What a jit function says, as one digest: equal where its text, its helpers' and the constants it reads are equal.

In: a `JITFunction` of any Triton, or what looks like one (`src`, `fn`). Out: sha256 hex. Comments, blank lines,
docstrings, decorators and where the file lies do not count. This file needs the standard library alone: it also goes
into a release's Python package, which finds a caller's function by the same digest.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import io
import textwrap
import token
import tokenize
from collections.abc import Iterator
from types import ModuleType
from typing import Any

_SILENT = {token.NEWLINE, token.ENDMARKER, tokenize.NL, tokenize.COMMENT, tokenize.ENCODING}


def digest_source(function: Any) -> str:
    """The digest of a jit function with all that it reaches outside of Triton itself."""
    parts: list[str] = []
    _describe(function, parts, [])
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _describe(function: Any, parts: list[str], seen: list[Any]) -> None:
    if any(each is function for each in seen):
        parts.append(f"again {[each is function for each in seen].index(True)}")
        return
    seen.append(function)
    text = textwrap.dedent(getattr(function, "src", None) or inspect.getsource(function.fn))
    tree = ast.parse(text)
    definition = next(node for node in tree.body if isinstance(node, ast.FunctionDef))
    parts.append(" ".join(_words(text, definition)))
    for name, value in _references(definition, function.fn):
        if _is_jit(value):
            if not value.fn.__module__.startswith("triton."):
                parts.append(f"uses {name}")
                _describe(value, parts, seen)
        else:
            constant = _constant_text(value)
            if constant:
                parts.append(f"reads {name} = {constant}")


def _words(text: str, definition: ast.FunctionDef) -> Iterator[str]:
    """The tokens from `def` on, without a docstring; an indent is one word whatever its width."""
    docstring = _docstring_span(definition)
    lines = text.splitlines(keepends=True)
    formatted: tuple[int, int] | None = None
    for each in tokenize.generate_tokens(io.StringIO(text).readline):
        name = token.tok_name[each.type]
        if each.start[0] < definition.lineno or (docstring and docstring[0] <= each.start < docstring[1]):
            continue
        if name == "FSTRING_START":  # Python 3.12 and later take a formatted string apart
            formatted = formatted or each.start
        elif name == "FSTRING_END" and formatted:
            yield _slice(lines, formatted, each.end)
            formatted = None
        elif formatted is None and each.type not in _SILENT:
            yield "indent" if each.type == token.INDENT else "dedent" if each.type == token.DEDENT else each.string


def _docstring_span(definition: ast.FunctionDef) -> tuple[tuple[int, int], tuple[int, int]] | None:
    first = definition.body[0]
    if ast.get_docstring(definition, clean=False) is None or len(definition.body) == 1:
        return None
    return (first.lineno, first.col_offset), (first.end_lineno or first.lineno, first.end_col_offset or 0)


def _slice(lines: list[str], start: tuple[int, int], end: tuple[int, int]) -> str:
    if start[0] == end[0]:
        return lines[start[0] - 1][start[1] : end[1]]
    middle = "".join(lines[start[0] : end[0] - 1])
    return lines[start[0] - 1][start[1] :] + middle + lines[end[0] - 1][: end[1]]


def _references(definition: ast.FunctionDef, function: Any) -> Iterator[tuple[str, Any]]:
    """What the text names outside itself, each once, in order: `helper`, `module.helper`, `module.CONSTANT`."""
    outer = inspect.getclosurevars(function).nonlocals
    found: dict[str, Any] = {}
    for node in ast.walk(definition):
        chain = _chain(node)
        if not chain or chain[0] not in {**function.__globals__, **outer}:
            continue
        value = outer[chain[0]] if chain[0] in outer else function.__globals__[chain[0]]
        for word in chain[1:]:
            value = getattr(value, word, None) if isinstance(value, ModuleType) else None
        found.setdefault(".".join(chain), value)
    return iter(found.items())


def _chain(node: ast.AST) -> list[str]:
    """`a.b.c` as its words; empty for anything else."""
    words: list[str] = []
    while isinstance(node, ast.Attribute):
        words.append(node.attr)
        node = node.value
    return [node.id, *reversed(words)] if isinstance(node, ast.Name) else []


def _is_jit(value: Any) -> bool:
    return hasattr(value, "fn") and hasattr(value, "arg_names")


def _constant_text(value: Any) -> str:
    """A constant by its value; empty for what is none (modules, builtins, functions)."""
    if type(value).__name__ == "constexpr":
        value = value.value
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    if isinstance(value, tuple | list):
        texts = [_constant_text(each) for each in value]
        return f"({', '.join(texts)})" if all(texts) else ""
    return f"dtype {value}" if type(value).__name__ == "dtype" else ""
