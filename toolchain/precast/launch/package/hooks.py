"""A launch for Triton, with the launch hooks that profilers set; and what a served call returns.

In: a kernel of the release, what Triton calls it with. Out: the launch, told to the hooks as Triton tells its own. This
file goes into a release's Python package.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

from precast.launch.package.calls import Call, place_of
from precast.launch.package.variants import Unit, Variants


class Told(NamedTuple):
    """What hooks are told of a jit function."""

    name: str
    launch_metadata: Any

    @classmethod
    def of(cls, function: Any) -> Told:
        return cls(function.__name__, function.launch_metadata)


class Launched:
    """What a served call returns: `launched[grid](...)` launches again, as Triton's compiled kernels do.

    It takes values by place, of the constexprs too or without them all; what the call had for those stays.
    """

    def __init__(self, variants: Variants, axes: Mapping[str, Any], call: Call) -> None:
        self._variants = variants
        self._axes = axes
        self._told = Told.of(call.function)  # the function itself may be let go
        self._constants = {name: call.values[name] for name in call.constants}
        self._is_constant = [name in call.constants for name in call.function.arg_names]
        self._names = [name for name in call.function.arg_names if name not in call.constants]
        self.name = call.name

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        def launch(*arguments: Any, stream: Any = None) -> None:
            if len(arguments) == len(self._is_constant):
                arguments = tuple(itertools.compress(arguments, (not each for each in self._is_constant)))
            values = dict(zip(self._names, arguments, strict=False)) | self._constants
            launch_hooked(self._variants, self._axes, grid, arguments, stream, self._told, values)

        return launch

    def __repr__(self) -> str:
        return f"<`{self.name}` of a release>"


def launch_hooked(
    variants: Variants,
    axes: Mapping[str, Any],
    grid: Any,
    arguments: Sequence[Any],
    stream: Any,
    told: Told,
    values: Mapping[str, Any],
) -> None:
    """Launches; `values` are the function's, by name. Hooks run around a launch that a unit was found for."""
    is_here = stream is not None and place_of(arguments) == "cpu"  # Triton's driver of a CPU is given one, too
    named = {**axes, **({} if stream is None or is_here else {"stream": stream})}
    enter, leave = find_hooks()
    if enter is None and leave is None:
        variants.kernel[grid](*arguments, **named)
        return
    launch = _describe_launch(variants.kernel.choose(*arguments, **named), variants.units, grid, told, values)
    if enter is not None:
        enter(launch)
    variants.kernel[grid](*arguments, **named)
    if leave is not None:
        leave(launch)


def find_hooks() -> tuple[Any, Any]:
    """Triton's hooks before and after a launch; None where there is none."""
    from triton import knobs

    hooks = knobs.runtime.launch_enter_hook, knobs.runtime.launch_exit_hook
    enter, leave = (None if hook is None or not getattr(hook, "calls", True) else hook for hook in hooks)
    return enter, leave


def _describe_launch(
    chosen: tuple[str, int, int, str | None], units: Sequence[Unit], grid: Any, told: Told, values: Mapping[str, Any]
) -> Any:
    """What Triton gives its hooks; what the kernel's own `launch_metadata` adds is computed when it is read."""
    from triton.compiler.compiler import LazyDict

    name, address, stream, _ = chosen
    unit = next(each for each in units if each.name == name)
    launch = LazyDict({"name": told.name, "function": address, "stream": stream})
    if told.launch_metadata is not None:
        launch.add(told.launch_metadata, (grid, _metadata_of(unit, told.name), dict(values)))
    return launch


def _metadata_of(unit: Unit, name: str) -> Any:
    """The part of a compiled kernel's metadata that a release knows."""
    from triton.backends.compiler import GPUTarget

    backend, _, arch = unit.target.partition(":")
    target = GPUTarget(backend, int(arch) if arch.isdigit() else arch, {"cuda": 32, "hip": 64}.get(backend, 1))
    known = {
        "name": name,
        "target": target,
        "shared": unit.shared_bytes,
        "num_warps": unit.warps,
        "num_ctas": unit.ctas,
    }
    return SimpleNamespace(**{**unit.options, **known})
