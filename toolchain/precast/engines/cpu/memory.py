"""Reading and writing memory. In: pointer, mask and value forms. Out: forms, and the text of loads and stores.

Stride 1 gives vector accesses, uniform pointers scalar ones, everything else gathers and scatters. A masked-off lane
touches no memory.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from precast.engines.cpu.builder import Builder
from precast.engines.cpu.ir import ELEMENT_BITS, Op, element_bytes
from precast.engines.cpu.syntax import decode_float8
from precast.engines.cpu.values import (
    Affine,
    Buffer,
    Cursor,
    Form,
    Plain,
    Scalar,
    Vector,
    memory_type,
)  # fmt: skip

if TYPE_CHECKING:
    from precast.engines.cpu.context import Context


_BEYOND_FLOAT8 = 1e6


def encode_float(value: float, element: str) -> int:
    """The bits of a bf16 or 8-bit float constant, rounded to nearest even."""
    if element == "bf16":
        bits = int(struct.unpack("<I", struct.pack("<f", value))[0])
        if value != value:
            return (bits >> 16) | 0x40
        return (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    values = {bits: decode_float8(bits, element) for bits in range(0x100)}
    if value != value:
        return next(bits for bits, each in values.items() if each != each)
    if math.isinf(value) and value in values.values():
        return next(bits for bits, each in values.items() if each == value)
    limited = math.copysign(min(abs(value), _BEYOND_FLOAT8), value)
    finite = [bits for bits, each in values.items() if math.isfinite(each)]
    unlike = {bits: math.copysign(1, values[bits]) != math.copysign(1, value) for bits in finite}
    return min(finite, key=lambda bits: (abs(values[bits] - limited), unlike[bits], bits & 1, bits))


def _aligned(element: str, type_: str = "i64") -> str:
    """The alignment attribute of an access to single elements."""
    return f"{{alignment = {element_bytes(element)} : {type_}}}"


# Buffers.


def buffer_pointer(context: Context, buffer: Buffer, cursor: Cursor) -> Form:
    """The address form of a buffer's element at the cursor."""
    b = context.b
    linear = b.index(buffer.first)
    for index, stride in zip(cursor.index, buffer.strides, strict=True):
        linear = b.integer("addi", linear, b.integer("muli", index, stride))
    base = Scalar(b.offset(buffer.pointer, linear, buffer.element), "ptr")
    return base if cursor.lane is None else Affine(base, b.index(buffer.strides[cursor.lane]), buffer.element)


def read_buffer(context: Context, buffer: Buffer, cursor: Cursor) -> Form:
    return load(context, buffer_pointer(context, buffer, cursor), None, None, buffer.element, cursor.width)


def write_buffer(context: Context, buffer: Buffer, cursor: Cursor, value: Form) -> None:
    store(context, buffer_pointer(context, buffer, cursor), value, None, buffer.element, cursor.width)


# Loads.


def evaluate_load(context: Context, operation: Op, cursor: Cursor) -> Form:
    """A `tt.load` at a cursor; without `other`, masked-off lanes are zero."""
    operands = operation.operands
    mask = context.evaluate(operands[1], cursor) if len(operands) > 1 else None
    other = context.evaluate(operands[2], cursor) if len(operands) > 2 else None
    element = operation.result.type.element
    if isinstance(mask, Scalar) and mask.constant == 0:
        return other if other is not None else context.b.zero(element, 1)
    pointer = context.evaluate(operands[0], cursor)
    volatile = bool(operation.attributes.get("isVolatile"))
    return load(context, pointer, mask, other, element, cursor.width, volatile)


def load(
    context: Context, pointer: Form, mask: Form | None, other: Form | None, element: str, width: int,
    volatile: bool = False,
) -> Form:  # fmt: skip
    """Where the mask is not set, `other`; a volatile load has one lane."""
    b = context.b
    if mask is None or (isinstance(mask, Scalar) and mask.constant):
        return _load_all(b, pointer, element, width, volatile)
    fallback = other if other is not None else b.zero(element, 1)
    if isinstance(mask, Scalar):
        return _load_if(context, pointer, mask, fallback, element, width, volatile)
    return _load_masked(context, pointer, mask, b.vector(fallback, width), element, width)


def _load_all(b: Builder, pointer: Form, element: str, width: int, volatile: bool = False) -> Form:
    if isinstance(pointer, Scalar):
        return _from_memory(b, Scalar(_load_text(b, pointer.name, element, memory_type(element), volatile), element))
    if isinstance(pointer, Affine) and pointer.stride.constant in (1, -1) and width > 1:
        reverse = pointer.stride.constant == -1
        base = b.offset(pointer.base.name, b.index(1 - width), element) if reverse else pointer.base.name
        name = _load_text(b, base, element, f"vector<{width}x{memory_type(element)}>")
        vector = Vector(name, element, width)
        if reverse:
            stored = Vector(name, memory_type(element) if element == "i1" else element, width)
            turned = b.shuffle(stored, stored, range(width - 1, -1, -1))
            vector = Vector(turned.name, element, width)
        return _from_memory(b, vector)
    everything = b.vector(b.constant(1, "i1"), width)
    return _gather(b, b.vector(pointer, width), everything, None, element, width)


def _load_text(b: Builder, pointer: str, element: str, type_: str, volatile: bool = False) -> str:
    word = "volatile " if volatile else ""
    return b.emit(f"llvm.load {word}{pointer} {_aligned(element)} : !llvm.ptr -> {type_}")


def _from_memory(b: Builder, form: Plain) -> Plain:
    """An `i1` is a byte in memory: any but zero is true."""
    if form.element != "i1":
        return form
    raw: Plain = Vector(form.name, "i8", form.width) if isinstance(form, Vector) else Scalar(form.name, "i8")
    zero = b.filled(0, "i8", raw.width) if isinstance(raw, Vector) else b.constant(0, "i8")
    return b.compare("ne", raw, zero)


def _to_memory(b: Builder, form: Plain) -> Plain:
    return b.cast("arith.extui", form, "i8") if form.element == "i1" else form


def _load_if(
    context: Context, pointer: Form, mask: Scalar, fallback: Form, element: str, width: int, volatile: bool
) -> Form:
    b = context.b
    lanes = 1 if isinstance(pointer, Scalar) and isinstance(fallback, Scalar) else width
    like: Plain = b.zero(element, lanes)

    def formed(form: Form) -> Sequence[Plain]:
        return [b.vector(form, width) if isinstance(like, Vector) else b.plain(form, 1)]

    return context.branch(
        mask, [like], lambda: formed(_load_all(b, pointer, element, width, volatile)), lambda: formed(fallback)
    )[0]


def _load_masked(context: Context, pointer: Form, mask: Form, other: Vector, element: str, width: int) -> Form:
    b = context.b
    if isinstance(pointer, Affine) and pointer.stride.constant == 1:
        if _has_masks(context, element):
            return _load_native(context, pointer, b.vector(mask, width), other, element, width)
        return _load_bounced(context, pointer, b.vector(mask, width), other, element, width)
    return _gather(b, b.vector(pointer, width), b.vector(mask, width), other, element, width)


def _load_native(context: Context, pointer: Affine, mask: Vector, other: Vector, element: str, width: int) -> Form:
    """Masked loads of no more lanes than the machine's own, under masks that LLVM knows nothing of, where these take
    vectors too: there LLVM 22 reads lanes that are off if it knows that all of a vector are."""
    b, machine = context.b, context.machine
    kept = _to_memory(b, other)
    assert isinstance(kept, Vector)
    bits = 8 * element_bytes(element)
    size = width if machine.has_mask_registers else min(width, machine.lanes(bits))
    parts = []
    for first in range(0, width, size):
        lanes, filling = mask, kept
        if size < width:
            lanes, filling = (b.shuffle(each, each, range(first, first + size)) for each in (mask, kept))
            lanes = _signs(b, b.hidden(b.cast("arith.extsi", lanes, f"i{bits}")))
        place = b.offset(pointer.base.name, b.index(first), element)
        text = f"llvm.intr.masked.load {place}, {lanes.name}, {filling.name} {_aligned(element, 'i32')}"
        name = b.emit(f"{text} : (!llvm.ptr, {lanes.type}, {filling.type}) -> {filling.type}")
        parts.append(Vector(name, kept.element, size))
    return _from_memory(b, Vector(b.joined(parts).name, element, width))


def _signs(b: Builder, integers: Plain) -> Vector:
    mask = b.compare("slt", integers, b.zero(integers.element, integers.width if isinstance(integers, Vector) else 1))
    assert isinstance(mask, Vector)
    return mask


def _has_masks(context: Context, element: str) -> bool:
    """Whether the machine loads and stores vectors of the element under a mask, without a branch for each lane."""
    return bool(context.machine.masks) and 8 * element_bytes(element) >= context.machine.masks


def _each_set_lane(context: Context, mask: Vector, copy: Callable[[Scalar], None]) -> None:
    """A loop over the lanes whose mask is set."""
    b = context.b
    bits = _mask_bits(b, mask)

    def body(index: Scalar, _: list[Plain]) -> list[Plain]:
        lane = b.resize(index, bits.element)
        assert isinstance(lane, Scalar)
        is_set = b.compare("ne", b.integer("andi", b.integer("shrui", bits, lane), 1), b.constant(0, bits.element))
        assert isinstance(is_set, Scalar)

        def run() -> list[Plain]:
            copy(index)
            return []

        context.branch(is_set, [], run)
        return []

    b.loop(b.index(0), b.index(mask.width), 1, [], body)


def _mask_bits(b: Builder, mask: Vector) -> Scalar:
    """A mask as an integer with a bit for each lane; fewer than eight lanes are filled up with unset ones."""
    if mask.width < 8:
        unset = b.filled(0, "i1", mask.width)
        lanes = [min(lane, mask.width) for lane in range(8)]
        mask = b.shuffle(mask, unset, lanes)
    element = f"i{mask.width}"
    packed = b.emit(f"vector.bitcast {mask.name} : {mask.type} to vector<1x{element}>")
    return b.scalar(f"vector.extract {packed}[0] : {element} from vector<1x{element}>", element)


def _load_bounced(context: Context, pointer: Affine, mask: Vector, other: Vector, element: str, width: int) -> Form:
    """Where the machine would branch for each lane: the set lanes are copied one by one over `other` in scratch."""
    b = context.b
    bounce = context.bounce
    kept = _to_memory(b, other)
    stored = memory_type(element)
    b.line(f"llvm.store {kept.name}, {bounce} {{alignment = 64 : i64}} : {kept.type}, !llvm.ptr")

    def copy(index: Scalar) -> None:
        source, target = b.offset(pointer.base.name, index, element), b.offset(bounce, index, element)
        b.line(f"llvm.store {_load_text(b, source, element, stored)}, {target} : {stored}, !llvm.ptr")

    _each_set_lane(context, mask, copy)
    name = b.emit(f"llvm.load {bounce} {{alignment = 64 : i64}} : !llvm.ptr -> {kept.type}")
    return _from_memory(b, Vector(name, element, width))


def _gather(b: Builder, pointers: Vector, mask: Vector, other: Vector | None, element: str, width: int) -> Form:
    kept = _to_memory(b, other or b.vector(b.zero(element, 1), width))
    text = f"llvm.intr.masked.gather {pointers.name}, {mask.name}, {kept.name} {_aligned(element, 'i32')}"
    name = b.emit(f"{text} : ({pointers.type}, {mask.type}, {kept.type}) -> {kept.type}")
    return _from_memory(b, Vector(name, element, width))


# Stores.


def store_mask(context: Context, operation: Op, cursor: Cursor) -> Form | None:
    """The mask of a `tt.store` at a cursor, None when it has none."""
    return context.evaluate(operation.operands[2], cursor) if len(operation.operands) > 2 else None


def is_false(mask: Form | None) -> bool:
    return isinstance(mask, Scalar) and mask.constant == 0


def store(context: Context, pointer: Form, value: Form, mask: Form | None, element: str, width: int) -> None:
    b = context.b
    if isinstance(mask, Scalar) and mask.constant is None:

        def guarded() -> list[Plain]:
            store(context, pointer, value, None, element, width)
            return []

        context.branch(mask, [], guarded)
        return
    if isinstance(pointer, Scalar):
        _store_uniform(context, pointer, value, mask, width)
    elif mask is None or isinstance(mask, Scalar):
        _store_all(b, pointer, value, element, width)
    else:
        _store_masked(context, pointer, _to_memory(b, b.vector(value, width)), mask, element, width)


def _store_uniform(context: Context, pointer: Scalar, value: Form, mask: Form | None, width: int) -> None:
    """Every lane writes the same place: the last one that is not masked off stays, as in program order."""
    b = context.b
    if mask is None or isinstance(mask, Scalar):
        item = value if isinstance(value, Scalar) else b.extract(b.vector(value, width), width - 1)
        _store_text(b, _to_memory(b, item), pointer.name)
        return
    _store_masked(context, pointer, _to_memory(b, b.vector(value, width)), mask, value.element, width)


def _store_text(b: Builder, value: Plain, pointer: str) -> None:
    size = element_bytes(value.element)
    b.line(f"llvm.store {value.name}, {pointer} {{alignment = {size} : i64}} : {value.type}, !llvm.ptr")


def _store_all(b: Builder, pointer: Form, value: Form, element: str, width: int) -> None:
    stored = _to_memory(b, b.vector(value, width))
    if isinstance(pointer, Affine) and pointer.stride.constant == 1:
        _store_text(b, stored, pointer.base.name)
        return
    everything = b.vector(b.constant(1, "i1"), width)
    _scatter(b, b.vector(pointer, width), stored, everything, element)


def _store_masked(context: Context, pointer: Form, stored: Plain, mask: Form, element: str, width: int) -> None:
    b = context.b
    if isinstance(pointer, Affine) and pointer.stride.constant == 1:
        lanes = b.vector(mask, width)
        if not _has_masks(context, element):
            _store_bounced(context, pointer, stored, lanes, element)
            return
        if stored.type.split("x")[1][0] == "i" and element_bytes(element) < 8:
            lanes = _opaque_mask(b, lanes)
        text = f"llvm.intr.masked.store {stored.name}, {pointer.base.name}, {lanes.name} {_aligned(element, 'i32')}"
        b.line(f"{text} : {stored.type}, {lanes.type} into !llvm.ptr")
        return
    _scatter(b, b.vector(pointer, width), stored, b.vector(mask, width), element)


def _opaque_mask(b: Builder, mask: Vector) -> Vector:
    """The mask as LLVM cannot see through it.

    LLVM 22 makes a narrowing store of a constant mask with one lane a store of that lane before it was narrowed.
    """
    bits = _mask_bits(b, mask)
    hidden = b.emit(f'llvm.inline_asm "", "=r,0" {bits.name} : ({bits.type}) -> {bits.type}')
    packed = b.emit(f"vector.from_elements {hidden} : vector<1x{bits.type}>")
    lanes = ELEMENT_BITS[bits.element]
    wide = Vector(b.emit(f"vector.bitcast {packed} : vector<1x{bits.type}> to vector<{lanes}xi1>"), "i1", lanes)
    return wide if lanes == mask.width else b.shuffle(wide, wide, range(mask.width))


def _store_bounced(context: Context, pointer: Affine, stored: Plain, mask: Vector, element: str) -> None:
    b = context.b
    bounce = context.bounce
    item = memory_type(element)
    b.line(f"llvm.store {stored.name}, {bounce} {{alignment = 64 : i64}} : {stored.type}, !llvm.ptr")

    def copy(index: Scalar) -> None:
        source, target = b.offset(bounce, index, element), b.offset(pointer.base.name, index, element)
        b.line(f"llvm.store {_load_text(b, source, element, item)}, {target} {_aligned(element)} : {item}, !llvm.ptr")

    _each_set_lane(context, mask, copy)


def _scatter(b: Builder, pointers: Vector, stored: Plain, mask: Vector, element: str) -> None:
    text = f"llvm.intr.masked.scatter {stored.name}, {pointers.name}, {mask.name} {_aligned(element, 'i32')}"
    b.line(f"{text} : {stored.type}, {mask.type} into {pointers.type}")


# Atomic accesses of one element, in one order that all threads see.


def load_atomic(b: Builder, pointer: Scalar, element: str) -> Scalar:
    name = b.emit(f"llvm.load {pointer.name} atomic seq_cst {_aligned(element)} : !llvm.ptr -> {memory_type(element)}")
    result = _from_memory(b, Scalar(name, element))
    assert isinstance(result, Scalar)
    return result


def store_atomic(b: Builder, pointer: Scalar, value: Scalar) -> None:
    stored, element = _to_memory(b, value), value.element
    b.line(f"llvm.store {stored.name}, {pointer.name} atomic seq_cst {_aligned(element)} : {stored.type}, !llvm.ptr")
