"""`index.bin`: everything the C runtime knows about a release, as tables that it maps and reads in place.

In: a `ReleaseIndex`. Out: bytes, the same for the same value. `records` has the layout, `runtime/index.h` reads it.
An `IndexEntry` is what the index says of one unit, known without the others: a release of thousands makes anew those
that changed, and joins them with what it kept.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from precast.artifact import Facts, Parameter, TensorDescriptor
from precast.errors import BugError, PlanError
from precast.grid import Expression, GridProgram, compile_grid, parse_grid, parse_requirement
from precast.launch.formats.index_reader import fact_flags, fact_numbers
from precast.launch.formats.interface import (
    ABSENT,
    axis_payload,
    dtype_axis_number,
    element_type,
    interface_digest,
    leaves_of,
    run_time_arguments,
    slot_code,
    value_number,
)
from precast.launch.formats.records import (
    ARCH_EXACT,
    ARCH_FORWARD,
    AXIS_KINDS,
    BACKENDS,
    DEFAULT_KINDS,
    HEADER,
    HINT_KINDS,
    MAGIC,
    PARAMETER_KINDS,
    RECORDS,
    RELATIONS,
    SECTION,
    SECTION_ALIGNMENT,
    SLOT_OPTIONAL,
    SLOT_VARIED,
    Tables,
    pack_rows,
)
from precast.launch.formats.values import (
    DESCRIPTOR,
    LAUNCH_ABI,
    POINTER,
    SCHEMA,
    TYPE_CODES,
    AxisInterface,
    ImagePlace,
    KernelInterface,
    ReleaseFile,
    ReleaseIndex,
    ReleaseInterface,
    SelectionRule,
    kernel_of,
    word_of,
)
from precast.spec.model import Argument, Constant, Spelled, Unit, format_constant
from precast.target import AARCH64, X86_LEVELS, Backend, Target
from precast.tuning.rules import Plain, plain

Row = tuple[int | bytes, ...]

_FORWARD_ARCHITECTURES = {"75", "80", "86", "89"}  # 87 is Tegra: its images and the others do not mix
_AARCH64 = 8  # beyond the levels of x86-64


class IndexEntry(NamedTuple):
    """A unit's record, with texts, and rows as `pack_rows` has them, where the index has their numbers. Made of what
    JSON can say."""

    unit: str
    symbol: str
    backend: int
    architecture: tuple[int, int | str]  # its kind; a text is that of a string
    flags: int
    axes: str  # one byte for each, in hex
    slot_types: str
    parameters: str
    descriptors: tuple[tuple[int, str], ...]  # with the numbers of the parameters that they belong to
    hints: str
    promises: str
    buffers: tuple[tuple[str, int], ...]
    grid: tuple[str, ...]
    numbers: tuple[int, ...]
    description: str
    requirements: tuple[tuple[str, str], ...]  # with their texts


PlacedEntry = tuple[IndexEntry, ImagePlace]


def write_index(index: ReleaseIndex) -> bytes:
    """The bytes of `index.bin`; `BugError` when a unit's facts do not go with its arguments."""
    kernels = {kernel.name: kernel for kernel in index.interface.kernels}
    known = (each for each in index.units if each.unit.kernel in kernels)
    entries = [(describe_unit(kernels[each.unit.kernel], each.unit, each.facts), each.image) for each in known]
    return join_index(index.interface, interface_digest(index.interface), entries, index.files, index.selection)


def join_index(
    interface: ReleaseInterface,
    digest: str,
    entries: Iterable[PlacedEntry],
    files: Iterable[ReleaseFile],
    selection: Sequence[SelectionRule] = (),
) -> bytes:
    """The bytes of the index that has these entries, those of a kernel in the spec's order; `digest` is the
    interface's."""
    tables = Tables()
    file_numbers = {
        file.path: tables.add("files", tables.text(file.path), 0, file.size, bytes.fromhex(file.digest))
        for file in sorted(files, key=lambda file: file.path)
    }
    images: dict[ImagePlace, int] = {}
    members: dict[str, list[PlacedEntry]] = {}
    for each in entries:
        members.setdefault(kernel_of(each[0].unit), []).append(each)
    for kernel in interface.kernels:
        units = sorted(_in_order(members.get(kernel.name, ())), key=lambda pair: pair[1][0].unit)
        if tuple(entry.unit for _, (entry, _) in units) != interface.units_of[kernel.name]:
            raise BugError(f"the index of `{kernel.name}` does not hold the units that its interface names")
        for _, (_, image) in units:
            if image not in images:
                images[image] = _add_image(tables, image, file_numbers)
        rules = [rule for rule in selection if rule.kernel == kernel.name]
        _add_kernel(tables, kernel, units, images, rules)
    return _assemble(tables, tables.text(interface.name), bytes.fromhex(digest))


def _in_order(entries: Sequence[PlacedEntry]) -> list[tuple[int, PlacedEntry]]:
    """Each unit with its place among those of its target, which decides where nothing else does."""
    counts: Counter[str] = Counter()
    numbered = []
    for each in entries:
        target = each[0].unit.rpartition("@")[2]
        numbered.append((counts[target], each))
        counts[target] += 1
    return numbered


def _assemble(tables: Tables, name: int, interface: bytes) -> bytes:
    body = bytearray()
    sections = bytearray()
    for section, rows in tables.rows.items():
        body += bytes(-len(body) % SECTION_ALIGNMENT)
        data = b"".join(rows)
        sections += SECTION.pack(HEADER.size + len(body), len(data) // RECORDS[section].size)
        body += data
    size = HEADER.size + len(body)
    sections += bytes(160 - len(sections))

    def header(digest: bytes) -> bytes:
        return HEADER.pack(MAGIC, SCHEMA, LAUNCH_ABI, size, interface, digest, name, 0, bytes(sections))

    digest = hashlib.sha256(header(bytes(32)) + body).digest()
    return header(digest) + bytes(body)


def _add_image(tables: Tables, image: ImagePlace, files: Mapping[str, int]) -> int:
    return tables.add("images", files[image.file], 0, image.offset, image.size, bytes.fromhex(image.digest))


def _add_kernel(
    tables: Tables,
    kernel: KernelInterface,
    units: Sequence[tuple[int, PlacedEntry]],
    images: Mapping[ImagePlace, int],
    rules: Sequence[SelectionRule],
) -> None:
    argument_rows, slot_rows = _argument_rows(tables, kernel)
    axis_rows, constant_rows = ([_axis_row(tables, axis) for axis in axes] for axes in (kernel.axes, kernel.constants))
    number = len(tables.rows["kernels"])
    unit_rows = [_unit_row(tables, number, entry, images[image], order) for order, (entry, image) in units]
    tables.add(
        "kernels",
        tables.text(kernel.name),
        tables.text(kernel.source),
        *tables.span("arguments", argument_rows),
        *tables.span("slots", slot_rows),
        *tables.span("axes", axis_rows),
        *tables.span("units", unit_rows),
        *tables.span("rules", [_rule_row(tables, kernel, rule) for rule in rules]),
        *tables.span("axes", constant_rows),
    )


def _axis_row(tables: Tables, axis: AxisInterface) -> Row:
    values = [(axis_payload(axis, value), tables.text(word_of(value)), 0) for value in axis.values]
    return tables.text(axis.name), AXIS_KINDS[axis.kind], *tables.span("axis_values", values)


def _argument_rows(tables: Tables, kernel: KernelInterface) -> tuple[list[Row], list[Row]]:
    first_slot = len(tables.rows["slots"])
    arguments: list[Row] = []
    slots: list[Row] = []
    for number, argument in enumerate(kernel.arguments):
        slots_of = (first_slot + len(slots), len(argument.slots))
        arguments.append((tables.text(argument.name), *slots_of, *_default(argument.default)))
        for slot in argument.slots:
            axis = dtype_axis_number(kernel, slot)
            flags = SLOT_OPTIONAL * slot.optional | SLOT_VARIED * slot.varied
            code = slot_code(slot)
            slots.append((tables.text(slot.name), code, slot.type == "const ptr", slot.rank, axis, number, flags))
    return arguments, slots


def _default(default: Sequence[Constant]) -> tuple[int, int]:
    """Kind and bits of what stands for an argument that a call leaves out."""
    if not default:
        return 0, 0
    value = default[0]
    kind = DEFAULT_KINDS[type(value).__name__]
    if isinstance(value, float):
        return kind, struct.unpack("<q", struct.pack("<d", value))[0]
    return kind, int(value) if isinstance(value, int) else 0


def describe_unit(kernel: KernelInterface, unit: Unit, facts: Facts) -> IndexEntry:
    """What the index says of a unit of `kernel`; `BugError` when its facts do not go with its arguments."""
    leaves = [leaf for argument in run_time_arguments(unit) for leaf in leaves_of(argument)]
    codes = [_type_code(type_text) for _, type_text in leaves]
    names = tuple(name for name, _ in leaves), _constants(unit)
    parameters = tuple(_parameter_rows(unit, facts, codes))
    return IndexEntry(
        unit=str(unit),
        symbol=facts.symbol,
        backend=BACKENDS[unit.target.backend],
        architecture=_architecture(unit.target),
        flags=fact_flags(facts),
        axes=bytes(_axis_numbers(kernel, unit)).hex(),
        slot_types=pack_rows("slot_types", ((code,) for code in codes)),
        parameters=pack_rows("parameters", (row for row, _ in parameters)),
        descriptors=tuple((number, each) for number, (_, each) in enumerate(parameters) if each),
        hints=pack_rows("hints", _hint_rows(unit, kernel, codes)),
        promises=pack_rows("hints", _promise_rows(unit)),
        buffers=tuple((buffer.pass_name, buffer.bytes_per_program) for buffer in facts.buffers),
        grid=tuple(_steps(names, text, parse_grid) for text in unit.grid),
        numbers=fact_numbers(facts),
        description=_description(unit, facts),
        requirements=tuple((_steps(names, text, parse_requirement), text) for text in unit.requires),
    )


def _unit_row(tables: Tables, number: int, entry: IndexEntry, image: int, order: int) -> tuple[int | bytes, ...]:
    buffers = [(tables.text(pass_name), size) for pass_name, size in entry.buffers]
    grid = [tables.shared_span("steps", steps) for steps in entry.grid] or [(0, 0)] * 3
    kind, arch = entry.architecture
    arch = tables.text(arch) if isinstance(arch, str) else arch
    return (
        tables.text(entry.unit), tables.text(entry.symbol), number, image,
        entry.backend, kind, entry.flags, arch,
        bytes.fromhex(entry.axes),
        tables.shared_span("slot_types", entry.slot_types)[0],
        *_add_parameters(tables, entry),
        *tables.shared_span("hints", entry.hints),
        *tables.shared_span("hints", entry.promises),
        *tables.span("buffers", buffers),
        *(start for start, _ in grid), *(count for _, count in grid),
        *entry.numbers, tables.text(entry.description), order,
        *_add_requirements(tables, entry.requirements),
    )  # fmt: skip


def _add_parameters(tables: Tables, entry: IndexEntry) -> tuple[int, int]:
    """A unit's parameters; of those that are descriptors, each has the number that its record gets in the index."""
    first, count = tables.packed_span("parameters", entry.parameters)
    for number, packed in entry.descriptors:
        descriptor, _ = tables.packed_span("descriptors", packed)
        row = tables.rows["parameters"][first + number]
        tables.rows["parameters"][first + number] = row[:-4] + struct.pack("<I", descriptor)
    return first, count


def _add_requirements(tables: Tables, requirements: Sequence[tuple[str, str]]) -> tuple[int, int]:
    rows = [(*tables.shared_span("steps", steps), tables.text(text), 0) for steps, text in requirements]
    return tables.shared_span("requirements", pack_rows("requirements", rows))


def _description(unit: Unit, facts: Facts) -> str:
    """What only the Python package reads: what the unit was made from, as JSON."""
    values = unit.variant.values
    about = {
        "constants": {
            argument.name: _json_of(argument.value) for argument in unit.arguments if argument.type == "constexpr"
        },
        "options": {**dict(facts.options), **dict(unit.options)},
        "axes": {name: word_of(value) if isinstance(value, Spelled) else value for name, value in values},
        "types": {argument.name: argument.type for argument in run_time_arguments(unit)},
        "holds": [held for argument in run_time_arguments(unit) for held in _held(argument)],
        "grid": unit.grid,
        "requires": unit.requires,
        "source": facts.source_digest,
    }
    return json.dumps(about, sort_keys=True, separators=(",", ":"))


def _held(argument: Argument) -> list[str]:
    """What the unit takes for granted of an argument, by promise or hint, as a unit's name has hints."""
    if argument.equal is not None or (argument.constant and argument.value == 1):
        return [f"{argument.name}=={1 if argument.equal is None else argument.equal}"]
    return [f"{argument.name}%{argument.divisibility}"] if argument.divisibility > 1 else []


def _json_of(value: Constant) -> object:
    """A constant by its text where JSON has no exact form for it, so that it is told from a text."""
    return {"spelled": value.text} if isinstance(value, Spelled) else value


def _architecture(target: Target) -> tuple[int, int | str]:
    """(kind, arch): a number for CUDA (90) and CPU (2 for x86-64-v2, and so on; aarch64 is 8), a string for HIP.

    Triton makes `sm_90a`-like images from 90 on, which run on that architecture alone; the plain ones below run on
    any later minor of the same major.
    """
    if target.kind is Backend.CPU:
        return (ARCH_EXACT, _AARCH64) if target.arch == AARCH64 else (ARCH_FORWARD, 2 + X86_LEVELS.index(target.arch))
    if target.kind is Backend.HIP:
        return ARCH_EXACT, target.arch
    return ARCH_FORWARD if target.arch in _FORWARD_ARCHITECTURES else ARCH_EXACT, int(target.arch)


def _axis_numbers(kernel: KernelInterface, unit: Unit) -> tuple[int, ...]:
    """One byte for each axis: the value's number from 1, or 0 where the unit's target has no such axis."""
    values = dict(unit.variant.values)
    return tuple(value_number(axis, values[axis.name]) if axis.name in values else 0 for axis in kernel.axes)


def _type_code(type_text: str) -> int:
    if type_text.startswith("*"):
        return POINTER | TYPE_CODES.get(element_type(type_text), 0)
    if type_text.startswith("tensordesc"):
        return DESCRIPTOR | TYPE_CODES.get(element_type(type_text), 0)
    return 0 if type_text == ABSENT else TYPE_CODES[type_text]


def _constants(unit: Unit) -> dict[str, int]:
    """The axes and constexprs that grid and requirements are computed from."""
    constants = {name: int(value) for name, value in unit.variant.values if isinstance(value, int)}
    return constants | {
        argument.name: argument.value
        for argument in unit.arguments
        if argument.type == "constexpr" and isinstance(argument.value, int)
    }


@lru_cache(1024)  # the units of a kernel have the same expressions
def _parse(parse: Callable[..., Expression], text: str, names: tuple[str, ...]) -> Expression:
    return parse(text, names)


def _steps(bound: tuple[tuple[str, ...], Mapping[str, int]], text: str, parse: Callable[..., Expression]) -> str:
    """An expression for run-time arguments of such names and such constants."""
    names, constants = bound
    return _pack_steps(compile_grid(_parse(parse, text, (*names, *constants)), names, constants))


def _pack_steps(program: GridProgram) -> str:
    return pack_rows("steps", ((operand, opcode, 0) for opcode, operand in program.steps))


def _slot_numbers(unit: Unit) -> dict[str, list[int]]:
    """Slots by name: of an argument, of a tuple as a whole, and of each leaf."""
    numbers: dict[str, list[int]] = {}
    position = 0
    for argument in run_time_arguments(unit):
        for name, _ in leaves_of(argument):
            for owner in {argument.name, name}:
                numbers.setdefault(owner, []).append(position)
            position += 1
    return numbers


def _parameter_rows(unit: Unit, facts: Facts, codes: Sequence[int]) -> Iterator[tuple[tuple[int, int, int, int], str]]:
    """Records of parameters, each with that of its tensor descriptor, or with nothing."""
    slots = _slot_numbers(unit)
    descriptors = {descriptor.argument: descriptor for descriptor in facts.tensor_descriptors}
    buffers = 0
    for parameter in facts.parameters:
        kind = PARAMETER_KINDS[parameter.kind]
        if parameter.kind in ("argument", "descriptor"):
            for slot in _slots_of(unit, slots, parameter):
                code = codes[slot]
                if code & DESCRIPTOR and not code & POINTER:
                    passed = pack_rows("descriptors", [_descriptor(descriptors, parameter)])
                    yield (PARAMETER_KINDS["descriptor"], code, slot, 0), passed
                else:
                    yield (kind, code, slot, int(parameter.written)), ""
        else:
            yield (kind, POINTER, 0, buffers if parameter.kind == "buffer" else 0), ""
            buffers += parameter.kind == "buffer"


def _slots_of(unit: Unit, slots: Mapping[str, list[int]], parameter: Parameter) -> list[int]:
    if parameter.name not in slots:
        raise BugError(f"{unit}: its facts name a parameter `{parameter.name}` that is not among its arguments")
    return slots[parameter.name]


def _descriptor(descriptors: Mapping[str, TensorDescriptor], parameter: Parameter) -> tuple[int, ...]:
    """The record of a tensor descriptor."""
    found = descriptors.get(parameter.name)
    if found is None:
        raise BugError(f"facts have no tensor descriptor for parameter `{parameter.name}`")
    rank = len(found.block_shape)
    block = [*found.block_shape, *[0] * (5 - rank)]
    return (
        found.tma, rank, found.element_type, found.element_bytes, found.swizzle, found.fp4_padded, 0, 0, *block,
    )  # fmt: skip


def _hint_rows(unit: Unit, kernel: KernelInterface, codes: Sequence[int]) -> list[tuple[int, int, int]]:
    """What chooses the unit: the spec's hints, and whether an argument that other units have is absent here."""
    slots = _slot_numbers(unit)
    rows = [
        (place, HINT_KINDS["present" if code else "absent"], 0)
        for place, (slot, code) in enumerate(zip(kernel.slots, codes, strict=True))
        if slot.optional and (slot_code(slot) & (POINTER | DESCRIPTOR) or not code)
    ]
    for hint in unit.variant.hints:
        kind = HINT_KINDS["one" if hint.divisor == 1 else "divisible"]
        rows += [(slot, kind, hint.divisor) for slot in slots[hint.argument]]
    return rows


def _promise_rows(unit: Unit) -> list[tuple[int, int, int]]:
    """What the kernel was compiled to rely on and no hint tests: alignments, 32-bit ranges, values."""
    slots = _slot_numbers(unit)
    hinted = {hint.argument: hint.divisor for hint in unit.variant.hints}
    rows = []
    for argument in run_time_arguments(unit):
        if argument.divisibility > max(1, hinted.get(argument.name, 0)):
            rows += [(slot, HINT_KINDS["divisible"], argument.divisibility) for slot in slots[argument.name]]
        if argument.range32:
            rows += [(slot, HINT_KINDS["range32"], 0) for slot in slots[argument.name]]
        if argument.equal is not None:
            rows += [(slot, HINT_KINDS["equal"], argument.equal % 2**32) for slot in slots[argument.name]]
    return rows


def _rule_row(tables: Tables, kernel: KernelInterface, rule: SelectionRule) -> Row:
    names = [slot.name for slot in kernel.slots]
    conditions = []
    for expression, relation, bound in rule.conditions:
        program = compile_grid(parse_grid(expression, names), names, {})
        steps = tables.shared_span("steps", _pack_steps(program))
        conditions.append((*steps, RELATIONS[relation], 0, bound))
    assignments = [_assignment(kernel, name, value) for name, value in rule.axes]
    texts = (tables.text(rule.device), tables.text(rule.target), tables.text(rule.row), 0)
    return (*tables.span("conditions", conditions), *tables.span("assignments", assignments), *texts)


def _assignment(kernel: KernelInterface, name: str, value: Plain) -> tuple[int, int]:
    for number, axis in enumerate(kernel.axes):
        for place, each in enumerate(axis.values, 1):
            if axis.name == name and (type(plain(each)), plain(each)) == (type(value), value):
                return number, place
    raise PlanError(f"selection of `{kernel.name}`: there is no axis value `{name}={format_constant(value)}`")
