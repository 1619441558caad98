"""What Python code from outside can replace of other code: names of modules, and of the classes that these define.

In: the modules that are loaded. Out: a value that tells, held against a later one, in which of them something that can
be called is another or gone. That is asked of thousands of dictionaries for each job, so what has not changed must cost
nothing: CPython gives a dictionary another number whenever it changes (PEP 509), and one that has the number that it
had is not looked into. An interpreter without such numbers is found out: there all are looked into.
"""

from __future__ import annotations

import ctypes
import gc
import sys
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

# Packages whose functions decide what code is made: the compilers, ours, and Python's own. Of its import system, an
# open session of `engines.triton.imports` replaces a part.
_WATCHED = {"triton", "mlir", "llvmlite", "precast", "builtins", *sys.stdlib_module_names} - {"importlib"}
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
    """What a module's or a class's dictionary held, and the classes among it that a module defines, by full name."""

    content: Mapping[str, object]  # as it is now
    held: dict[str, object]
    classes: tuple[tuple[str, type], ...]
    number: Any
    last: object  # number with which it was known to hold that

    def stands(self) -> bool:
        """Whether all is there as it was. Lists take what is the same object for equal, and ask only what took
        another's place."""
        now = self.number.value
        if now == self.last:
            return True
        if [*self.content.values()] != [*self.held.values()] or [*self.content] != [*self.held]:
            return False
        self.last = now
        return True

    def lost_in(self, after: _Place | None) -> bool:
        """Whether something that can be called is gone, or is another."""
        if after is self:
            return False
        held = after.held if after else {}
        return any(held.get(name) is not value and callable(value) for name, value in self.held.items())


@dataclass(eq=False)
class Functions:
    """What the watched packages define, by full name of module and class."""

    places: Mapping[str, _Place]
    modules: list[types.ModuleType]  # all that are loaded

    def __post_init__(self) -> None:
        self._all = [*self.places.values()]
        self._numbers = [each.number for each in self._all]
        self._last = [each.last for each in self._all]

    def stand(self) -> bool:
        """Whether nothing has changed: the quick question."""
        if [*sys.modules.values()] != self.modules:
            return False
        now = [each.value for each in self._numbers]
        if now != self._last:
            moved = (place for place, number, last in zip(self._all, now, self._last, strict=True) if number != last)
            if not all(place.stands() for place in moved):
                return False
            self._last = now
        return True

    def lost_in(self, after: Functions) -> list[str]:
        """Where something that can be called is gone, or is another."""
        if after is self:
            return []
        return [name for name, place in self.places.items() if place.lost_in(after.places.get(name))]


def read_functions(earlier: Functions | None) -> Functions:
    """What there is now; what is as it was `earlier` is taken from there."""
    if earlier and earlier.stand():
        return earlier
    modules = [*sys.modules.values()]
    return Functions(dict(_find_places(earlier.places if earlier else {})), modules)


def _find_places(earlier: Mapping[str, _Place]) -> Iterator[tuple[str, _Place]]:
    """The watched modules by name, and the classes that they define."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in _WATCHED and isinstance(module, types.ModuleType):
            place = _look_at(vars(module), earlier.get(name), name)
            yield name, place
            for key, each in place.classes:
                yield key, _look_at(_content_of(each), earlier.get(key))


def _look_at(content: Mapping[str, object], earlier: _Place | None, module: str = "") -> _Place:
    if earlier is not None and earlier.content is content and earlier.stands():
        return earlier
    number = _number_of(content)
    last = number.value  # what changes from here on is not missed
    held = dict(content)
    own = [(name, each) for name, each in held.items() if module and isinstance(each, type)]
    classes = tuple((f"{module}.{name}", each) for name, each in own if each.__module__ == module)
    return _Place(content, held, classes, number, last)
