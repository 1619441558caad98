"""One `kernel[grid](…)` of Triton: its values by name, its options, its grid.

In: a jit function with the arguments of a call. Out: a `Call`. This file goes into a release's Python package, with
the standard library alone.
"""

from __future__ import annotations

import enum
import inspect
import operator
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from precast.spec.spelling import Spelled, format_constant, items_of, spell

DTYPES = {
    "float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64", "bool": "i1", "int1": "i1",
    "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8", "uint16": "u16", "uint32": "u32",
    "uint64": "u64", "float8_e4m3fn": "fp8e4nv", "float8_e5m2": "fp8e5", "float8_e4m3fnuz": "fp8e4b8",
    "float8_e5m2fnuz": "fp8e5b16", "float8e4nv": "fp8e4nv", "float8e5": "fp8e5", "float8e4b8": "fp8e4b8",
    "float8e5b16": "fp8e5b16", "float8e4b15": "fp8e4b15",
}  # fmt: skip
LONG = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64", "i1": "int1", "i8": "int8",
         "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8", "u16": "uint16", "u32": "uint32",
         "u64": "uint64", "fp8e4nv": "float8e4nv", "fp8e5": "float8e5", "fp8e4b8": "float8e4b8",
         "fp8e5b16": "float8e5b16", "fp8e4b15": "float8e4b15"}  # fmt: skip
_HOST = (1, 3, 11)  # DLPack's devices whose memory is the host's: CPU, and pinned for CUDA and ROCm


class Call:
    """A call with its values bound to parameters; `TypeError` where they do not fit the function's signature."""

    def __init__(self, function: Any, arguments: tuple[Any, ...], keywords: Mapping[str, Any], grid: Any) -> None:
        self.function = function
        self.name: str = function.fn.__name__
        self.arguments = arguments
        self.keywords = keywords
        self.grid = grid
        self.values = bind(function, arguments, keywords)
        constants = {each.name: self.values[each.name] for each in function.params if each.is_constexpr}
        self.constants = {name: plain(value) for name, value in constants.items()}
        self.numbers = {name: found for name, value in constants.items() if (found := number_of(value)) is not None}
        self._parameters = frozenset(self.values)

    def options(self, known: frozenset[str]) -> dict[str, Any]:
        """What the call says to the compiler; of the parameters, those that Triton takes for an option as well."""
        said = {
            name: value
            for name, value in self.keywords.items()
            if value is not None and (name not in self._parameters or name in known)
        }
        return {"debug": True, **said} if getattr(self.function, "debug", None) else said

    def run_time(self) -> list[Any]:
        """The values that a kernel takes when it is launched."""
        return [value for name, value in self.values.items() if name not in self.constants]

    def sizes(self) -> tuple[int, ...]:
        """The grid's numbers; `TypeError` for what is none."""
        grid = self.grid(self.values) if callable(self.grid) else self.grid
        try:
            sizes = tuple(operator.index(each) for each in grid)
        except TypeError:
            sizes = ()
        if not 1 <= len(sizes) <= 3:
            raise TypeError(f"the grid of `{self.name}` is one to three integers, not {grid!r}")
        return sizes


def bind(function: Any, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Values by parameter name, defaults among them."""
    names: list[str] = function.arg_names
    star = star_of(function.fn)
    if star and star[0] < len(arguments):
        arguments = (*arguments[: star[0]], tuple(arguments[star[0] :]))
    if len(arguments) > len(names):
        raise TypeError(f"`{function.fn.__name__}` takes {len(names)} arguments, not {len(arguments)}")
    values = dict(zip(names, arguments, strict=False))
    twice = [name for name in values if name in keywords]
    if twice:
        raise TypeError(f"`{function.fn.__name__}` gets `{twice[0]}` twice")
    for parameter in function.params[len(arguments) :]:
        if parameter.name in keywords:
            values[parameter.name] = keywords[parameter.name]
        elif star and parameter.name == star[1]:
            values[parameter.name] = ()
        elif parameter.has_default:
            values[parameter.name] = parameter.default
    missing = [name for name in names if name not in values]
    if missing:
        raise TypeError(f"`{function.fn.__name__}` misses its arguments {', '.join(missing)}")
    return values


def star_of(function: Any) -> tuple[int, str] | None:
    """Number and name of the parameter that takes all further arguments, as a tuple; None where there is none."""
    code = function.__code__
    if not code.co_flags & inspect.CO_VARARGS:
        return None
    return code.co_argcount, code.co_varnames[code.co_argcount + code.co_kwonlyargcount]


def plain(value: Any) -> Any:
    """A constexpr's value as a release knows it; an element type as `tl.` and its short name, however it is written."""
    value = unwrapped(value)
    if isinstance(value, enum.Enum):
        return Spelled(f"{_module_of(type(value))}:{type(value).__qualname__}.{value.name}")
    if hasattr(value, "fn") and hasattr(value, "src"):  # a jit function
        return Spelled(f"{value.fn.__module__}:{value.fn.__qualname__}")
    if type(value) is tuple:
        return Spelled(f"({','.join(format_constant(_spell_item(item)) for item in value)})")
    if isinstance(value, int | float) and not isinstance(value, bool):
        return spell(value)
    if type(value).__module__ == "numpy" and not hasattr(type(value), "__len__") and hasattr(value, "item"):
        return value.item()
    if type(value).__name__ == "dtype" or (isinstance(value, str) and value.startswith("tl.")):
        word = str(value).rpartition(".")[2]
        return f"tl.{DTYPES.get(word, word)}"
    return value


def unwrapped(value: Any) -> Any:
    """A constexpr's value without Triton's wrapper."""
    return value.value if type(value).__name__ == "constexpr" else value


def number_of(value: Any) -> Any:
    """What a member of an enumeration of numbers or texts is besides, or a tuple that has one; else None."""
    value = unwrapped(value)
    if type(value) is tuple:
        items = [number_of(item) for item in value]
        known = tuple(item if found is None else found for item, found in zip(value, items, strict=True))
        return plain(known) if any(found is not None for found in items) else None
    return plain(value.value) if isinstance(value, enum.Enum) and isinstance(value, int | str) else None


def number_of_constant(value: Any) -> Any:
    """The same of a unit's constant, as far as the program has the module that it names."""
    if not isinstance(value, Spelled):
        return None
    if value.is_tuple:
        items = [number_of_constant(item) for item in items_of(value)]
        known = (item if found is None else found for item, found in zip(items_of(value), items, strict=True))
        return spell(tuple(known)) if any(found is not None for found in items) else None
    module, _, name = value.text.partition(":")
    try:
        return number_of(operator.attrgetter(name)(_find_module(module))) if name else None
    except AttributeError:
        return None


def _find_module(name: str) -> Any:
    """A module that is imported, under the name that `_module_of` gives it; None where it is not."""
    main = sys.modules.get("__main__")
    is_main = name not in sys.modules and Path(getattr(main, "__file__", None) or "").stem == name
    return main if is_main else sys.modules.get(name)


def _module_of(kind: type) -> str:
    """Where a class is defined; of a program's own file the name that it has when it is imported."""
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    return Path(file).stem if kind.__module__ == "__main__" and file else kind.__module__


def _spell_item(value: Any) -> Any:
    """An item of a tuple; an element type by Triton's own name, as in a unit's text."""
    word = plain(value)
    if isinstance(word, str) and word.startswith("tl."):
        return f"tl.{LONG.get(word[3:], word[3:])}"
    return word if word is None or isinstance(word, str | int | float | Spelled) else repr(word)


def place_of(values: Any) -> str:
    """Where the first tensor of a call lies, `cpu` or `gpu`; empty where there is none to ask."""
    for value in values:
        if isinstance(value, (tuple, list)):
            found = place_of(value)
        elif hasattr(value, "block_shape"):
            found = place_of((value.base,))
        else:
            found = _device_of(value)
        if found:
            return found
    return ""


def _device_of(value: Any) -> str:
    if hasattr(value, "__dlpack_device__"):
        return "cpu" if int(value.__dlpack_device__()[0]) in _HOST else "gpu"
    if hasattr(value, "__cuda_array_interface__"):
        return "gpu"
    return "cpu" if hasattr(value, "__array_interface__") else ""
