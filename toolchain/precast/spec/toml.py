"""TOML with exact places: values from `tomllib`, the line and column of every key and value from tree-sitter.

In: a TOML file. Out: a `Node`, through which the spec and project readers take typed values, so that each
complaint carries the place of the key or value that it is about.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import tree_sitter
import tree_sitter_toml

from precast.bounded import read_bounded
from precast.errors import LatePlace, Place, SpecError, nearest_hint
from precast.grid import LARGEST, SMALLEST
from precast.spec.model import Scalar

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

KeyPath = tuple[str | int, ...]
Kind = TypeVar("Kind")

MOST_PARTS = 100  # of a name with dots, that nobody need look at twice
KIND_NAMES = {str: "a string", int: "an integer", bool: "true or false", list: "an array", dict: "a table"}


@dataclass(frozen=True)
class Document:
    """A parsed file: `name` is the file as errors show it."""

    name: str
    data: Mapping[str, object]
    text: str
    digest: str = ""  # of the file's bytes

    @property
    def root(self) -> Node:
        return Node(self, (), self.data)

    @cached_property
    def places(self) -> _Places:
        """Where its keys and values stand. Looked for when the first is asked for."""
        return _Places(self.name, self.text)


@dataclass(frozen=True)
class Node:
    """One value of a document with the path of keys that leads to it."""

    document: Document
    path: KeyPath
    value: object

    @property
    def key(self) -> Place:
        """The place of the key, or of the header that made the table."""
        return LatePlace(self._find_key)

    @property
    def place(self) -> Place:
        """The place of the value; for a table with a header, that of its key."""
        return LatePlace(self._find_value)

    @property
    def inside(self) -> Place:
        """The place of a string's first character, after its quotes."""
        return LatePlace(self._find_inside)

    def _find_key(self) -> Place:
        path, keys = self.path, self.document.places.keys
        while path and path not in keys:
            path = path[:-1]
        return keys.get(path, Place(self.document.name, 1))

    def _find_value(self) -> Place:
        return self.document.places.values.get(self.path) or self._find_key()

    def _find_inside(self) -> Place:
        place = self._find_value()
        quotes = 3 if place.length >= 6 + len(str(self.value)) else 1
        return Place(place.file, place.line, place.column + quotes)

    def error(self, message: str, hint: str | None = None) -> SpecError:
        return SpecError(message, self.place, hint)

    def key_error(self, message: str, hint: str | None = None) -> SpecError:
        return SpecError(message, self.key, hint)

    def child(self, name: str | int, value: object) -> Node:
        return Node(self.document, (*self.path, name), value)

    def _typed(self, kind: type[Kind]) -> Kind:
        if type(self.value) is not kind:
            hint = self._header_hint if isinstance(self.value, list) else None
            raise self.error(f"`{self.label}` must be {KIND_NAMES[kind]}, not {describe(self.value)}", hint)
        self._check_value()
        return self.value

    def _check_value(self) -> None:
        """TOML's integers have 64 bits, and so have those of a release; Python's parser takes longer ones. No text of
        ours may end early."""
        if self.is_too_large:
            raise self.error(f"`{self.label}` does not fit in 64 bits")
        if isinstance(self.value, str) and "\0" in self.value:
            raise self.error(f"`{self.label}` has the character U+0000 in it")

    @property
    def is_too_large(self) -> bool:
        return isinstance(self.value, int) and not SMALLEST <= self.value <= LARGEST

    @property
    def _header_hint(self) -> str | None:
        """How the header is written, where a table has that of an array, or an array that of a table."""
        name = ".".join(part for part in self.path if isinstance(part, str))
        if self.path in self.document.places.values:
            return None
        return f"write `[[{name}]]`" if isinstance(self.value, dict) else f"write `[{name}]`, once"

    @property
    def label(self) -> str:
        """The last key of the path, for messages; an element of an array is called as the array is."""
        return next((part for part in reversed(self.path) if isinstance(part, str)), self.document.name)

    def text(self) -> str:
        return self._typed(str)

    def integer(self) -> int:
        return self._typed(int)

    def boolean(self) -> bool:
        return self._typed(bool)

    def items(self) -> list[Node]:
        """The elements of an array."""
        document, path = self.document, self.path
        return [Node(document, (*path, index), value) for index, value in enumerate(self._typed(list))]

    def tables(self) -> list[Node]:
        """The elements of an array of tables, which may be written one by one."""
        if isinstance(self.value, dict):
            raise self.error(f"`{self.label}` must be an array, not a table", self._header_hint)
        return self.items()

    def table(self) -> dict[str, Node]:
        """The entries of a table, in the order written."""
        return self._entries

    @cached_property
    def _entries(self) -> dict[str, Node]:
        document, path = self.document, self.path
        return {name: Node(document, (*path, name), value) for name, value in self._typed(dict).items()}

    def texts(self) -> tuple[str, ...]:
        return tuple(item.text() for item in self.items())

    def scalar(self) -> Scalar:
        """A scalar: string, boolean, integer or float."""
        self._check_value()
        if isinstance(self.value, (str, bool, int, float)):
            return self.value
        raise self.error(f"`{self.label}` must be a string, a number, true or false, not {describe(self.value)}")

    def unknown_keys(self, known: Collection[str], noun: str = "key") -> Iterator[SpecError]:
        """An error for each key that is not known, at the key, with the nearest known one."""
        for name, node in self.table().items():
            if name not in known:
                yield node.key_error(f"unknown {noun} `{name}`", nearest_hint(name, known, f"{noun}s"))


def describe(value: object) -> str:
    return KIND_NAMES.get(type(value), f"a {type(value).__name__}")


def read_document(path: Path, name: str) -> Document:
    """The parsed file; `SpecError` when it cannot be read, is not UTF-8, or not TOML."""
    try:
        data = read_bounded(path)
    except OSError as error:
        raise SpecError(f"cannot read `{name}`: {(error.strerror or str(error)).lower()}") from None
    try:
        document = parse_document(data.decode("utf-8-sig"), name)  # some editors write a byte order mark
    except UnicodeDecodeError as error:
        raise not_utf8(data, error.start, name) from None
    return replace(document, digest=hashlib.sha256(data).hexdigest())


def not_utf8(data: bytes, start: int, name: str, hint: str = "save it as UTF-8") -> SpecError:
    """The error for a byte that is no part of UTF-8 text, at its place."""
    before = data[:start].decode("utf-8", "replace")
    place = Place(name, before.count("\n") + 1, len(before) - before.rfind("\n"))
    return SpecError(f"not UTF-8 text: byte 0x{data[start]:02x}", place, hint)


def parse_document(text: str, name: str) -> Document:
    """The document that `text` is; `SpecError` at the place where it is not TOML."""
    try:
        document = Document(name, tomllib.loads(text), text)
        if max(line.count(".") for line in text.split("\n")) > MOST_PARTS:
            _ = document.places  # finds out whether that is too deep to be read
    except tomllib.TOMLDecodeError as error:
        raise _syntax_error(str(error), text, name) from None
    except ValueError as error:  # a number of more digits than Python reads
        raise SpecError(f"not valid TOML: {error}".partition(";")[0], Place(name, 1)) from None
    except RecursionError:
        raise SpecError("not valid TOML: nested too deeply", _deepest(text, name)) from None
    return document


def _deepest(text: str, name: str) -> Place:
    """Where a text is nested most deeply, or has its longest name of dotted parts."""
    depth = deepest = 0
    place = Place(name, 1)
    for number, line in enumerate(text.split("\n"), 1):
        for column, letter in enumerate(line, 1):
            depth += (letter in "[{.") - (letter in "]}")
            if depth > deepest:
                deepest, place = depth, Place(name, number, column)
        depth -= line.count(".")
    return place


def _syntax_error(message: str, text: str, name: str) -> SpecError:
    found = re.search(r" \(at line (\d+), column (\d+)\)$", message)
    if found:
        place = Place(name, int(found[1]), int(found[2]))
    else:
        lines = text.splitlines() or [""]
        place = Place(name, len(lines), len(lines[-1]) + 1)
    cause = re.sub(r" \(at .*\)$", "", message)
    return SpecError(f"not valid TOML: {cause[0].lower()}{cause[1:]}", place)


class _Places:
    """Walks the syntax tree of a valid document and notes where each key and value stands."""

    def __init__(self, name: str, text: str) -> None:
        self.keys: dict[KeyPath, Place] = {}
        self.values: dict[KeyPath, Place] = {}
        self._name = name
        self._lines = text.encode().split(b"\n")
        self._counts: dict[KeyPath, int] = {}
        parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_toml.language()))
        for node in parser.parse(text.encode()).root_node.named_children:
            self._top(node)

    def _top(self, node: tree_sitter.Node) -> None:
        if node.type == "pair":
            self._pair((), node)
        elif node.type in ("table", "table_array_element"):
            header, *rest = [child for child in node.named_children if child.type != "comment"]
            base = self._header(header, array=node.type == "table_array_element")
            for child in rest:
                self._pair(base, child)

    def _header(self, node: tree_sitter.Node, *, array: bool) -> KeyPath:
        path: KeyPath = ()
        parts = self._parts(node)
        for index, part in enumerate(parts):
            path = self._note_key(path, part)
            if array and index == len(parts) - 1:
                self._counts[path] = self._counts.get(path, 0) + 1
            if path in self._counts:
                path = (*path, self._counts[path] - 1)
        self.keys.setdefault(path, self._place(parts[-1]))
        return path

    def _note_key(self, base: KeyPath, part: tree_sitter.Node) -> KeyPath:
        path = (*base, _key_text(part))
        self.keys.setdefault(path, self._place(part))
        return path

    def _parts(self, node: tree_sitter.Node) -> list[tree_sitter.Node]:
        if node.type != "dotted_key":
            return [node]
        return [part for child in node.named_children for part in self._parts(child)]

    def _pair(self, base: KeyPath, node: tree_sitter.Node) -> None:
        key, value = [child for child in node.named_children if child.type != "comment"]
        for part in self._parts(key):
            base = self._note_key(base, part)
        self._value(base, value)

    def _value(self, path: KeyPath, node: tree_sitter.Node) -> None:
        self.values[path] = self._place(node)
        children = [child for child in node.named_children if child.type != "comment"]
        if node.type == "inline_table":
            for child in children:
                self._pair(path, child)
        elif node.type == "array":
            for index, child in enumerate(children):
                self._value((*path, index), child)

    def _place(self, node: tree_sitter.Node) -> Place:
        row, start = node.start_point
        line = self._lines[row]
        end = node.end_point[1] if node.end_point[0] == row else len(line)
        column = len(line[:start].decode())
        return Place(self._name, row + 1, column + 1, max(1, len(line[start:end].decode())))


def _key_text(node: tree_sitter.Node) -> str:
    text = (node.text or b"").decode()
    return text if node.type == "bare_key" else str(next(iter(tomllib.loads(f"{text} = 0"))))
