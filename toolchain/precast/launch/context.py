"""What the templates are given: an interface put into C's and Python's words, one frozen value per file.

In: `ReleaseInterface`. Out: `LibraryContext`. All decisions are made here; templates only lay out text.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from precast.errors import PlanError
from precast.launch.formats import (
    LAUNCH_ABI,
    ArgumentInterface,
    AxisInterface,
    KernelInterface,
    ReleaseInterface,
    Slot,
    interface_digest,
)
from precast.launch.formats.interface import value_number
from precast.launch.formats.values import word_of
from precast.launch.help import render_help
from precast.launch.names import find_name_faults, kernel_identifier, word_macro
from precast.launch.package.torch_ops import Signature
from precast.spec.model import Constant, Spelled, format_constant
from precast.spec.reserved import c_name

C_TYPES = {
    "i1": "bool", "i8": "int8_t", "i16": "int16_t", "i32": "int32_t", "i64": "int64_t",
    "u1": "bool", "u8": "uint8_t", "u16": "uint16_t", "u32": "uint32_t", "u64": "uint64_t",
    "fp16": "uint16_t", "bf16": "uint16_t", "fp32": "float", "fp64": "double",
    "fp8e4nv": "uint8_t", "fp8e5": "uint8_t", "fp8e4b8": "uint8_t", "fp8e5b16": "uint8_t", "fp8e4b15": "uint8_t",
    "ptr": "void *", "const ptr": "const void *", "tensordesc": "const precast_tensor *",
}  # fmt: skip


@dataclass(frozen=True)
class ParameterContext:
    """One C parameter: `declaration` in the prototype, `slot` the expression that fills its 8 bytes."""

    name: str
    declaration: str
    slot: str


@dataclass(frozen=True)
class FieldContext:
    """One field of an axes struct; `note` lists its values, `payload` is the 64-bit number the runtime compares."""

    declaration: str
    payload: str
    note: str


@dataclass(frozen=True)
class WordContext:
    """One enumerator for an axis value that is a word."""

    name: str
    value: str


@dataclass(frozen=True)
class StubContext:
    """One parameter of a Python stub."""

    declaration: str


@dataclass(frozen=True)
class KernelContext:
    """One kernel in both languages."""

    name: str  # as in the spec
    identifier: str
    number: int
    source: str
    has_grid: bool  # of its own: then a call may leave it out
    parameters: tuple[ParameterContext, ...]
    fields: tuple[FieldContext, ...]
    words: tuple[WordContext, ...]
    stub_class: str
    stub_arguments: tuple[StubContext, ...]
    stub_axes: tuple[StubContext, ...]
    help: str  # a literal of Python's
    signature: str  # one, too: `package.torch_ops.Signature`


@dataclass(frozen=True)
class LibraryContext:
    """One library: the whole of what every template sees."""

    name: str
    guard: str
    version: str
    launch_abi: int
    digest: str
    digest_bytes: str  # 0x12, 0x34, …
    kernels: tuple[KernelContext, ...]
    runtime_sources: tuple[str, ...]  # file names, for CMake


def describe_library(interface: ReleaseInterface, version: str, runtime_sources: Sequence[str]) -> LibraryContext:
    """The context of a library; `PlanError` when a name cannot be: two that become one in C, or one that is taken."""
    for fault in find_name_faults(interface):
        raise PlanError(fault.message, hint=fault.hint)
    digest = interface_digest(interface)
    kernels = tuple(_kernel(interface, kernel, number) for number, kernel in enumerate(interface.kernels))
    return LibraryContext(
        name=interface.name,
        guard=interface.name.upper(),
        version=version,
        launch_abi=LAUNCH_ABI,
        digest=digest,
        digest_bytes=", ".join(f"0x{byte:02x}" for byte in bytes.fromhex(digest)),
        kernels=kernels,
        runtime_sources=tuple(runtime_sources),
    )


def _kernel(interface: ReleaseInterface, kernel: KernelInterface, number: int) -> KernelContext:
    identifier = kernel_identifier(kernel.name)
    fields = tuple(_field(axis) for axis in kernel.axes)
    return KernelContext(
        name=kernel.name,
        identifier=identifier,
        number=number,
        source=kernel.source,
        has_grid=kernel.has_grid,
        parameters=tuple(_parameter(slot) for slot in kernel.slots),
        fields=fields or (FieldContext("unsigned char none", "0", "this kernel has no axes"),),
        words=tuple(word for axis in kernel.axes for word in _words(interface.name, kernel.name, axis)),
        stub_class=f"_{identifier}_kernel",
        stub_arguments=tuple(_stub_arguments(kernel.arguments)),
        stub_axes=(*map(_stub_axis, kernel.axes), *map(_stub_constant, kernel.constants)),
        help=repr(render_help(kernel, interface.units)),
        signature=repr(_signature(kernel)),
    )


def _parameter(slot: Slot) -> ParameterContext:
    name, c_type = c_name(slot.name), C_TYPES[slot.type]
    declaration = f"{c_type}{name}" if c_type.endswith("*") else f"{c_type} {name}"
    return ParameterContext(name, declaration, f"{_slot_function(slot.type)}({name})")


def _slot_function(type_text: str) -> str:
    if type_text in ("ptr", "const ptr", "tensordesc"):
        return "precast_slot_pointer"
    if type_text in ("fp32", "fp64"):
        return f"precast_slot_{type_text}"
    return "precast_slot_signed" if type_text.startswith("i") and type_text != "i1" else "precast_slot_unsigned"


def _field(axis: AxisInterface) -> FieldContext:
    kind = "int" if axis.has_numbers else axis.kind
    c_type = {"dtype": "precast_type", "float": "double", "word": "int"}.get(kind, "int64_t")
    name = c_name(axis.name)
    function = {"dtype": "number", "word": "number"}.get(kind, kind)
    payload = f"precast_axis_{function}(axes.{name})"
    values = ", ".join(format_constant(value) for value in axis.values)
    return FieldContext(f"{c_type} {name}", payload, re.sub(r"\*/", "* /", values))


def _words(project: str, kernel: str, axis: AxisInterface) -> list[WordContext]:
    words = {value_number(axis, value): word_of(value) for value in axis.values if not axis.says_itself(value)}
    first = "INT64_MIN + " if axis.has_numbers else ""
    return [
        WordContext(word_macro(project, kernel, axis, word), f"({first}{number})" if first else str(number))
        for number, word in words.items()
    ]


def _stub_arguments(arguments: Sequence[ArgumentInterface]) -> Iterator[StubContext]:
    """Defaults are said where all arguments after have one too; else only a call by name may leave it out."""
    for number, argument in enumerate(arguments):
        stub = _stub_argument(argument)
        has_default = all(each.default for each in arguments[number:])
        yield StubContext(f"{stub.declaration} = {argument.default[0]!r}") if has_default else stub


def _stub_argument(argument: ArgumentInterface) -> StubContext:
    name = python_name(argument.name)
    if len(argument.slots) > 1 or argument.slots[0].name != argument.name:
        return StubContext(f"{name}: tuple[Any, ...]")
    kind = argument.slots[0].type
    if kind in ("ptr", "const ptr", "tensordesc"):
        return StubContext(f"{name}: Tensor")
    if kind in ("i1", "u1"):
        return StubContext(f"{name}: bool")
    return StubContext(f"{name}: int" if kind[0] in "iu" else f"{name}: float")


def _stub_axis(axis: AxisInterface) -> StubContext:
    literal = ", ".join(_python_literal(value) for value in axis.values)
    return StubContext(f"{python_name(axis.name)}: {'float' if axis.kind == 'float' else f'Literal[{literal}]'} = ...")


def _signature(kernel: KernelInterface) -> Signature:
    arguments = tuple((each.name, _argument_kind(each)) for each in kernel.arguments)
    return arguments, tuple((axis.name, axis.kind) for axis in kernel.axes), kernel.has_grid


def _argument_kind(argument: ArgumentInterface) -> str:
    if len(argument.slots) > 1 or argument.slots[0].name != argument.name:
        return "tuple"
    slot = argument.slots[0]
    if slot.type in ("ptr", "const ptr"):
        return f"{'const ' * slot.type.startswith('const')}tensor{'?' * slot.optional}"
    if slot.type == "tensordesc":
        return "descriptor"
    return "bool" if slot.type in ("i1", "u1") else "int" if slot.type[0] in "iu" else "float"


def _stub_constant(constant: AxisInterface) -> StubContext:
    """The one value, which a call may name; a float's type has no literals."""
    literal = _python_literal(constant.values[0])
    kind = "float" if constant.kind == "float" else f"Literal[{literal}]"
    return StubContext(f"{python_name(constant.name)}: {kind} = {'...' if constant.kind == 'float' else literal}")


def _python_literal(value: Constant) -> str:
    return repr(format_constant(value)) if value is None or isinstance(value, Spelled) else repr(value)


def python_name(name: str) -> str:
    """A name that Python takes; arguments are positional, so the stub's name alone differs."""
    identifier = re.sub(r"\W", "_", name)
    return f"{identifier}_" if keyword.iskeyword(identifier) or identifier in vars(builtins) else identifier
