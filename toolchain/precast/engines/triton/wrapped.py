"""The jit functions inside a value: a decorator, a tuner, a library's own entry object, or a closure around them.

In: any value of a kernel's module. Out: each jit function that it is put around, with the autotuner nearest to it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import FunctionType, MemberDescriptorType, ModuleType
from typing import Any

from precast.engines.triton import v3_9

DEPTH = 5  # of wrappers that anyone would write


@dataclass(frozen=True)
class Wrapped:
    """A jit function, and `@triton.autotune` around it or None."""

    function: Any
    tuner: Any


def find_wrapped(value: object, tuner: Any = None, depth: int = DEPTH) -> tuple[Wrapped, ...]:
    """The jit functions that `value` is or is put around, each once.

    What is put around one holds it under whatever name: `fn` and `__wrapped__` first, else among all that it holds.
    """
    if v3_9.is_jit_function(value):
        return (Wrapped(value, tuner),)
    if depth == 0 or isinstance(value, ModuleType | type):
        return ()
    inner = value if v3_9.is_tuner(value) else tuner
    if isinstance(value, staticmethod | classmethod):
        return find_wrapped(value.__func__, inner, depth)
    for name in ("fn", "__wrapped__"):
        found = find_wrapped(_contents(value).get(name), inner, depth - 1)
        if found:
            return found
    every = (found for each in _held_by(value) for found in find_wrapped(each, inner, depth - 1))
    return tuple({id(each.function): each for each in every}.values())


def _contents(value: object) -> Mapping[str, Any]:
    """The attributes of an object, those that its class gives slots included."""
    kinds = (each for each in type(value).__mro__ if "__slots__" in vars(each))
    every = (pair for kind in kinds for pair in vars(kind).items())
    slots = [name for name, each in every if isinstance(each, MemberDescriptorType) and hasattr(value, name)]
    return {**{name: getattr(value, name) for name in slots}, **getattr(value, "__dict__", {})}


def _held_by(value: object) -> Iterable[object]:
    """What an object that can be launched holds, or a function through the names of the functions around it."""
    if isinstance(value, FunctionType):
        return [cell.cell_contents for cell in value.__closure__ or () if _is_filled(cell)]
    if isinstance(value, functools.partial):
        return [value.func]
    return list(_contents(value).values()) if callable(value) or hasattr(type(value), "__getitem__") else []


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False
