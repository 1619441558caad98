"""Triton's stage functions, run on proxies so that every pass they ask for is seen before it runs.

In: a backend and its options. Out: a backend of the same behaviour whose pass managers only collect steps; when a
stage function calls `run`, a `Conductor` decides what really happens. Nothing of Triton is patched: each method is
rebuilt over a copy of its module's globals in which `ir`, `passes`, `llvm`, `nvidia`/`amd` and `instrument` are
proxies of this one compile, so compiles on other threads see nothing.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any, Protocol

from triton._C import libtriton

from precast.passes.pipeline import Argument, Step


class Conductor(Protocol):
    """What a pass manager's `run` and the translation to LLVM IR lead to."""

    def run(self, module: Any, name: str, steps: tuple[Step, ...]) -> None:
        """Take the steps that a stage function collected for the run `name` on `module`."""

    def leave_mlir(self) -> None:
        """The stage function is about to call something of `llvm`: its passes are all behind it."""


class ModuleHandle:
    """A stable name for a module: a stage function keeps this while Python passes exchange the module behind it."""

    def __init__(self, module: Any) -> None:
        self.module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(self.module, name)


class DeferredPassManager:
    """Collects the steps that a stage function adds and hands them to the conductor on `run`."""

    def __init__(self, conductor: Conductor, context: Any) -> None:
        self._conductor = conductor
        self._context = context
        self.steps: list[Step] = []

    def enable_debug(self) -> bool:
        """Answered at once, by a native manager: stage functions pass the answer on as an argument of passes."""
        return bool(libtriton.ir.pass_manager(self._context).enable_debug())

    def run(self, module: Any, name: str) -> None:
        self._conductor.run(module, name, tuple(self.steps))


class _Proxy:
    """Stands for a namespace of libtriton: `overrides` answer first, everything else is the real one's."""

    def __init__(self, real: Any, overrides: dict[str, Any]) -> None:
        self._real = real
        self._overrides = overrides

    def __getattr__(self, name: str) -> Any:
        if name in self._overrides:
            return self._overrides[name]
        return getattr(self._real, name)


class _PassesProxy:
    """Stands for a `passes` namespace: `passes.ttir.add_loop_unroll(pm, *args)` adds a step to `pm`."""

    def __init__(self, real: Any, prefix: str) -> None:
        self._real = real
        self._prefix = prefix

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._real, name)
        if isinstance(real, types.ModuleType):
            return _PassesProxy(real, f"{self._prefix}{name}.")
        op = self._prefix + name.removeprefix("add_")

        def add(manager: DeferredPassManager, *args: Any) -> None:
            manager.steps.append(Step(op, tuple(_record_argument(argument) for argument in args)))

        return add


class _LlvmProxy:
    def __init__(self, conductor: Conductor) -> None:
        self._conductor = conductor

    def __getattr__(self, name: str) -> Any:
        self._conductor.leave_mlir()
        if name == "to_module":
            return lambda module, context: libtriton.llvm.to_module(unwrap(module), context)
        return getattr(libtriton.llvm, name)


class OptionNumber(int):
    """A whole-number option that remembers its name, so that a recorded argument can be substituted by name."""

    option: str


class OptionText(str):
    option: str


class NamedOptions:
    """Compile options whose numbers and texts remember where they came from; for listing, not for compiling."""

    def __init__(self, options: Any) -> None:
        self._options = options

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._options, name)
        if isinstance(value, bool) or not isinstance(value, int | str):
            return value
        named: OptionNumber | OptionText = OptionNumber(value) if isinstance(value, int) else OptionText(value)
        named.option = name
        return named


def unwrap(module: Any) -> Any:
    """The module itself, whether or not it comes in a handle."""
    return module.module if isinstance(module, ModuleHandle) else module


def _record_argument(value: Any) -> Argument:
    if isinstance(value, OptionNumber | OptionText):
        return f"${value.option}"
    assert isinstance(value, bool | int | str), f"a pass takes an argument of type {type(value).__name__}"
    return value


def record_backend(backend: Any, conductor: Conductor) -> Any:
    """A backend for the same target as `backend`, with every method rebuilt over proxies that obey `conductor`."""
    original = type(backend)
    names = _proxied_globals(original, conductor)
    members = {name: _rebuild(member, names) for name, member in vars(original).items() if _is_function(member)}
    rebuilt = type(original.__name__, (original,), members)
    return rebuilt(backend.target)


def _proxied_globals(backend_class: type, conductor: Conductor) -> dict[str, Any]:
    names = dict(vars(sys.modules[backend_class.__module__]))
    names["ir"] = _Proxy(libtriton.ir, {"pass_manager": lambda context: DeferredPassManager(conductor, context)})
    names["passes"] = _PassesProxy(libtriton.passes, "")
    names["llvm"] = _LlvmProxy(conductor)
    names["instrument"] = _record_instrument(names["instrument"])
    for vendor in ("nvidia", "amd"):
        if vendor in names:
            real = names[vendor]
            names[vendor] = _Proxy(real, {"passes": _PassesProxy(real.passes, f"{vendor}.")})
    return names


def _record_instrument(real: Callable[..., Any]) -> Callable[..., Any]:
    """A point where Triton's profiler may add passes becomes a step, so that it keeps its place."""

    def instrument(target: Any, *, point: str, context: Any = None) -> Any:
        if isinstance(target, DeferredPassManager):
            target.steps.append(Step("instrument", (point,)))
            return False
        return real(target, point=point, context=context)

    return instrument


def _is_function(member: object) -> bool:
    return isinstance(member, types.FunctionType | staticmethod)


def _rebuild(member: Any, names: dict[str, Any]) -> Any:
    if isinstance(member, staticmethod):
        return staticmethod(_rebuild(member.__func__, names))
    function = types.FunctionType(member.__code__, names, member.__name__, member.__defaults__, member.__closure__)
    function.__kwdefaults__ = member.__kwdefaults__
    return function
