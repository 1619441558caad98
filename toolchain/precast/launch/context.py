"""What the templates are given: an interface put into C's and Python's words, one frozen value per file.

In: `ReleaseInterface`. Out: `LibraryContext`. All decisions are made here; templates only lay out text.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Sequence
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
from precast.launch.formats.values import word_of
from precast.spec.model import Constant, Spelled, format_constant

C_TYPES = {
    "i1": "bool", "i8": "int8_t", "i16": "int16_t", "i32": "int32_t", "i64": "int64_t",
    "u1": "bool", "u8": "uint8_t", "u16": "uint16_t", "u32": "uint32_t", "u64": "uint64_t",
    "fp16": "uint16_t", "bf16": "uint16_t", "fp32": "float", "fp64": "double",
    "fp8e4nv": "uint8_t", "fp8e5": "uint8_t", "fp8e4b8": "uint8_t", "fp8e5b16": "uint8_t", "fp8e4b15": "uint8_t",
    "ptr": "void *", "const ptr": "const void *", "tensordesc": "const precast_tensor *",
}  # fmt: skip

# Words that a generated parameter or field cannot have as its name.
_TAKEN_TEXT = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl const constexpr const_cast
    continue decltype default delete do double dynamic_cast else enum explicit export extern false float for friend
    goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected
    public register reinterpret_cast restrict return short signed sizeof static static_assert static_cast struct
    switch template this thread_local throw true try typedef typeid typename union unsigned using virtual void
    volatile wchar_t while xor xor_eq release stream axes grid slots values
"""
_TAKEN = frozenset(_TAKEN_TEXT.split())
LIBRARY_FUNCTIONS = (
    "open", "open_signed", "open_with", "close", "error", "preload", "unload", "query", "selfcheck", "set_threads",
    "set_allocator", "set_buffer_reader",
)  # fmt: skip
PACKAGE_NAMES = ("release", "serve", "check_signature")  # besides the functions above that Python has too


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
    value: int


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
    """The context of a library; `PlanError` when two names become one in C, or one is taken."""
    digest = interface_digest(interface)
    kernels = tuple(_kernel(interface, kernel, number) for number, kernel in enumerate(interface.kernels))
    _check_names(interface, kernels)
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


def _check_names(interface: ReleaseInterface, kernels: Sequence[KernelContext]) -> None:
    owners = {name: "the library itself" for name in (*LIBRARY_FUNCTIONS, *PACKAGE_NAMES)}
    for kernel in kernels:
        for name in (kernel.identifier, f"{kernel.identifier}_grid", f"{kernel.identifier}_axes"):
            if name in owners:
                raise PlanError(
                    f"kernel `{kernel.name}` would be called `{interface.name}_{name}`, as is {owners[name]}",
                    hint="rename the kernel in its spec",
                )
            owners[name] = f"kernel `{kernel.name}`"
        words = [word.name for word in kernel.words]
        if len(set(words)) < len(words):
            twice = next(word for word in words if words.count(word) > 1)
            raise PlanError(f"two axis values of kernel `{kernel.name}` would both be called `{twice}` in C")


def _kernel(interface: ReleaseInterface, kernel: KernelInterface, number: int) -> KernelContext:
    identifier = identifier_of(kernel.name)
    prefix = f"{interface.name}_{identifier}_".upper()
    fields = tuple(_field(axis) for axis in kernel.axes)
    return KernelContext(
        name=kernel.name,
        identifier=identifier,
        number=number,
        source=kernel.source,
        has_grid=kernel.has_grid,
        parameters=tuple(_parameter(slot) for slot in kernel.slots),
        fields=fields or (FieldContext("unsigned char none", "0", "this kernel has no axes"),),
        words=tuple(word for axis in kernel.axes for word in _words(prefix, axis)),
        stub_class="_" + "".join(part.capitalize() for part in identifier.split("_")),
        stub_arguments=tuple(_stub_argument(argument) for argument in kernel.arguments),
        stub_axes=tuple(_stub_axis(axis) for axis in kernel.axes),
    )


def identifier_of(name: str) -> str:
    """A spec's name as a C identifier, `_` after it where the word is taken."""
    identifier = re.sub(r"\W", "_", name)
    return f"{identifier}_" if identifier in _TAKEN else identifier


def _parameter(slot: Slot) -> ParameterContext:
    name, c_type = identifier_of(slot.name), C_TYPES[slot.type]
    declaration = f"{c_type}{name}" if c_type.endswith("*") else f"{c_type} {name}"
    return ParameterContext(name, declaration, f"{_slot_function(slot.type)}({name})")


def _slot_function(type_text: str) -> str:
    if type_text in ("ptr", "const ptr", "tensordesc"):
        return "precast_slot_pointer"
    if type_text in ("fp32", "fp64"):
        return f"precast_slot_{type_text}"
    return "precast_slot_signed" if type_text.startswith("i") and type_text != "i1" else "precast_slot_unsigned"


def _field(axis: AxisInterface) -> FieldContext:
    c_type = {"dtype": "precast_type", "float": "double", "word": "int"}.get(axis.kind, "int64_t")
    name = identifier_of(axis.name)
    function = {"dtype": "number", "word": "number"}.get(axis.kind, axis.kind)
    payload = f"precast_axis_{function}(axes.{name})"
    values = ", ".join(format_constant(value) for value in axis.values)
    return FieldContext(f"{c_type} {name}", payload, re.sub(r"\*/", "* /", values))


def _words(prefix: str, axis: AxisInterface) -> list[WordContext]:
    if axis.kind != "word":
        return []
    names = [re.sub(r"\W", "_", f"{prefix}{axis.name}_{word_of(value)}").upper() for value in axis.values]
    return [WordContext(name, number) for number, name in enumerate(names, 1)]


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


def _python_literal(value: Constant) -> str:
    return repr(format_constant(value)) if value is None or isinstance(value, Spelled) else repr(value)


def python_name(name: str) -> str:
    """A name that Python takes; arguments are positional, so the stub's name alone differs."""
    identifier = re.sub(r"\W", "_", name)
    return f"{identifier}_" if keyword.iskeyword(identifier) or identifier in vars(builtins) else identifier
