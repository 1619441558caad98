"""Text is UTF-8 wherever it is read or written, whatever the locale says."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "toolchain" / "precast"
# Where the encoding stands among the positional arguments; what else decides that a file is text.
METHODS = {"read_text": 0, "write_text": 1}


def is_text(call: ast.Call) -> bool:
    modes = [each.value for each in (*call.args, *(word.value for word in call.keywords if word.arg == "mode"))
             if isinstance(each, ast.Constant) and isinstance(each.value, str)]  # fmt: skip
    return not any("b" in mode for mode in modes if set(mode) <= set("rwaxbt+"))


def find_unsaid(tree: ast.AST) -> Iterator[int]:
    """Lines that open a text without saying in which encoding."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or any(word.arg in ("encoding", None) for word in node.keywords):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        words = {word.arg: word.value for word in node.keywords}
        decodes = any(getattr(words.get(each), "value", False) is True for each in ("text", "universal_newlines"))
        opens = name == "open" and isinstance(node.func, ast.Name) and is_text(node)
        temporary = name == "NamedTemporaryFile" and node.args and is_text(node)
        if decodes or opens or temporary or (name in METHODS and len(node.args) <= METHODS[name]):
            yield node.lineno


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_text_says_its_encoding(path: Path):
    assert list(find_unsaid(ast.parse(path.read_text(encoding="utf-8")))) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [("p.read_text()", True), ("p.write_text('x')", True), ("open(p)", True), ("open(p, 'w')", True),
     ("run(c, text=True)", True), ("NamedTemporaryFile('w')", True), ("open(p, 'rb')", False), ("e.open(p)", False),
     ("p.read_text(encoding='utf-8')", False), ("p.read_bytes()", False),
     ("run(c, text=True, encoding='utf-8')", False)],
)  # fmt: skip
def test_the_search_finds_them(text: str, found: bool):
    assert bool(list(find_unsaid(ast.parse(text)))) is found
