"""What a jit function says, as one digest: equal where its text and all that it reaches outside itself are equal.

In: a `JITFunction` of any Triton, or what looks like one (`src`, `fn`). Out: a `SourceDigest`. Helpers and classes
count by their text, values by what they hold, what belongs to Triton or Python by its name. Comments, blank lines,
docstrings, decorators of functions and where the file lies do not count. What cannot be described leaves the function
without a digest: it never equals another. This file needs the standard library and `source_text` alone: both also go
into a release's Python package, which finds a caller's function by the same digest.
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
import enum
import functools
import hashlib
import inspect
import os
import sys
import textwrap
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

from precast.engines.source_text import Chain, Names, names_set, words_of

_PLAIN = (bool, int, float, complex, str, bytes, range, type(None), type(...))
_CACHED: Any = type(functools.lru_cache(len))
_DYNAMIC = {"eval", "exec", "compile", "globals", "locals", "vars", "__import__", "open", "input"}
_MISSING: Any = object()


@dataclasses.dataclass(frozen=True)
class SourceDigest:
    """`text` is sha256 hex; empty with a `fault` that says what could not be described."""

    text: str
    fault: str = ""
    reads: tuple[tuple[Any, str, Any], ...] = ()  # a mapping or an object, a name in it, and what that stood for

    def is_current(self) -> bool:
        """Whether all that the function takes from elsewhere is what it was; of what changes in place nobody knows."""
        return all(
            _is_same(_look_up(owner, name), value) and not isinstance(getattr(value, "value", value), list | dict | set)
            for owner, name, value in self.reads
        )

    def watches(self) -> Iterator[tuple[Any, ...]]:
        """What a quick check looks at: (owner, name, is it an attribute) and, where there was one, the value.

        Names inside Triton and Python are left out.
        """
        for owner, name, value in self.reads:
            is_attribute = not isinstance(owner, Mapping)
            is_module = not is_attribute and "__spec__" in owner
            if not is_module or not _is_known(owner.get("__name__")):
                yield (owner, name, is_attribute, value) if value is not _MISSING else (owner, name, is_attribute)


def _look_up(owner: Any, name: str) -> Any:
    """A name in a namespace, a variable in its cell, or an attribute."""
    if isinstance(owner, Mapping):
        return owner.get(name, _MISSING)
    try:
        return getattr(owner, name, _MISSING)
    except Exception:  # a cell without a value; a stand-in for what is not installed
        return _MISSING


def _is_same(value: Any, before: Any) -> bool:
    return value is before or (type(value) is type(before) and type(value) in _PLAIN and repr(value) == repr(before))


class _Undescribed(Exception):
    """Something is reached that has no description; the text says what, for the end of a sentence."""


def digest_source(function: Any) -> SourceDigest:
    """The digest of a jit function with all that it reaches."""
    reader = _Reader(function)
    try:
        reader.describe(function)
    except _Undescribed as fault:
        return SourceDigest("", str(fault), tuple(reader.reads.values()))
    return SourceDigest(hashlib.sha256("\0".join(reader.parts).encode()).hexdigest(), "", tuple(reader.reads.values()))


class _Reader:
    """Collects the description of a function, part by part."""

    def __init__(self, function: Any) -> None:
        self.parts: list[str] = []
        self._function = function
        self.reads: dict[tuple[int, str], tuple[Any, str, Any]] = {}
        self._seen: list[Any] = []  # functions and classes, which may reach themselves
        self._open: list[Any] = []  # containers that are being described

    def describe(self, value: Any) -> None:
        """Any value, by its kind."""
        kind = type(value)
        if kind in _PLAIN:
            self.parts.append(repr(value))
        elif isinstance(value, ModuleType):
            self._describe_module(value)
        elif isinstance(value, type):
            self._describe_class(value)
        elif _is_triton(kind.__module__) and kind.__name__ == "constexpr":
            self.describe(value.value)
        elif _is_callable(value):
            self._describe_callable(value)
        elif _is_triton(kind.__module__) and isinstance(getattr(value, "name", None), str):
            self.parts.append(f"{kind.__qualname__} {value.name}")  # an element type, or one of an enumeration
        else:
            self._describe_container(value)

    def _describe_module(self, module: ModuleType) -> None:
        if not _is_known(module.__name__):
            raise _Undescribed("a module as a whole")
        self.parts.append(f"module {module.__name__}")

    def _describe_container(self, value: Any) -> None:
        if any(each is value for each in self._open):
            raise _Undescribed("a value that holds itself")
        self._open.append(value)
        self._describe_items(value)
        self._open.pop()

    def _describe_items(self, value: Any) -> None:
        kind = type(value)
        if isinstance(value, enum.Enum):
            self._describe_all(f"member {value.name}", (kind, value.value))
        elif kind in (tuple, list):
            self._describe_all(kind.__name__, value)
        elif isinstance(value, tuple) and hasattr(kind, "_fields"):
            self._describe_all("tuple", (kind, *value))
        elif kind is dict:
            self._describe_all("dict", (each for pair in value.items() for each in pair))
        elif kind in (set, frozenset):
            self._describe_set(value)
        elif dataclasses.is_dataclass(kind):
            fields = (getattr(value, field.name) for field in dataclasses.fields(kind))
            self._describe_all("dataclass", (kind, *fields))
        elif _is_triton(kind.__module__) and kind.__name__ == "tuple":
            self._describe_all("tuple", value.values)
        else:
            raise _Undescribed(f"a value of type {kind.__name__}")

    def _describe_all(self, word: str, values: Iterable[Any]) -> None:
        self.parts.append(f"{word} (")
        for each in values:
            self.describe(each)
        self.parts.append(")")

    def _describe_set(self, values: Any) -> None:
        if not all(type(each) in _PLAIN for each in values):
            raise _Undescribed("a set of more than numbers and texts")
        self._describe_all("set", sorted(values, key=repr))

    def _is_repeated(self, value: Any) -> bool:
        """Whether a function or class was described before; then its number says which."""
        for number, each in enumerate(self._seen):
            if each is value:
                self.parts.append(f"again {number}")
                return True
        self._seen.append(value)
        return False

    def _describe_callable(self, value: Any) -> None:
        if isinstance(value, _CACHED):
            self.describe(value.__wrapped__)
        elif isinstance(value, functools.partial):
            self._describe_all("partial", (value.func, value.args, value.keywords))
        elif isinstance(value, MethodType):
            self._describe_all("method", (value.__self__, value.__func__))
        elif isinstance(value, staticmethod | classmethod):
            self._describe_all(type(value).__name__, (value.__func__,))
        elif isinstance(value, property):
            self._describe_all("property", (value.fget, value.fset))
        elif _is_known(_module_of(value)):
            self.parts.append(f"{_module_of(value)}.{value.__qualname__}")
        elif not self._is_repeated(value):
            self._describe_function(value)

    def _describe_function(self, value: Any) -> None:
        """A jit function, a constexpr function, or one of Python, by its text."""
        function = _function_of(value)
        text = _text_of(value)
        if value is not self._function and "_src" in vars(value):  # which Triton lets others set
            self._watch(vars(value), "_src")
        definition = _parse_function(text)
        self.parts += [_kind_of(value), " ".join(words_of(text, definition, definition.lineno))]
        names = Names()
        names.read_function(definition)
        self._describe_names(names, (_closure_of(function), function.__globals__), definition.name)
        if not hasattr(value, "arg_names"):  # its defaults were computed when it was defined
            with _Blame(definition.name, "its defaults"):
                self._describe_all("defaults", (function.__defaults__, function.__kwdefaults__))

    def _describe_class(self, kind: type) -> None:
        if _is_known(kind.__module__):
            self.parts.append(f"{kind.__module__}.{kind.__qualname__}")
        elif not self._is_repeated(kind):
            if issubclass(kind, enum.Enum):
                self._describe_all("members", [each for pair in _members(kind) for each in pair])
            try:
                text, first = _class_text(kind)
            except _Undescribed:
                if not _is_generated(kind):
                    raise
                self._describe_all("generated", getattr(kind, "_fields", ()))
                return
            self._describe_class_text(kind, text, first)

    def _describe_class_text(self, kind: type, text: str, first: int) -> None:
        definition = next(node for node in ast.parse(text).body if isinstance(node, ast.ClassDef))
        self.parts += ["class", " ".join(words_of(text, definition, 1))]
        names = Names()
        names.visit(definition)
        members = {name: member for name, member in vars(kind).items() if _function_of(member) is not None}
        scopes = [_closure_of(_function_of(member)) for member in members.values()]
        own = _Closure({name: value for each in scopes for name, value in each.items() if name != "__class__"})
        own.cells = {name: cell for each in scopes for name, cell in each.cells.items() if name != "__class__"}
        self._describe_names(names, (own, vars(sys.modules[kind.__module__])), kind.__name__)
        lines = range(first, first + len(text.splitlines()))
        for name, member in sorted(members.items()):
            if _is_attached(member, kind, lines):
                with _Blame(kind.__name__, f"`{name}`"):
                    self.describe(member)
        if not issubclass(kind, enum.Enum):
            self._describe_attributes(kind, definition)

    def _describe_attributes(self, kind: type, definition: ast.ClassDef) -> None:
        """The values of what the class's own text sets; they may have been set anew since."""
        for name in sorted(names_set(definition)):
            value = vars(kind).get(name, _MISSING)
            if value is not _MISSING and not hasattr(type(value), "__get__"):
                with _Blame(kind.__name__, f"`{name}`"):
                    self._describe_all(f"has {name}", (value,))

    def _describe_names(self, names: Names, scopes: tuple[Mapping[str, Any], ...], user: str) -> None:
        """What the names of a text stand for."""
        for chain in names.found:
            with _Blame(user, f"`{'.'.join(chain)}`"):
                self.parts.append(f"uses {'.'.join(chain)}")
                self._describe_chain(chain, scopes)
        for chain in names.annotations:
            value = self._resolve(chain, scopes)[0]
            if isinstance(value, str) or _is_triton(_module_of(value)) or _is_triton(type(value).__module__):
                with _Blame(user, f"`{'.'.join(chain)}`"):
                    self.describe(value)
        for module in names.imports:
            if not _is_known(module):
                raise _Undescribed(f"`{user}` imports `{module}` while it runs")

    def _describe_chain(self, chain: Chain, scopes: tuple[Mapping[str, Any], ...]) -> None:
        value, path, rest = self._resolve(chain, scopes)
        if value is not _MISSING:
            known = path and _is_triton(path) and _is_triton(_module_of(value))
            self.parts.append(path) if known else self._describe_reached(value, rest)
        elif len(chain) == 1 and chain[0] in _DYNAMIC:
            raise _Undescribed("which reaches what the text does not name")
        elif len(chain) == 1 and not hasattr(builtins, chain[0]):
            self.parts.append("missing")

    def _describe_reached(self, value: Any, rest: Chain) -> None:
        """A value; of one that has no description, what the words after it reach, where that is a plain value."""
        parts, seen, opened = len(self.parts), len(self._seen), len(self._open)
        try:
            self.describe(value)
        except _Undescribed:
            del self.parts[parts:], self._seen[seen:], self._open[opened:]
            reached = self._reach(value, rest)
            if reached is _MISSING:
                raise
            self.parts.append(f"reaches {reached!r}")

    def _reach(self, value: Any, words: Chain) -> Any:
        """The plain value of an object's attribute, which is watched as well; `_MISSING` for anything else."""
        reads: dict[tuple[int, str], tuple[Any, str, Any]] = {}
        for word in words:
            owner = value.value if _is_triton(type(value).__module__) and hasattr(value, "value") else value
            value = _look_up(owner, word)
            reads[id(owner), word] = (owner, word, value)
        plain = _plain_number(value)
        if not words or type(plain) not in _PLAIN:
            return _MISSING
        self.reads.update(reads)
        return plain

    def _resolve(self, chain: Chain, scopes: tuple[Mapping[str, Any], ...]) -> tuple[Any, str, Chain]:
        """What a chain stands for as far as modules and classes go, its name in the last module, the words after it.

        The value is `_MISSING` where there is none.
        """
        namespace = next((each for each in scopes if chain[0] in each), scopes[-1])
        value, path = namespace.get(chain[0], _MISSING), ""
        self._watch(namespace, chain[0])
        for number, word in enumerate(chain[1:], 1):
            if isinstance(value, ModuleType):
                path, namespace = f"{value.__name__}.{word}", vars(value)
            elif isinstance(value, type) and not _is_known(value.__module__):
                path, namespace = "", vars(value)
            else:
                return value, path, chain[number:]
            value = getattr(value, word, _MISSING)
            self._watch(namespace, word)
        return value, path, ()

    def _watch(self, namespace: Mapping[str, Any], name: str) -> None:
        cell = namespace.cells.get(name) if isinstance(namespace, _Closure) else None
        owner, name = (namespace, name) if cell is None else (cell, "cell_contents")
        self.reads[id(owner), name] = (owner, name, _look_up(owner, name))


class _Blame:
    """Says who reaches what cannot be described; the innermost says it."""

    def __init__(self, user: str, what: str) -> None:
        self._user = user
        self._what = what

    def __enter__(self) -> None:
        return None

    def __exit__(self, _: Any, error: BaseException | None, __: Any) -> None:
        if isinstance(error, _Undescribed) and not str(error).startswith("`"):
            raise _Undescribed(f"`{self._user}` uses {self._what}, {error}") from error


def _is_triton(module: object) -> bool:
    return isinstance(module, str) and (module == "triton" or module.startswith("triton."))


def _is_known(module: object) -> bool:
    """Whether a module is Triton's or Python's own; a file that has the name of one of Python's is not."""
    if not isinstance(module, str) or _is_triton(module):
        return _is_triton(module)
    if module.partition(".")[0] not in sys.stdlib_module_names or module not in sys.modules or module == "__main__":
        return False
    file = getattr(sys.modules[module], "__file__", None) or ""
    own = file.startswith(os.path.dirname(os.__file__) + os.sep) and "site-packages" not in file
    return not file or own or "lib-dynload" in file


def _module_of(value: Any) -> str:
    """The module that a function or class is of; empty for other values."""
    named = isinstance(value, type) or _is_callable(value)
    module = getattr(value, "__module__", None) if named else None
    return module if isinstance(module, str) else ""


def _is_jit(value: Any) -> bool:
    """Whether this is a jit or constexpr function of Triton, or looks like one."""
    own = getattr(value, "__dict__", {})  # asked first: the stand-in for a module that is not installed minds
    return isinstance(own.get("fn"), FunctionType) and isinstance(getattr(value, "src", None), str)


def _is_callable(value: Any) -> bool:
    wrappers = (MethodType, functools.partial, staticmethod, classmethod, property, _CACHED)
    return isinstance(value, (FunctionType, BuiltinFunctionType, *wrappers)) or _is_jit(value)


def _function_of(value: Any) -> Any:
    """The Python function inside a method or jit function; None where there is none."""
    if isinstance(value, staticmethod | classmethod | property):
        return _function_of(value.fget if isinstance(value, property) else value.__func__)
    if isinstance(value, FunctionType):
        return value
    return value.fn if _is_jit(value) else None


def _kind_of(value: Any) -> str:
    """What runs a function, and what else than its text decides how it is compiled."""
    if isinstance(value, FunctionType):
        return "python"
    if not hasattr(value, "arg_names"):
        return "constexpr"
    flags = (name for name in ("noinline", "debug") if getattr(value, name, None))
    return " ".join(("jit", *flags))


def _text_of(value: Any) -> str:
    """A function's text, without what surrounds it."""
    if _is_jit(value):
        return textwrap.dedent(value.src)
    try:
        return textwrap.dedent(inspect.getsource(value.__code__))
    except (AttributeError, OSError, TypeError):
        raise _Undescribed("a function without source text") from None


def _parse_function(text: str) -> ast.FunctionDef:
    try:
        return next(node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef))
    except (SyntaxError, StopIteration):
        raise _Undescribed("a function that has no `def` of its own") from None


class _Closure(dict[str, Any]):
    """The names that a function takes from around it, with the cells that they are in."""

    cells: dict[str, Any]


def _closure_of(function: FunctionType) -> _Closure:
    """The names that a function takes from around it; one without a value yet is missing."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    found = _Closure({name: _look_up(cell, "cell_contents") for name, cell in cells.items()})
    found.cells = cells
    return found


def _plain_number(value: Any) -> Any:
    """A number of NumPy's as Python's own, which it is not printed as."""
    is_number = type(value).__module__ == "numpy" and not hasattr(type(value), "__len__") and hasattr(value, "item")
    return value.item() if is_number else value


def _members(kind: type[enum.Enum]) -> Iterator[tuple[str, Any]]:
    return ((name, member.value) for name, member in kind.__members__.items())


def _class_text(kind: type) -> tuple[str, int]:
    """A class's text with its decorators, and the line where it starts."""
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    try:
        with tokenize.open(file or "") as source:
            text = source.read()
        nodes: list[Any] = [ast.parse(text)]
    except (OSError, SyntaxError, ValueError):
        raise _Undescribed("a class without source text") from None
    for name in kind.__qualname__.replace(".<locals>", "").split("."):
        nodes = [each for node in nodes for each in _definitions(node) if each.name == name]
    found = nodes[0] if len(nodes) == 1 else None
    if not isinstance(found, ast.ClassDef):
        raise _Undescribed("a class that is defined twice" if nodes else "a class that has no `class` of its own")
    first = min([found.lineno, *(each.lineno for each in found.decorator_list)])
    lines = text.splitlines(keepends=True)[first - 1 : found.end_lineno]
    return textwrap.dedent("".join(lines)), first


def _definitions(node: ast.AST) -> Iterator[Any]:
    """The functions and classes that stand directly in a body, in whatever branch of it."""
    for each in ast.iter_child_nodes(node):
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield each
        elif not isinstance(each, ast.expr):
            yield from _definitions(each)


def _is_generated(kind: type) -> bool:
    """Whether a class was made of names alone, as `namedtuple` and `Enum("E", "A B")` do."""
    made = hasattr(kind, "_fields") or issubclass(kind, enum.Enum)
    functions = filter(None, map(_function_of, vars(kind).values()))
    return made and not any(_is_written(function) for function in functions)


def _is_written(function: FunctionType) -> bool:
    """Whether somebody wrote a function, who is neither Python nor Triton."""
    return not function.__code__.co_filename.startswith("<") and not _is_known(function.__globals__.get("__name__"))


def _is_attached(member: Any, kind: type, lines: range) -> bool:
    """Whether a member of a class comes from elsewhere than the class's text."""
    function = _function_of(member)
    code = function.__code__
    file = getattr(sys.modules[kind.__module__], "__file__", None) or ""
    inside = os.path.abspath(code.co_filename) == os.path.abspath(file) and code.co_firstlineno in lines
    return _is_written(function) and not inside
