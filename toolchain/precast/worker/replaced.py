"""What Python code from outside can replace of other code: names of modules, and of the classes that these define.

In: the modules that are loaded. Out: a value that tells, held against a later one, in which of them a function, a
constant or, of compilers, anything is another, gone, or there anew. That is asked of thousands of dictionaries for each
job, so what has not changed must cost nothing: CPython gives a dictionary another number whenever it changes (PEP 509),
and one that has the number that it had is not looked into. An interpreter without such numbers is found out: there all
are looked into.
"""

from __future__ import annotations

import ctypes
import gc
import itertools
import sys
import types
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

# Packages whose functions decide what code is made: the compilers, ours, and what everybody uses. Of Python's import
# system, an open session of `engines.triton.imports` replaces a part, and sets a name.
_COMPILERS = {"triton", "mlir", "llvmlite", "precast"}
_WATCHED = {*_COMPILERS, "builtins", "numpy", *sys.stdlib_module_names} - {"importlib"}
_PASSING = {"dont_write_bytecode"}
_PLAIN = (bool, int, float, complex, str, bytes, tuple, frozenset)
_ABSENT = object()
_Table = dict[Any, Any] | list[Any] | set[Any]
_NUMBER_AT = object.__basicsize__ + ctypes.sizeof(ctypes.c_ssize_t)  # in a dictionary: behind the count of its entries


class _NoNumber:
    """In the place of a number: whenever it is asked for, it is another one."""

    @property
    def value(self) -> object:
        return object()


def _number_of(content: Mapping[str, object]) -> Any:
    """What has the number of a dictionary as its `value`."""
    is_numbered = isinstance(content, dict) and _has_numbers()
    return ctypes.c_uint64.from_address(id(content) + _NUMBER_AT) if is_numbered else _NoNumber()


@cache
def _has_numbers() -> bool:
    """Whether dictionaries have numbers where they are looked for."""

    class Sample:
        pass

    return all(_is_numbered(each) for each in (types.ModuleType("sample"), Sample))


def _is_numbered(owner: Any) -> bool:
    """Whether each change of a module or class gives another number, and a look none."""
    number = ctypes.c_uint64.from_address(id(_content_of(owner)) + _NUMBER_AT)
    seen = [number.value]
    for value in ("first", "second", "first"):
        owner.name = value
        seen.append(number.value)
    del owner.name
    seen.append(number.value)
    return len({*seen}) == len(seen) and not hasattr(owner, "name") and number.value == seen[-1]


def _content_of(owner: object) -> Mapping[str, object]:
    """The dictionary of a module or class itself; that of a class Python shows in a wrapper."""
    content: Mapping[str, object] = vars(owner)
    inside = [content] if type(content) is dict else gc.get_referents(content)
    return inside[0] if len(inside) == 1 else content


@dataclass(eq=False)
class _Place:
    """What a module's or a class's dictionary held, and the classes among it that a module defines, by full name.
    `tables`: those among it of a compiler's, with what was in them."""

    content: Mapping[str, object]  # as it is now
    held: dict[str, object]
    classes: tuple[tuple[str, type], ...]
    tables: tuple[tuple[_Table, list[Any]], ...]
    strict: bool  # of a compiler, where all counts
    number: Any
    last: object  # number with which it was known to hold that

    def stands(self) -> bool:
        """Whether all is there as it was. Lists take what is the same object for equal, and ask only what took
        another's place."""
        if not _hold(self.tables):
            return False
        now = self.number.value
        if now == self.last:
            return True
        if [*self.content.values()] != [*self.held.values()] or [*self.content] != [*self.held]:
            return False
        self.last = now
        return True

    def differs_in(self, after: _Place | None) -> bool:
        """Whether something is gone, or is another, or is there anew where that counts."""
        if after is self:
            return False
        if after is None or [held for _, held in self.tables] != [held for _, held in after.tables]:
            return True
        return any(
            self._is_another(name, value, after.held.get(name, _ABSENT)) for name, value in self.held.items()
        ) or (self.strict and any(_counts(name, value) for name, value in after.held.items() if name not in self.held))

    def _is_another(self, name: str, before: object, now: object) -> bool:
        """Whether a name means something else. None that became a value is what waited to be found out; what others
        keep under names of their own, they change for themselves."""
        if now is before or name in _PASSING or (before is None and now is not _ABSENT and not callable(now)):
            return False
        if isinstance(before, _PLAIN):
            is_same = type(before) is type(now) and before == now
            return not is_same and (self.strict or not name.startswith("_"))
        return self.strict or before is None or callable(before)


def _counts(name: str, value: object) -> bool:
    """Whether a new name is more than a module that was imported, a class, or what Python notes of one."""
    return not isinstance(value, types.ModuleType | type) and not name.startswith("__anno")


def _hold(tables: Iterable[tuple[_Table, list[Any]]]) -> bool:
    return all(_in_table(table) == held for table, held in tables)


def _in_table(table: _Table) -> list[Any]:
    return [*itertools.chain.from_iterable(table.items())] if isinstance(table, dict) else [*table]


def _find_tables(held: Mapping[str, object]) -> Iterator[_Table]:
    """The tables under public names. That of the modules is the import system's business."""
    for name, value in held.items():
        if isinstance(value, dict | list | set) and not name.startswith("_") and value is not sys.modules:
            yield value


@dataclass(eq=False)
class Contents:
    """What the watched packages define, by full name of module and class."""

    places: Mapping[str, _Place]
    modules: Mapping[str, types.ModuleType]  # those that are watched: of the others, each kernel brings its own

    def __post_init__(self) -> None:
        self._all = [*self.places.values()]
        self._numbers = [each.number for each in self._all]
        self._last = [each.last for each in self._all]
        self._tables = [table for each in self._all for table in each.tables]

    def stand(self) -> bool:
        """Whether nothing has changed: the quick question."""
        if _watched_modules() != self.modules or not _hold(self._tables):
            return False
        now = [each.value for each in self._numbers]
        if now != self._last:
            moved = (place for place, number, last in zip(self._all, now, self._last, strict=True) if number != last)
            if not all(place.stands() for place in moved):
                return False
            self._last = now
        return True

    def differing_in(self, after: Contents) -> list[str]:
        """Where something is not as it was."""
        if after is self:
            return []
        return [name for name, place in self.places.items() if place.differs_in(after.places.get(name))]


def read_contents(earlier: Contents | None) -> Contents:
    """What there is now; what is as it was `earlier` is taken from there."""
    if earlier and earlier.stand():
        return earlier
    modules = _watched_modules()
    return Contents(dict(_find_places(modules, earlier.places if earlier else {})), modules)


def _watched_modules() -> dict[str, types.ModuleType]:
    loaded = list(sys.modules.items())
    return {
        name: module
        for name, module in loaded
        if name.partition(".")[0] in _WATCHED and isinstance(module, types.ModuleType)
    }


def _find_places(
    modules: Mapping[str, types.ModuleType], earlier: Mapping[str, _Place]
) -> Iterator[tuple[str, _Place]]:
    """The watched modules by name, and the classes that they define."""
    for name, module in modules.items():
        strict = name.partition(".")[0] in _COMPILERS
        place = _look_at(vars(module), earlier.get(name), strict, name)
        yield name, place
        for key, each in place.classes:
            yield key, _look_at(_content_of(each), earlier.get(key), strict)


def _look_at(content: Mapping[str, object], earlier: _Place | None, strict: bool, module: str = "") -> _Place:
    if earlier is not None and earlier.content is content and earlier.stands():
        return earlier
    number = _number_of(content)
    last = number.value  # what changes from here on is not missed
    held = dict(content)
    own = [(name, each) for name, each in held.items() if module and isinstance(each, type)]
    classes = tuple((f"{module}.{name}", each) for name, each in own if each.__module__ == module)
    tables = tuple((each, _in_table(each)) for each in _find_tables(held)) if strict else ()
    return _Place(content, held, classes, tables, strict, number, last)
