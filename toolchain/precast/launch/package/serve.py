"""Existing `kernel[grid](…)` calls of Triton, run from a release: no compiler at run time.

In: an open release, and the digest of a jit function's source. Out: a `Server`, which stands in for
`triton.runtime.jit.JITFunction.run` until it is stopped. A call is the release's when the function's source has the
digest that the release was built from, its constexprs have a variant's values, and its arguments fit. This file goes
into a release's Python package as it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

_DTYPES = {
    "float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64", "bool": "i1", "int1": "i1",
    "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8", "uint16": "u16", "uint32": "u32",
    "uint64": "u64", "float8_e4m3fn": "fp8e4nv", "float8_e5m2": "fp8e5", "float8_e4m3fnuz": "fp8e4b8",
    "float8_e5m2fnuz": "fp8e5b16", "float8e4nv": "fp8e4nv", "float8e5": "fp8e5", "float8e4b8": "fp8e4b8",
    "float8e5b16": "fp8e5b16", "float8e4b15": "fp8e4b15",
}  # fmt: skip
# What Triton takes where a call does not say.
_DEFAULT_OPTIONS = {"num_warps": 4, "num_ctas": 1}


class MissingVariant(RuntimeError):
    """A call that the release has no unit for; the message ends with the spec that would make one."""


class Server:
    """Serves Triton's calls from `release` until `stop`, or the end of a `with` block."""

    def __init__(
        self, release: Any, digest_source: Callable[[Any], str], fallback: str, refusal: type[Exception]
    ) -> None:
        if fallback not in ("error", "jit"):
            raise ValueError(f'fallback is "error" or "jit", not {fallback!r}')
        self._release = release
        self._digest_source = digest_source
        self._fallback = fallback
        self._refusal = refusal
        self._kernels = _variants_by_source(release)
        self._known: dict[int, tuple[Any, list[_Variants]]] = {}
        self._original: Callable[..., Any] | None = None

    def start(self) -> Server:
        """Takes the place of Triton's own way to launch."""
        from triton.runtime.jit import JITFunction

        server, original = self, JITFunction.run

        def run(function: Any, *arguments: Any, grid: Any, warmup: bool, **keywords: Any) -> Any:
            if not warmup and server.launch(function, arguments, grid, keywords):
                return None
            return original(function, *arguments, grid=grid, warmup=warmup, **keywords)

        self._original, JITFunction.run = original, run
        return self

    def stop(self) -> None:
        """Gives Triton its own way back."""
        from triton.runtime.jit import JITFunction

        if self._original is not None:
            JITFunction.run, self._original = self._original, None

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def launch(self, function: Any, arguments: tuple[Any, ...], grid: Any, keywords: Mapping[str, Any]) -> bool:
        """Launches from the release; False where Triton shall compile, `MissingVariant` where nobody shall."""
        values = _bind(function, arguments, keywords)
        reason = "its source is not in the release, or has changed"
        for variants in self._variants_of(function):
            plan = variants.find(function, values, keywords)
            if plan is None:
                reason = "no variant has these constexprs and options"
                continue
            size = grid(values) if callable(grid) else grid
            try:
                variants.kernel[tuple(size)](*plan.run_time(values), **plan.axes)
                return True
            except (self._refusal, TypeError, ValueError, OverflowError) as error:
                if getattr(error, "status", 6) not in (6, 7):  # no unit, or an argument that does not fit
                    raise
                reason = str(error)
        if self._fallback == "jit":
            return False
        name = function.fn.__name__
        raise MissingVariant(
            f"the release cannot run `{name}`: {reason}; this would make it:\n{_fragment(function, values)}"
        )

    def _variants_of(self, function: Any) -> list[_Variants]:
        entry = self._known.get(id(function))
        if entry is None or entry[0] is not function:
            variants = self._kernels.get(self._digest_source(function), [])
            entry = self._known[id(function)] = (function, variants)
        return entry[1]


class _Plan:
    """How one set of constexprs is launched: the axes to name, and which parameters are passed."""

    def __init__(self, axes: dict[str, Any], passed: tuple[str, ...]) -> None:
        self.axes = axes
        self._passed = passed

    def run_time(self, values: Mapping[str, Any]) -> list[Any]:
        return [values[name] for name in self._passed]


class _Variants:
    """One kernel of the release: the constexprs and options of each of its units."""

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel
        self.units: list[tuple[dict[str, Any], dict[str, Any]]] = []
        self._plans: dict[tuple[Any, ...], _Plan | None] = {}

    def find(self, function: Any, values: Mapping[str, Any], keywords: Mapping[str, Any]) -> _Plan | None:
        """The plan for a call; None when no unit has its constexprs and options."""
        fixed = {name: _plain(values[name]) for name in self.units[0][0] if name in values}
        options = {name: keywords[name] for name in keywords if name not in values}
        key = (*fixed.items(), *options.items())
        if key not in self._plans:
            self._plans[key] = self._make_plan(function, fixed, options)
        return self._plans[key]

    def _make_plan(self, function: Any, fixed: dict[str, Any], options: dict[str, Any]) -> _Plan | None:
        if not any(_agrees(unit, fixed, options) for unit in self.units):
            return None
        axes = {name: fixed[name] for name in self.kernel.axes if name in fixed}
        axes |= {name: options[name] for name in self.kernel.axes if name in options}
        passed = tuple(name for name in function.arg_names if name not in self.units[0][0])
        return _Plan(axes, passed)


def _agrees(unit: tuple[dict[str, Any], dict[str, Any]], fixed: dict[str, Any], options: dict[str, Any]) -> bool:
    constants, chosen = unit
    effective = {**_DEFAULT_OPTIONS, **chosen}
    same = all(type(constants[name]) is type(value) and constants[name] == value for name, value in fixed.items())
    return (
        same
        and len(fixed) == len(constants)
        and all(effective.get(name, value) == value for name, value in options.items())
    )


def _variants_by_source(release: Any) -> dict[str, list[_Variants]]:
    kernels: dict[str, _Variants] = {}
    found: dict[str, list[_Variants]] = {}
    for unit in release.query():
        about = json.loads(unit["description"])
        if not about["source"]:
            continue
        name = unit["kernel"]
        if name not in kernels:
            kernels[name] = _Variants(release.kernel(name))
            found.setdefault(about["source"], []).append(kernels[name])
        constants = {each: _plain(value) for each, value in about["constants"].items()}
        kernels[name].units.append((constants, about["options"]))
    return found


def _bind(function: Any, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Values by parameter name, defaults among them."""
    names = function.arg_names
    if len(arguments) > len(names):
        raise TypeError(f"`{function.fn.__name__}` takes {len(names)} arguments, not {len(arguments)}")
    values = dict(zip(names[: len(arguments)], arguments, strict=True))
    for parameter in function.params:
        if parameter.name in keywords:
            values[parameter.name] = keywords[parameter.name]
        elif parameter.name not in values and parameter.has_default:
            values[parameter.name] = parameter.default
    missing = [name for name in names if name not in values]
    if missing:
        raise TypeError(f"`{function.fn.__name__}` misses its arguments {', '.join(missing)}")
    return {name: values[name] for name in names}


def _plain(value: Any) -> Any:
    """A constexpr's value; an element type as `tl.` and its short name, however it is written."""
    if type(value).__name__ == "constexpr":
        value = value.value
    text = str(value)
    if type(value).__name__ == "dtype" or text.startswith(("torch.", "tl.")):
        word = text.rpartition(".")[2]
        return f"tl.{_DTYPES.get(word, word)}"
    return value


def _fragment(function: Any, values: Mapping[str, Any]) -> str:
    """The spec of the variant that a call needs."""
    name = function.fn.__name__
    fixed = {each.name for each in function.params if each.is_constexpr}
    lines = [f"[kernel.{name}]", f'source = "{function.fn.__module__}:{name}"', "", f"[kernel.{name}.args]"]
    lines += [f'{each} = "{_type_of(value)}"' for each, value in values.items() if each not in fixed]
    constants = {each: _plain(value) for each, value in values.items() if each in fixed}
    if constants:
        lines += ["", f"[kernel.{name}.constants]"]
        lines += [f"{each} = {json.dumps(value)}" for each, value in constants.items() if value is not None]
    return "\n".join(lines)


def _type_of(value: Any) -> str:
    dtype = getattr(value, "dtype", None)
    if dtype is not None:
        word = str(dtype).rpartition(".")[2]
        return f"*{_DTYPES.get(word, word)}"
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "i1"
    if isinstance(value, float):
        return "fp32"
    if isinstance(value, (tuple, list)):
        return f"({', '.join(_type_of(each) for each in value)})"
    if isinstance(value, int):
        return "i32" if -(2**31) <= value < 2**31 else "i64" if value < 2**63 else "u64"
    return "*i8"
