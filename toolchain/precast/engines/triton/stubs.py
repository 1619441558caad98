"""Stand-ins for modules that are not installed, so that a kernel's file loads where only Triton is.

In: the name of a missing top-level module. Out: a module whose every attribute, call and item is again a stand-in.
While a module loads they are inert: decorators leave what they decorate, conditions are false, loops are empty.
Once loading is over they are sealed: to touch one is `NotInstalled`, which Triton reports at the line of the jit
function that did. Numbers are never made up: `int()`, `float()` and `len()` of a stand-in fail at once.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import types
from collections.abc import Iterator
from typing import Any, NoReturn

MARK = "__precast_standin__"


class NotInstalled(Exception):
    """A stand-in was used where a real value is needed."""

    def __init__(self, name: str) -> None:
        package = name.partition(".")[0]
        super().__init__(f"`{name}` is used here, and `{package}` is not installed")


class Seal:
    """Shared by the stand-ins of one loading: `closed` once the kernel's module is loaded."""

    def __init__(self) -> None:
        self.closed = False


class Standin:
    """Any value of a module that is not installed."""

    def __init__(self, name: str, seal: Seal) -> None:
        self._name = name
        self._seal = seal
        self._parts: dict[str, Standin] = {}

    def _part(self, key: str, text: str) -> Standin:
        if self._seal.closed:
            raise NotInstalled(self._name)
        return self._parts.setdefault(key, Standin(text, self._seal))

    def __getattr__(self, name: str) -> Any:
        if name == "__version__":
            return "0"
        if name == "__triton_builtin__" and self._seal.closed:
            return True  # so that Triton uses it where it stands, and fails there
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return self._part(name, f"{self._name}.{name}")

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """As a decorator it leaves what it decorates; any other call gives a stand-in."""
        if len(arguments) == 1 and not keywords and _is_decorated(arguments[0]) and not self._seal.closed:
            return arguments[0]
        return self._part("()", f"{self._name}(…)")

    def __getitem__(self, key: object) -> Standin:
        return self._part("[]", f"{self._name}[…]")

    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type, ...]:
        """A class may derive from a stand-in: it then derives from an empty class of that name."""
        return (type(self._name.rpartition(".")[2] or "Standin", (), {"__init__": _accept_anything}),)

    def __instancecheck__(self, instance: object) -> bool:
        return False

    def __subclasscheck__(self, subclass: type) -> bool:
        return False

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __contains__(self, item: object) -> bool:
        return False

    def __enter__(self) -> Standin:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def __bool__(self) -> bool:
        if self._seal.closed:
            raise NotInstalled(self._name)
        return False

    def __repr__(self) -> str:
        return f"<{self._name}, which is not installed>"

    def __hash__(self) -> int:
        return id(self)

    def _no_number(self, *_: object) -> NoReturn:
        raise NotInstalled(self._name)

    __int__ = __float__ = __index__ = __len__ = __complex__ = _no_number

    def _combine(self, _: object = None) -> Any:
        return self._part("()", self._name)

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _combine
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __matmul__ = __rmatmul__ = _combine
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __lshift__ = __rshift__ = _combine
    __neg__ = __pos__ = __abs__ = __invert__ = __lt__ = __le__ = __gt__ = __ge__ = _combine
    __eq__ = __ne__ = _combine


class NotInstalledPart(NotInstalled, AttributeError):
    """The same for a part of a module: who asks whether it is there hears that it is not."""


def make_module(name: str, seal: Seal) -> types.ModuleType:
    """The module object that `import` needs: a plain one, as Triton expects, whose every part is a stand-in."""
    module = types.ModuleType(name)
    standin = Standin(name, seal)

    def find_part(part: str) -> Any:
        if seal.closed and not part.startswith("__"):
            raise NotInstalledPart(f"{name}.{part}")
        return getattr(standin, part)

    module.__dict__.update(__path__=[], __all__=[], __getattr__=find_part, **{MARK: True})
    return module


def is_standin(module: types.ModuleType | None) -> bool:
    """Whether a module stands for one that is not installed."""
    return module is not None and MARK in module.__dict__


class StandinLoader(importlib.abc.Loader):
    def __init__(self, seal: Seal) -> None:
        self.seal = seal

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return make_module(spec.name, self.seal)

    def exec_module(self, module: types.ModuleType) -> None:
        """A stand-in has no code."""


def _is_decorated(value: object) -> bool:
    if isinstance(value, Standin):
        return False
    return isinstance(value, types.FunctionType | type) or hasattr(value, "arg_names")


def _accept_anything(self: object, *arguments: object, **keywords: object) -> None:
    """The constructor of classes that derive from a stand-in."""


def standin_spec(name: str, seal: Seal) -> importlib.machinery.ModuleSpec:
    """The import spec of a stand-in for the module `name`."""
    return importlib.machinery.ModuleSpec(name, StandinLoader(seal), is_package=True)
