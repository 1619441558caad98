"""What Python's help() says of a kernel of a release. In: its interface and the release's units. Out: a text.

The first line is the call; then the kernel's own docstring, its arguments with their types, its axes with their values,
and its variants.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from precast.launch.formats import ArgumentInterface, KernelInterface
from precast.spec.model import format_constant

UNITS_SHOWN = 40


def render_help(kernel: KernelInterface, units: Sequence[str]) -> str:
    own = [unit for unit in units if unit.partition("@")[0].partition(":")[0] == kernel.name]
    axes = [(each.name, ", ".join(map(format_constant, each.values))) for each in kernel.axes]
    more = ["    …"] if len(own) > UNITS_SHOWN else []
    sections = {
        "Arguments:": list(_indented([(each.name, _type_of(each)) for each in kernel.arguments])),
        "Axes:": list(_indented(axes)),
        f"Variants ({len(own)}):": [*(f"    {unit}" for unit in own[:UNITS_SHOWN]), *more],
    }
    written = ["\n".join([head, *lines]) for head, lines in sections.items() if lines]
    return "\n\n".join(filter(None, [_call(kernel), kernel.docstring, *written]))


def _call(kernel: KernelInterface) -> str:
    """The call as one writes it; with the grid where the spec has none."""
    arguments = [f"{each.name}={each.default[0]!r}" if each.default else each.name for each in kernel.arguments]
    axes = [f"{axis.name}=…" for axis in kernel.axes]
    grid = "" if kernel.has_grid else "[grid]"
    return f"{kernel.name}{grid}({', '.join([*arguments, *axes, 'stream=None'])})"


def _type_of(argument: ArgumentInterface) -> str:
    if len(argument.slots) > 1 or argument.slots[0].name != argument.name:
        return f"a tuple: {', '.join(slot.type for slot in argument.slots)}"
    slot = argument.slots[0]
    if slot.type not in ("ptr", "const ptr", "tensordesc"):
        return slot.type
    noun = "tensor for a descriptor" if slot.type == "tensordesc" else "tensor, address or None"
    return f"{noun}, of `{slot.dtype_axis}`" if slot.dtype_axis else noun


def _indented(lines: Sequence[tuple[str, str]]) -> Iterator[str]:
    width = max((len(name) for name, _ in lines), default=0)
    for name, text in lines:
        yield f"    {name:{width}}  {text}"
