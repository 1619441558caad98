"""The spec that makes the unit which a call of Triton needs: a kernel of its own, to stand beside the source.

In: a `Call`, its options, the units of the release. Out: TOML that `precast plan` reads, or why no spec can say it.
This file goes into a release's Python package, with the standard library alone.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from precast.launch.package.calls import DTYPES, Call, place_of
from precast.launch.package.specs import Unstated, is_filled_in, render_kernel, state_value
from precast.launch.package.variants import CPU_IGNORES, Unit
from precast.spec.names import kernel_fault

_SCALAR = re.compile(r"(i|u|fp|bf)\d")
_GRID_NAME = re.compile(r"[A-Za-z_]\w*")


def render_fragment(
    call: Call, options: dict[str, Any], units: Sequence[Unit], own: Sequence[Unit], kernels: Iterable[str]
) -> str:
    """The spec; `own` are the units that the release has of the function, `kernels` the names that are taken."""
    name = kernel_name(call.name, set(kernels))
    backends = _backends(call, units)
    types = {
        each.name: _type_of(each, call.values[each.name]) for each in call.function.params if not each.is_constexpr
    }
    constants, hints = _constants(call), find_hints(call, types)
    filled = {name: value for name, value in constants.items() if is_filled_in(value)}
    table = {
        "source": _source(call.function.fn),
        "grid": list(_grid(call, types, own)),
        "requires": list(_requires(call, types, own)),
        "only": [f"{each}:*" for each in backends],
        "configs": [filled] if filled else [],
        "hints": [hints] if hints else [],
        "args": types,
        "constants": {name: value for name, value in constants.items() if name not in filled},
        "options": _options(call, options, units, backends),
    }
    return render_kernel(name, {key: value for key, value in table.items() if value})


def kernel_name(function: str, taken: Collection[str]) -> str:
    """A kernel's name that is still free: letters first, single underscores."""
    name = re.sub("_+", "_", function).strip("_") or "kernel"
    name = name if name[0].isascii() and name[0].isalpha() else f"kernel_{name}"
    numbered = (name, *(f"{name}_{number}" for number in range(2, len(taken) + 3)))
    return next(each for each in numbered if each not in taken and not kernel_fault(each))


def _source(function: Any) -> str:
    """The function in its file, which the spec stands beside, or in its package; a factory by its own name."""
    name = function.__qualname__.partition(".<locals>")[0]
    if "." in function.__module__:
        return f"{function.__module__}:{name}"
    return f"{Path(function.__code__.co_filename).name}:{name}"


def _backends(call: Call, units: Sequence[Unit]) -> list[str]:
    """What the call runs on: the CPU, or the kinds of GPU that the release knows; empty where nothing says."""
    place = place_of(call.values.values())
    gpus = sorted({unit.backend for unit in units} - {"cpu"}) or ["cuda", "hip"]
    return {"cpu": ["cpu"], "gpu": gpus}.get(place, [])


def _grid(call: Call, types: dict[str, str], own: Sequence[Unit]) -> Sequence[str]:
    """The kernel's grid in the release where all its names are here, else none: each call gives its own."""
    known = next((unit.grid for unit in own), ())
    return known if all(_is_known(text, call, types) for text in known) else ()


def _requires(call: Call, types: dict[str, str], own: Sequence[Unit]) -> Sequence[str]:
    """What the kernel requires in the release of each launch, as far as all names are here."""
    known = dict.fromkeys(text for unit in own for text in unit.requires)
    return [text for text in known if _is_known(text, call, types)]


def _is_known(text: str, call: Call, types: dict[str, str]) -> bool:
    """Whether each name in an expression is an integer's."""
    integers = {name for name, kind in types.items() if kind[0] in "iu"} | {"min", "max", "cdiv"}
    integers |= {name for name, value in call.constants.items() if isinstance(value, int)}
    return all(name in integers for name in _GRID_NAME.findall(text))


def _constants(call: Call) -> dict[str, Any]:
    """Constexprs as TOML has them, but for one that is None as the source has it."""
    silent = {each.name for each in call.function.params if each.has_default and each.default is None}
    return {
        name: state_value(f"constexpr `{name}`", value)
        for name, value in call.constants.items()
        if value is not None or name not in silent
    }


def _options(call: Call, options: dict[str, Any], units: Sequence[Unit], backends: Collection[str]) -> dict[str, Any]:
    """Options as TOML has them, but for those that decide nothing where the call runs."""
    known = {name for unit in units if unit.backend in backends or not backends for name in unit.options}
    found = {}
    for name, value in options.items():
        if set(backends) == {"cpu"} and name in CPU_IGNORES:
            continue
        if name in call.values:
            raise Unstated(f"`{name}` is a constexpr of the kernel, so a spec cannot set the option")
        if known and name not in known:
            raise Unstated(f"{' and '.join(backends) or 'its'} targets have no option `{name}`")
        if type(value) not in (bool, int, float, str):
            raise Unstated(f"option `{name}` is a {type(value).__name__}, which is no value of a spec")
        found[name] = value
    return found


def _type_of(parameter: Any, value: Any) -> str:
    """The type that Triton gives an argument: as it is annotated, or as the value is."""
    annotated = str(getattr(parameter, "annotation_type", "") or "")
    if _SCALAR.match(annotated) and isinstance(value, (bool, int, float)):
        return annotated
    text = type_of(value)
    if not text:
        raise Unstated(f"argument `{parameter.name}` is a {type(value).__name__}, for which there is no type")
    return f"*k{text[1:]}" if parameter.is_const and text[0] == "*" else text


def find_hints(call: Call, types: dict[str, str]) -> list[str]:
    """What Triton's JIT would specialise the call's arguments to, as a spec writes it: `x%16`, `n==1`."""
    return [
        hint
        for each in call.function.params
        if not each.is_constexpr and (hint := _hint_of(each, types[each.name], call.values[each.name]))
    ]


def _hint_of(parameter: Any, kind: str, value: Any) -> str:
    """Truth values, numbers with a point, descriptors and tuples have no hint, and what is annotated is never one."""
    if parameter.do_not_specialize or kind in ("i1", "u1") or kind[0] not in "iu*":
        return ""
    number = _address_of(value) if kind[0] == "*" else int(value)
    if number == 1 and kind[0] != "*":
        return "" if getattr(parameter, "annotation_type", "") else f"{parameter.name}==1"
    if number is None or number % 16 or parameter.do_not_specialize_on_alignment:
        return ""
    return f"{parameter.name}%16"


def _address_of(value: Any) -> int | None:
    if hasattr(value, "data_ptr"):
        return int(value.data_ptr())
    for protocol in ("__cuda_array_interface__", "__array_interface__"):
        if hasattr(value, protocol):
            return int(getattr(value, protocol)["data"][0])
    return None


def type_of(value: Any) -> str:
    """A value's type as a spec writes it; empty where there is none."""
    if value is None:
        return "none"
    if isinstance(value, (tuple, list)):
        items = [type_of(each) for each in value]
        return f"({', '.join(items)})" if all(items) else ""
    if hasattr(value, "block_shape"):
        return f"tensordesc<{_element(value.base)}[{','.join(map(str, value.block_shape))}]>"
    if hasattr(value, "dtype") and not (
        hasattr(value, "item") and type(value).__module__ == "numpy" and not _is_array(value)
    ):
        element = _element(value)
        return f"*{element}" if element else ""
    return _scalar_type(value.item() if hasattr(value, "dtype") else value)


def _is_array(value: Any) -> bool:
    return hasattr(type(value), "__len__")


def _element(value: Any) -> str:
    word = str(value.dtype).rpartition(".")[2]
    return DTYPES.get(word, word if word in DTYPES.values() else "")


def _scalar_type(value: Any) -> str:
    if isinstance(value, bool):
        return "i1"
    if isinstance(value, int):
        return "i32" if -(2**31) <= value < 2**31 else "i64" if value < 2**63 else "u64"
    return "fp32" if isinstance(value, float) else ""
