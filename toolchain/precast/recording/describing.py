"""What a compiled kernel of Triton's is a variant of: from the JIT's own description of what it specialised.

In: a compiled kernel, its function, the options that the call named. Out: a `Launch`, or `Unstated` with why no spec
can say it. Runs in the program's own process, whatever Triton of 3.6 to 3.9 that has.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Mapping
from typing import Any

from precast.launch.package.calls import plain
from precast.launch.package.specs import Unstated, state_value
from precast.recording.notes import Function, Launch, Problem

_SPELLINGS = {"u1": "i1"}  # of the JIT's types, where a spec has another word
_DESCRIPTION = frozenset({"target", "arch", "warp_size", "backend_name", "name", "hash", "shared"})


def describe_launch(kernel: Any, function: Any, named: Mapping[str, Any]) -> Launch:
    """The variant; `named` is what the call named: options, and arguments that are no matter here."""
    source, about = kernel.src, _described(kernel.metadata)
    types, constants, hints = {}, {}, []
    for place, parameter in enumerate(function.params):
        name, path = parameter.name, (place,)
        if parameter.is_constexpr:
            constants[name] = state_value(f"constexpr `{name}`", plain(source.constants.get(path)))
            continue
        signature = source.signature[name]
        types[name] = _type_of(name, signature, path, source.constants)
        if signature == "constexpr" and types[name] != "none":
            hints.append(f"{name}==1")
        if ["tt.divisibility", 16] in _attributes(source, path):
            hints.append(f"{name}%16")
    return Launch(
        function=describe_function(function),
        types=types,
        constants=constants,
        options=_state_options(named, types, constants, about),
        resolved={name: value for name, value in about.items() if name not in named},
        hints=tuple(hints),
        range32=tuple(
            name
            for place, name in enumerate(source.signature)
            if any(each[0] == "tt.pointer_range" for each in _attributes(source, (place,)))
        ),
        backend=str(kernel.metadata.target.backend),
    )


def find_lost_hints(kernel: Any) -> list[str]:
    """The arguments whose parts the JIT specialised: a spec has no hints within tuples."""
    names = list(kernel.src.signature)
    return list(dict.fromkeys(names[path[0]] for path, found in kernel.src.attrs.items() if len(path) > 1 and found))


def named_by(hint: str) -> str:
    """The argument that a hint is of."""
    return hint.partition("%")[0].partition("==")[0]


def _attributes(source: Any, path: tuple[int, ...]) -> list[list[Any]]:
    return [list(each) for each in source.attrs.get(path, ())]


def _type_of(name: str, signature: Any, path: tuple[int, ...], constants: Mapping[Any, Any]) -> str:
    """A type's text. What the JIT made a constant of is the 1 that it specialises, or None."""
    if isinstance(signature, (tuple, list)):
        parts = [_type_of(name, each, (*path, place), constants) for place, each in enumerate(signature)]
        return f"({', '.join(parts)})"
    if signature != "constexpr":
        return _SPELLINGS.get(signature, str(signature))
    value = plain(constants.get(path))
    if value is None:
        return "none"
    if type(value) is int and value == 1:
        return "i32"
    raise Unstated(f"argument `{name}` is {_words(value)}, and the function does not declare it a constexpr")


def _words(value: Any) -> str:
    word = str(value)
    return f"`{word}`" if len(word) < 60 else f"a {type(value).__name__}"


def _described(about: Any) -> dict[str, Any]:
    """The options that a kernel was compiled with, as far as they are plain."""
    every = about._asdict() if hasattr(about, "_asdict") else vars(about)
    return {
        name: value
        for name, value in every.items()
        if name not in _DESCRIPTION and type(value) in (bool, int, float, str)
    }


def _state_options(
    named: Mapping[str, Any], types: Collection[str], constants: Collection[str], about: Mapping[str, Any]
) -> dict[str, Any]:
    """Options as TOML has them; `debug` counts however it was asked for."""
    said: dict[str, Any] = {"debug": True} if about.get("debug") else {}
    for name, value in named.items():
        if name in types or (name in constants and name not in about):
            continue
        if name in constants:
            raise Unstated(f"`{name}` is a constexpr of the kernel, so a spec cannot set the option")
        if type(value) not in (bool, int, float, str):
            raise Unstated(f"option `{name}` is a {type(value).__name__}, which is no value of a spec")
        said[name] = value
    return said


def describe_function(function: Any) -> Function:
    """Where a function is, by the name that its module has it by."""
    own = function.fn
    is_gluon = bool(function.is_gluon()) if hasattr(function, "is_gluon") else False
    file = own.__code__.co_filename
    file = file if file.startswith("<") else os.path.abspath(file)
    return Function(own.__module__, file, _name_of(function), own.__qualname__, is_gluon)


def _name_of(function: Any) -> str:
    """The name that leads from the module to the function, through what wraps it; empty where there is none."""
    qualified: str = function.fn.__qualname__
    module = sys.modules.get(function.fn.__module__)
    found = module
    for part in qualified.split("."):
        found = getattr(found, part, None)
    if found is not None and (leads_to(found, function) or not hasattr(found, "cache_key")):
        return qualified
    names = (name for name, value in list(vars(module).items()) if leads_to(value, function)) if module else iter(())
    return next(names, "")


def leads_to(value: Any, function: Any) -> bool:
    """Whether a value is the function, or a wrapper of it such as a tuner, under whatever name that holds it."""
    for _ in range(16):
        held = getattr(value, "__dict__", {})
        if value is function or any(each is function for each in list(held.values())):
            return True
        value = held.get("fn")
    return False


def find_integers(values: Mapping[str, Any]) -> dict[str, int]:
    """The values that a grid may be computed from: integers, of constexprs too, whose names an expression may have."""
    return {name: value for name, value in values.items() if type(value) is int and name.isascii()}


def describe_arguments(launch: Launch, function: Any, values: Mapping[str, Any]) -> Problem:
    """What a launch was given. Integers that its tuner does not ask for tell nothing apart, nor do those that the
    function's author says are not to be specialised."""
    numbers: dict[str, int | float | bool] = {}
    shapes: dict[str, tuple[int, ...]] = {}
    unknown = []
    for parameter in function.params:
        name = parameter.name
        if parameter.is_constexpr or launch.types[name] == "none":
            continue
        value = values[name]
        shape = () if type(value) in (bool, int, float) else find_shape(value)
        if type(value) in (bool, int, float):
            numbers[name] = value
        elif shape:
            shapes[name] = shape
        else:
            unknown.append(name)
    asked = launch.tuned.sizes if launch.tuned else _specialised(function)
    telling = tuple(name for name in find_integers(numbers) if name in asked)
    return Problem(launch, numbers, shapes, telling, tuple(unknown))


def _specialised(function: Any) -> set[str]:
    return {each.name for each in function.params if not each.do_not_specialize}


def find_shape(value: Any) -> tuple[int, ...]:
    """Of a tensor how many elements there are from its first to its last, of a descriptor the shape of its tensor;
    nothing where that cannot be told."""
    shape = getattr(value, "shape", None)
    if shape is None:
        return ()
    if hasattr(value, "block_shape"):
        return tuple(map(int, shape))
    reach = 1
    for size, stride in zip(shape, _strides(value), strict=False):
        reach += (int(size) - 1) * abs(stride)
    return (reach if all(shape) else 0,)


def _strides(value: Any) -> tuple[int, ...]:
    """Strides in elements; those of rows that follow one another where a tensor does not say them."""
    if callable(getattr(value, "stride", None)):
        return tuple(map(int, value.stride()))
    if isinstance(getattr(value, "strides", None), tuple) and hasattr(value, "itemsize"):
        return tuple(each // value.itemsize for each in value.strides)
    strides = [1]
    for size in reversed(value.shape[1:]):
        strides.insert(0, strides[0] * int(size))
    return tuple(strides)
