"""Whether a release's generated code can have the names of its kernels, arguments, axes and words.

In: a `ReleaseInterface`. Out: what is wrong, each with the kernel, and the argument, that it is to be told at. What
can be known of a kernel's own name alone is the spec's to refuse (`spec.names`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from precast.launch.formats import AxisInterface, KernelInterface, ReleaseInterface
from precast.launch.formats.values import word_of
from precast.spec.names import LIBRARY_FUNCTIONS, argument_fault, kernel_fault
from precast.spec.reserved import c_name, is_symbol_taken

RENAME_KERNEL = "rename the kernel in its spec"


@dataclass(frozen=True)
class NameFault:
    """One name that cannot be; `argument` is empty where the kernel itself, or an axis, is meant."""

    kernel: str
    argument: str
    message: str
    hint: str | None = None


def find_name_faults(interface: ReleaseInterface) -> Iterator[NameFault]:
    """Names that clash with one another, or with what C and Python have, in the order of the kernels."""
    owners = {f"{interface.name}_{name}": "the library itself" for name in LIBRARY_FUNCTIONS}
    macros = dict.fromkeys(_header_macros(interface.name), "the header itself")
    for kernel in interface.kernels:
        yield from _kernel_faults(interface.name, kernel.name, owners)
        yield from _argument_faults(interface.name, kernel)
        yield from _word_faults(interface.name, kernel, macros)


def word_macro(project: str, kernel: str, axis: AxisInterface, word: str) -> str:
    """The macro of one word of an axis."""
    return re.sub(r"\W", "_", f"{project}_{kernel}_{axis.name}_{word}").upper()


def kernel_identifier(kernel: str) -> str:
    """A kernel's name after the project's prefix, and in the package; a spec's is one already."""
    return re.sub(r"\W", "_", kernel)


def _kernel_faults(project: str, kernel: str, owners: dict[str, str]) -> Iterator[NameFault]:
    fault = kernel_fault(kernel)
    if fault:
        yield NameFault(kernel, "", f"`{kernel}` cannot be a kernel's name", fault)
    prefix = f"{project}_{kernel_identifier(kernel)}"
    for name in (prefix, f"{prefix}_grid", f"{prefix}_axes"):
        owner = "a name of C's own headers" if is_symbol_taken(name) else owners.get(name)
        if owner and not fault:
            yield NameFault(kernel, "", f"kernel `{kernel}` would be called `{name}`, as is {owner}", RENAME_KERNEL)
        owners[name] = f"kernel `{kernel}`"


def _header_macros(project: str) -> tuple[str, ...]:
    return f"{project.upper()}_LAUNCHERS_H", f"{project.upper()}_VERSION"


def _argument_faults(project: str, kernel: KernelInterface) -> Iterator[NameFault]:
    slots = [(slot.name, argument.name) for argument in kernel.arguments for slot in argument.slots]
    axes = [axis.name for axis in kernel.axes]
    for kind, names in (("an argument", [each.name for each in kernel.arguments]), ("an axis", axes)):
        for name in names:
            fault = argument_fault(name)
            if name in _header_macros(project):
                fault = f"the release's header has a macro `{name}`"
            if fault:
                owner = name if kind == "an argument" else ""
                yield NameFault(kernel.name, owner, f"`{name}` of `{kernel.name}` cannot be {kind}'s name", fault)
    yield from _clashes(kernel.name, slots, "arguments")
    yield from _clashes(kernel.name, [(name, "") for name in axes], "axes")
    for name in sorted({each.name for each in kernel.arguments}.intersection(axes)):
        yield NameFault(kernel.name, name, f"`{name}` is an argument and an axis of `{kernel.name}`", "rename the axis")


def _clashes(kernel: str, names: Iterable[tuple[str, str]], kind: str) -> Iterator[NameFault]:
    """Two names that are one in C. Each comes with the argument that it is told at."""
    seen: dict[str, str] = {}
    for name, argument in names:
        other = seen.setdefault(c_name(name), name)
        if other != name:
            message = f"{kind} `{other}` and `{name}` of `{kernel}` would both be called `{c_name(name)}` in C"
            yield NameFault(kernel, argument, message, "rename one of them")


def _word_faults(project: str, kernel: KernelInterface, owners: dict[str, str]) -> Iterator[NameFault]:
    for axis in kernel.axes:
        for value in axis.values:
            if axis.says_itself(value):
                continue
            text = f"{axis.name}={word_of(value)}"
            macro = word_macro(project, kernel.name, axis, word_of(value))
            mine = f"`{text}` of kernel `{kernel.name}`"
            owner = "a name of C's own headers" if is_symbol_taken(macro) else owners.get(macro)
            owners[macro] = mine
            if owner:
                yield NameFault(kernel.name, "", f"{mine} would be called `{macro}` in C, as is {owner}")
