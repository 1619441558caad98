"""A release's interface, read off its units: arguments, axes, and the digest that generated code is tied to.

In: units of a plan. Out: `ReleaseInterface`. Nothing here depends on what was compiled.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Collection, Iterable, Sequence

from precast.errors import PlanError
from precast.launch.formats.records import AXIS_KINDS, NO_AXIS
from precast.launch.formats.values import (
    DESCRIPTOR,
    LAUNCH_ABI,
    POINTER,
    SCHEMA,
    TYPE_CODES,
    ArgumentInterface,
    AxisInterface,
    KernelInterface,
    ReleaseInterface,
    Slot,
    word_of,
)
from precast.spec.model import Argument, Constant, Spelled, Unit
from precast.spec.names import argument_fault
from precast.spec.spelling import python_value

MAXIMUM_AXES = 16
MAXIMUM_VALUES = 254
MAXIMUM_SLOTS = 512
MAXIMUM_DESCRIPTORS = 16
NOT_SAID = -(2**63)  # in the place of a value that a call does not say
ABSENT = "none"  # the type of an argument that a variant does not have


def describe_interface(name: str, units: Iterable[Unit]) -> ReleaseInterface:
    """The interface of a release called `name` (made a C identifier) that holds `units`.

    `PlanError` when the variants of a kernel cannot share one launcher.
    """
    by_kernel: dict[str, list[Unit]] = {}
    for unit in sorted(units, key=str):
        by_kernel.setdefault(unit.kernel, []).append(unit)
    kernels = tuple(_describe_kernel(kernel, members) for kernel, members in sorted(by_kernel.items()))
    texts = tuple(sorted(str(unit) for members in by_kernel.values() for unit in members))
    return ReleaseInterface(re.sub(r"\W", "_", name), kernels, texts)


def interface_digest(interface: ReleaseInterface) -> str:
    """sha256 hex over schema, launch ABI and interface: the same for library and index that go together.

    Texts end in NUL, numbers are 64-bit and little-endian: `runtime/interface.c` makes it from the tables of an index.
    """
    parts = [_number(SCHEMA), _number(LAUNCH_ABI), _text(interface.name), _number(len(interface.kernels))]
    for kernel in interface.kernels:
        units = interface.units_of[kernel.name]
        parts += [_text(kernel.name), _text(kernel.source), *_argument_parts(kernel), *_axis_parts(kernel)]
        parts += [_number(kernel.has_grid)]
        parts += [_number(len(units)), *map(_text, units)]
    return hashlib.sha256(b"".join(parts)).hexdigest()


def slot_code(slot: Slot) -> int:
    """What a caller passes, as the index says it: a pointer, a descriptor, or the number of a scalar's type."""
    kinds = {"ptr": POINTER, "const ptr": POINTER, "tensordesc": DESCRIPTOR}
    return kinds.get(slot.type) or TYPE_CODES[slot.type]


def dtype_axis_number(kernel: KernelInterface, slot: Slot) -> int:
    """The axis that the slot's element type decides; NO_AXIS: none."""
    return [axis.name for axis in kernel.axes].index(slot.dtype_axis) if slot.dtype_axis else NO_AXIS


def axis_payload(axis: AxisInterface, value: Constant) -> int:
    """The 64-bit number by which C knows an axis value."""
    if axis.kind == "dtype":
        return TYPE_CODES[str(value)]
    if axis.kind == "word":
        return word_payload(axis, value)
    if axis.kind == "float":
        bits = int(struct.unpack("<q", struct.pack("<d", python_value(value)))[0])
        return bits + (bits == NOT_SAID)  # -0.0, whose own bits say nothing
    return int(value)  # type: ignore[arg-type]  # int and bool axes hold nothing else


def word_payload(axis: AxisInterface, value: Constant) -> int:
    """Words are numbered from 1; beside numbers, which stand for themselves, from the least that a call may say."""
    if not axis.has_numbers:
        return value_number(axis, value)
    return int(str(value)) if axis.says_itself(value) else value_number(axis, value) - 2**63


def value_number(axis: AxisInterface, value: Constant) -> int:
    """The number of a value among an axis's, from 1, told from one that merely equals it (`1`, `true`); 0: none."""
    same = (number for number, each in enumerate(axis.values, 1) if (type(each), each) == (type(value), value))
    return next(same, 0)


def _argument_parts(kernel: KernelInterface) -> Iterable[bytes]:
    yield _number(len(kernel.arguments))
    for argument in kernel.arguments:
        yield from (_text(argument.name), _number(len(argument.slots)))
        for slot in argument.slots:
            yield from (_text(slot.name), _number(slot_code(slot)), _number(slot.type == "const ptr"))
            yield from (_number(slot.rank), _number(dtype_axis_number(kernel, slot)))


def _axis_parts(kernel: KernelInterface) -> Iterable[bytes]:
    yield _number(len(kernel.axes))
    for axis in kernel.axes:
        yield from (_text(axis.name), _number(AXIS_KINDS[axis.kind]), _number(len(axis.values)))
        for value in axis.values:
            yield from (_number(axis_payload(axis, value)), _text(word_of(value)))


def _text(text: str) -> bytes:
    return text.encode() + b"\0"


def _number(value: int) -> bytes:
    return struct.pack("<q", value)


def leaves_of(argument: Argument) -> tuple[tuple[str, str], ...]:
    """(name, type) of an argument, or of each leaf of a tuple, in order: `pair.0`, `pair.1.0`."""
    return tuple(_leaves(argument.name, argument.type))


def _leaves(name: str, type_text: str) -> Iterable[tuple[str, str]]:
    if not type_text.startswith("("):
        return [(name, type_text)]
    members = _split_tuple(type_text)
    return [leaf for number, member in enumerate(members) for leaf in _leaves(f"{name}.{number}", member)]


def _split_tuple(text: str) -> list[str]:
    members, depth, start = [], 0, 1
    for position, sign in enumerate(text):
        depth += (sign in "([<") - (sign in ")]>")
        if (sign == "," and depth == 1) or position == len(text) - 1:
            members.append(text[start:position].strip())
            start = position + 1
    return [member for member in members if member and member != "constexpr"]


def run_time_arguments(unit: Unit) -> tuple[Argument, ...]:
    """The arguments that a caller passes, in order: all but constexprs."""
    return tuple(argument for argument in unit.arguments if argument.type != "constexpr")


def _describe_kernel(name: str, units: Sequence[Unit]) -> KernelInterface:
    axes = _describe_axes(name, units)
    arguments = tuple(
        _describe_argument(name, column, axes, units)
        for column in zip(*(run_time_arguments(unit) for unit in units), strict=True)
    )
    constants = _describe_constants(units, {axis.name for axis in axes})
    first = units[0]
    kernel = KernelInterface(name, first.source.text, arguments, axes, bool(first.grid), constants, first.docstring)
    if len(kernel.slots) > MAXIMUM_SLOTS:
        raise PlanError(f"kernel `{name}` has {len(kernel.slots)} arguments; a launcher takes {MAXIMUM_SLOTS}")
    descriptors = sum(slot.type == "tensordesc" for slot in kernel.slots)
    if descriptors > MAXIMUM_DESCRIPTORS:
        message = f"kernel `{name}` has {descriptors} tensor descriptors; a launcher takes {MAXIMUM_DESCRIPTORS}"
        raise PlanError(message)
    return kernel


def _describe_axes(kernel: str, units: Sequence[Unit]) -> tuple[AxisInterface, ...]:
    values: dict[str, dict[tuple[str, Constant], Constant]] = {}
    for unit in units:
        for name, value in unit.variant.values:
            values.setdefault(name, {})[(type(value).__name__, value)] = value
    axes = tuple(AxisInterface(name, _axis_kind(each), _ordered(each)) for name, each in values.items())
    if len(axes) > MAXIMUM_AXES:
        raise PlanError(f"kernel `{kernel}` has {len(axes)} axes; a launcher takes {MAXIMUM_AXES}")
    for axis in axes:
        if len(axis.values) > MAXIMUM_VALUES:
            raise PlanError(f"axis `{axis.name}` of `{kernel}` has {len(axis.values)} values; at most {MAXIMUM_VALUES}")
    return axes


def _describe_constants(units: Sequence[Unit], axes: Collection[str]) -> tuple[AxisInterface, ...]:
    """What a call may say besides, if it says it right."""
    found = []
    for column in zip(*([each for each in unit.arguments if each.type == "constexpr"] for unit in units), strict=True):
        values = {(type(each.value).__name__, each.value): each.value for each in column}
        name = column[0].name
        if len(values) == 1 and name not in axes and not argument_fault(name):
            found.append(AxisInterface(name, _axis_kind(values), (column[0].value,)))
    return tuple(found)


def _ordered(values: dict[tuple[str, Constant], Constant]) -> tuple[Constant, ...]:
    numbers = [value for value in values.values() if isinstance(value, int | float)]
    return tuple(sorted(numbers)) if len(numbers) == len(values) else tuple(sorted(values.values(), key=word_of))


def _axis_kind(values: dict[tuple[str, Constant], Constant]) -> str:
    kinds = {"float" if _is_float(value) else kind for kind, value in values}
    if kinds == {"str"}:
        return "dtype" if all(value in TYPE_CODES for value in values.values()) else "word"
    if kinds == {"bool"} or kinds == {"int"}:
        return kinds.pop()
    return "float" if kinds <= {"int", "float"} else "word"


def _is_float(value: Constant) -> bool:
    """Whether a spelling is that of a number which only its text says exactly: `inf`, `nan`, `-0.0`."""
    return isinstance(value, Spelled) and isinstance(python_value(value), float)


def _describe_argument(
    kernel: str, column: Sequence[Argument], axes: Sequence[AxisInterface], units: Sequence[Unit]
) -> ArgumentInterface:
    leaves = [leaves_of(argument) for argument in column]
    if len({len(each) for each in leaves}) != 1:
        raise PlanError(f"argument `{column[0].name}` of `{kernel}` is a tuple of another length in another variant")
    slots = tuple(
        _describe_slot(kernel, slot[0][0], [type_text for _, type_text in slot], axes, units)
        for slot in zip(*leaves, strict=True)
    )
    default = tuple(value for name, value in units[0].defaults if name == column[0].name and len(slots) == 1)
    return ArgumentInterface(column[0].name, slots, default)


def _describe_slot(
    kernel: str, name: str, types: Sequence[str], axes: Sequence[AxisInterface], units: Sequence[Unit]
) -> Slot:
    present = [type_text for type_text in types if type_text != ABSENT]
    optional = len(present) < len(types)
    kinds = {_slot_kind(type_text) for type_text in present} or {"a pointer"}
    if len(kinds) != 1:
        raise PlanError(f"argument `{name}` of `{kernel}` is {' in one variant and '.join(sorted(kinds))} in another")
    kind = kinds.pop()
    if kind == "a pointer":
        constant = all(type_text.startswith("*k") for type_text in present)
        return Slot(name, "const ptr" if constant else "ptr", _dtype_axis(types, axes, units), optional=optional)
    if kind == "a tensor descriptor":
        ranks = {type_text.partition("[")[2].partition("]")[0].count(",") + 1 for type_text in present}
        if len(ranks) != 1:
            raise PlanError(f"tensor descriptor `{name}` of `{kernel}` has another rank in another variant")
        return Slot(name, "tensordesc", _dtype_axis(types, axes, units), ranks.pop(), optional)
    return Slot(name, _widest(kind, present), optional=optional, varied=len(set(types)) > 1)


def _widest(kind: str, types: Sequence[str]) -> str:
    """The type of a number for callers: that of all units, or the widest of its kind."""
    if len(set(types)) == 1:
        return types[0]
    if kind == "a real number":
        return "fp64"
    return "u64" if all(text.startswith("u") for text in types) else "i64"


def _slot_kind(type_text: str) -> str:
    if type_text.startswith("*"):
        return "a pointer"
    if type_text.startswith("tensordesc"):
        return "a tensor descriptor"
    return "an integer" if type_text[0] in "iu" else "a real number"


def element_type(type_text: str) -> str:
    """What a pointer points to or a descriptor describes: `fp16` of `*kfp16` and of `tensordesc<fp16[64,64]>`."""
    if type_text.startswith("tensordesc"):
        return type_text.partition("<")[2].partition("[")[0]
    return type_text.removeprefix("*").removeprefix("k")


def _dtype_axis(types: Sequence[str], axes: Sequence[AxisInterface], units: Sequence[Unit]) -> str:
    """The axis whose value is this slot's element type in every unit; none when it is the same in all."""
    pairs = [(element_type(text), unit) for text, unit in zip(types, units, strict=True) if text != ABSENT]
    if len({element for element, _ in pairs}) <= 1:
        return ""
    for axis in axes:
        follows = all(dict(unit.variant.values).get(axis.name) == element for element, unit in pairs)
        if axis.kind == "dtype" and follows:
            return axis.name
    return ""
