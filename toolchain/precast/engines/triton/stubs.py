"""Stand-ins for modules that are not installed, so that a kernel's file loads where only Triton is.

In: the name of a missing top-level module. Out: a module whose every attribute, call and item is again a stand-in.
While a module loads they are inert: decorators leave what they decorate, conditions are false, loops are empty,
versions are newer than any, paths lead nowhere. Once loading is over they are sealed: to touch one is `NotInstalled`,
which Triton reports at the line of the jit function that did. Numbers are never made up: `int()`, `float()` and
`len()` of a stand-in fail at once.
"""

from __future__ import annotations

import builtins
import contextlib
import enum
import importlib.abc
import importlib.machinery
import importlib.metadata
import inspect
import types
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NoReturn, Protocol

MARK = "__precast_standin__"
NEWEST = "999.0.0"  # a version with which code takes the way that it has for releases of today
NOWHERE = "/nonexistent"
EXCEPTIONS: dict[str, type[BaseException]] = {"Error": Exception, "Exception": Exception, "Warning": UserWarning}


class NotInstalled(Exception):
    """A stand-in was used where a real value is needed."""

    def __init__(self, name: str, cause: str = "") -> None:
        package = name.partition(".")[0]
        super().__init__(f"`{name}` is used here, and {cause or f'`{package}` is not installed'}")


def _no_answer(name: str) -> Any:
    raise KeyError(name)


class Seal:
    """Shared by the stand-ins of one loading: `closed` once the kernel's module is loaded.

    `answer` gives the value of a dotted name that is known nevertheless, `KeyError` for any other. `asked` tells
    whether the loading's target may have decided something.
    """

    def __init__(self) -> None:
        self.closed = False
        self.asked = False
        self.answer: Callable[[str], Any] = _no_answer


class NotInstalledLength(NotInstalled, TypeError):
    """The same for what has no length to tell: `list` and `sorted` then go without."""


class Standin:
    """Any value of a module that is not installed. `cause` says why it is not there, when it is for another reason."""

    def __init__(self, name: str, seal: Seal, cause: str = "") -> None:
        self._name = name
        self._seal = seal
        self._cause = cause
        self._parts: dict[str, Standin] = {}
        self._exceptions: dict[str, type[BaseException]] = {}

    @property
    def origin(self) -> str:
        """Where it comes from, in words."""
        return f"`{self._name}`, which is not installed"

    def _part(self, key: str, text: str) -> Any:
        self._check()
        if key not in self._parts:
            self._parts[key] = Standin(text, self._seal, self._cause)
        return self._parts[key]

    def _check(self) -> None:
        if self._seal.closed:
            raise NotInstalled(self._name, self._cause)

    def __getattr__(self, name: str) -> Any:
        if name == "__version__":
            return NEWEST
        if name == "__file__":
            return f"{self.__fspath__()}/__init__.py"
        if name in ("__name__", "__qualname__"):
            return self._name.rpartition(".")[2]
        if name == "__triton_builtin__" and self._seal.closed:
            return True  # so that Triton uses it where it stands, and fails there
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        self._check()
        try:
            return self._seal.answer(f"{self._name}.{name}")
        except KeyError:
            return self._exception(name) or self._part(name, f"{self._name}.{name}")

    def _exception(self, name: str) -> type[BaseException] | None:
        """A class of its own for what is named like one of exceptions, which handlers and filters need."""
        kind = next((kind for ending, kind in EXCEPTIONS.items() if name.endswith(ending)), None)
        if kind is not None and name not in self._exceptions:
            self._exceptions[name] = type(name, (kind,), {})
        return self._exceptions.get(name)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """As a decorator it leaves what it decorates, as a metaclass it is `type`; else it gives a stand-in."""
        self._check()
        if len(arguments) == 1 and _is_decorated(arguments[0]):
            return self._decorate(arguments[0])
        if [type(each) for each in arguments] == [str, tuple, dict]:
            return self._make_class(*arguments)
        return self._part("()", f"{self._name}(…)")

    def _make_class(self, name: str, bases: tuple[Any, ...], contents: dict[str, Any]) -> type:
        """As a metaclass: what classes of it have, and what keywords they take, is as little known as of a base."""
        return types.new_class(name, types.resolve_bases((*bases, self)), {}, lambda space: space.update(contents))

    def _decorate(self, value: Any) -> Any:
        if isinstance(value, types.FunctionType):
            return StandinFunction(value, f"{self._name}(…)", self._seal, self._cause)
        if isinstance(value, type) and value.__init__ is object.__init__:  # type: ignore[misc]
            value.__init__ = _keep_fields  # type: ignore[misc]
        return value

    def __getitem__(self, key: object) -> Any:
        return self._part("[]", f"{self._name}[…]")

    def __setitem__(self, key: object, value: object) -> None:
        self._check()

    def __delitem__(self, key: object) -> None:
        self._check()

    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type, ...]:
        """A class may derive from a stand-in: it then derives from an empty class of that name."""
        return (make_base(self._name.rpartition(".")[2] or "Standin", self, bases),)

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
        self._check()
        return False

    def __repr__(self) -> str:
        return f"<{self._name}, which is not installed>"

    def __format__(self, form: str) -> str:
        return repr(self)

    def __fspath__(self) -> str:
        self._check()
        return f"{NOWHERE}/{self._name.replace('.', '/')}"

    def __hash__(self) -> int:
        return id(self)

    def _no_number(self, *_: object) -> NoReturn:
        raise NotInstalled(self._name, self._cause)

    def __len__(self) -> NoReturn:
        raise NotInstalledLength(self._name, self._cause)

    __int__ = __float__ = __index__ = __complex__ = __round__ = __trunc__ = __floor__ = __ceil__ = _no_number

    def _combine(self, _: object = None) -> Any:
        return self._part("()", self._name)

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _combine
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __matmul__ = __rmatmul__ = _combine
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __lshift__ = __rshift__ = _combine
    __rlshift__ = __rrshift__ = __divmod__ = __rdivmod__ = _combine
    __neg__ = __pos__ = __abs__ = __invert__ = __lt__ = __le__ = __gt__ = __ge__ = _combine
    __eq__ = __ne__ = _combine


class StandinFunction(Standin):
    """What a missing decorator makes of a function: the function, with whatever else it may have added."""

    def __init__(self, function: types.FunctionType, name: str, seal: Seal, cause: str) -> None:
        super().__init__(name, seal, cause)
        self.__wrapped__ = function

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return self.__wrapped__(*arguments, **keywords)

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else self.__wrapped__.__get__(instance, owner)

    def __getattr__(self, name: str) -> Any:
        if name == "__wrapped__":
            raise AttributeError(name)
        is_special = name.startswith("__") and name.endswith("__")
        if is_special or hasattr(self.__wrapped__, name):
            return getattr(self.__wrapped__, name)
        return super().__getattr__(name)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return repr(self.__wrapped__)


class StandinType(type):
    """The type of classes that derive from a stand-in: what they lack they may have inherited."""

    def __getattr__(cls, name: str) -> Any:
        return _find_inherited(cls, name)

    def __iter__(cls) -> Iterator[Any]:
        return iter(())

    def __contains__(cls, item: object) -> bool:
        return False


def _find_inherited(heir: Any, name: str) -> Any:
    """An attribute of a class, or of its instance, that its missing base may have."""
    if name.startswith("__") and name.endswith("__"):
        raise AttributeError(name)
    return getattr(getattr(heir, MARK), name)


def make_base(name: str, standin: Standin, bases: tuple[object, ...]) -> type:
    """An empty class in the place of a missing one, which agrees with the other bases of a class."""
    kinds = dict.fromkeys(type(each) for each in bases if isinstance(each, type))
    others = [kind for kind in kinds if kind is not type and not issubclass(kind, StandinType)]

    def take_keywords(cls: type, /, **keywords: object) -> None:
        super(made[0], cls).__init_subclass__()

    def make_instance(cls: Any, /, *values: object, **keywords: object) -> Any:
        make = super(made[0], cls).__new__
        return make(cls) if make is object.__new__ else make(cls, *values, **keywords)

    contents: dict[str, object] = {"__init__": _keep_fields, "__init_subclass__": take_keywords, MARK: standin}
    made: list[Any]
    if any(issubclass(kind, enum.EnumMeta) for kind in others):
        made = [type(name, (), contents)]  # the members decide what a class of that kind is
    elif Protocol in bases:
        made = [types.new_class(name, (Protocol,), {}, lambda space: space.update(contents))]
    else:
        contents |= {"__new__": make_instance, "__getattr__": _find_inherited}
        made = [_joined_metaclass(tuple(others))(name, (), contents)]
    kind: type = made[0]
    return kind


@cache
def _joined_metaclass(others: tuple[type, ...]) -> type:
    if any(issubclass(each, StandinType) for each in others):
        return others[0] if len(others) == 1 else type("StandinType", others, {})
    return type("StandinType", (StandinType, *others), {}) if others else StandinType


@contextlib.contextmanager
def joining_metaclasses() -> Iterator[None]:
    """In the block, a class that derives from a stand-in may have any metaclass, as it may over an ordinary base."""
    build = builtins.__build_class__

    def build_class(body: Any, name: str, /, *bases: Any, **keywords: Any) -> Any:
        metaclass = _choose_metaclass(keywords.get("metaclass", type), bases)
        return build(body, name, *bases, **{**keywords, "metaclass": metaclass} if metaclass else keywords)

    builtins.__build_class__ = build_class
    try:
        yield
    finally:
        builtins.__build_class__ = build


def _choose_metaclass(wanted: Any, bases: tuple[Any, ...]) -> type | None:
    """One that agrees with what is wanted and with all bases; None where Python's own choice does."""
    kinds = [wanted, *(type(base) for base in bases if isinstance(base, type))]
    is_above_standin = any(isinstance(each, Standin | StandinType) for each in bases)
    if not is_above_standin or Protocol in bases or not all(isinstance(kind, type) for kind in kinds):
        return None
    least = [each for each in dict.fromkeys(kinds) if each is not type and not _has_heir(each, kinds)]
    if not least or any(issubclass(kind, enum.EnumMeta) for kind in least):
        return None
    return _joined_metaclass(tuple(least))


def _has_heir(kind: type, kinds: list[Any]) -> bool:
    return any(other is not kind and issubclass(other, kind) for other in kinds)


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
    return MARK in getattr(module, "__dict__", {})


class StandinLoader(importlib.abc.Loader):
    def __init__(self, seal: Seal) -> None:
        self.seal = seal

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return make_module(spec.name, self.seal)

    def exec_module(self, module: types.ModuleType) -> None:
        """A stand-in has no code."""


def _is_decorated(value: object) -> bool:
    if isinstance(value, types.FunctionType | StandinFunction | type):
        return True
    if isinstance(value, Standin):
        return False
    return hasattr(value, "arg_names") or hasattr(value, "fn")  # a jit function, or what is put around one


def _keep_fields(self: Any, *values: object, **keywords: object) -> None:
    """The constructor of classes that derive from a stand-in: values become fields, by place or by name."""
    names = [name for kind in reversed(type(self).__mro__) for name in inspect.get_annotations(kind)]
    for name, value in (*zip(dict.fromkeys(names), values, strict=False), *keywords.items()):
        object.__setattr__(self, name, value)


def standin_spec(name: str, seal: Seal) -> importlib.machinery.ModuleSpec:
    """The import spec of a stand-in for the module `name`."""
    return importlib.machinery.ModuleSpec(name, StandinLoader(seal), is_package=True)


class StandinDistribution(importlib.metadata.Distribution):
    """What `importlib.metadata` tells of a package that is not installed: a name and a version."""

    def __init__(self, name: str) -> None:
        self._text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {NEWEST}\n"

    def read_text(self, filename: str) -> str | None:
        return self._text if filename == "METADATA" else None

    def locate_file(self, path: Any) -> Any:
        return Path(NOWHERE) / path
