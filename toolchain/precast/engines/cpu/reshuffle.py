"""Ops that move elements about: reshape, join, cat, gather, histogram, unsplat. In: the op. Out: a buffer."""

from __future__ import annotations

from collections.abc import Sequence

from precast.engines.cpu import memory, nests
from precast.engines.cpu.ir import Op, Type, Value
from precast.engines.cpu.kernel import Kernel
from precast.engines.cpu.shapes import is_view
from precast.engines.cpu.values import Affine, Buffer, Cursor, Form, Plain, Scalar


def _buffer_of(kernel: Kernel, value: Value) -> Buffer:
    """The value's buffer, filled now if it had none."""
    place = kernel.context.places.get(value)
    return place if isinstance(place, Buffer) else kernel.fill(value)


def lower_flip(kernel: Kernel, operation: Op) -> None:
    """The operand's buffer seen with one dimension in reverse."""
    view = _buffer_of(kernel, operation.operands[0]).flipped(int(operation.attributes["axis"]))
    kernel.context.shared.add(view.pointer)
    kernel.context.places[operation.result] = view


def lower_reshape(kernel: Kernel, operation: Op) -> None:
    """The operand's buffer seen with another shape; reshapes by dimensions of size 1 are lazy."""
    if is_view(operation):
        if operation.result in kernel.analysis.materialized:
            kernel.fill(operation.result)
        return
    source = _buffer_of(kernel, operation.operands[0])
    if source.turned:
        source = kernel.fill(operation.operands[0])
    kernel.context.shared.add(source.pointer)
    kernel.context.places[operation.result] = Buffer(source.pointer, source.element, operation.result.type.shape)


def lower_join(kernel: Kernel, operation: Op) -> None:
    """Two tensors side by side in a new last dimension."""
    context = kernel.context
    buffer = context.allocate(operation.result.type)
    shape = operation.operands[0].type.shape
    nest = nests.plan_nest(context, shape, nests.last_wide_dimension(shape))

    def body(cursor: Cursor, _: list[Plain]) -> Sequence[Plain]:
        for half, operand in enumerate(operation.operands):
            place = Cursor((*cursor.index, context.b.index(half)), cursor.lane, cursor.width)
            memory.write_buffer(context, buffer, place, context.evaluate(operand, cursor))
        return []

    nests.emit_nest(context, nest, operation.operands, body)
    context.places[operation.result] = buffer


def lower_cat(kernel: Kernel, operation: Op) -> None:
    """One tensor after the other along the first dimension."""
    context = kernel.context
    buffer = context.allocate(operation.result.type)
    start = 0
    for operand in operation.operands:
        pointer = context.b.offset(buffer.pointer, context.b.index(start), buffer.element)
        kernel.write_value(kernel, operand, Buffer(pointer, buffer.element, operand.type.shape))
        start += operand.type.count
    context.places[operation.result] = buffer


def lower_gather(kernel: Kernel, operation: Op) -> None:
    """result[…, i, …] = source[…, indices[…, i, …], …] along one axis."""
    context = kernel.context
    source_value, indices = operation.operands
    source = _buffer_of(kernel, source_value)
    axis = int(operation.attributes["axis"])
    result = context.allocate(operation.result.type)
    nest = nests.plan_nest(context, operation.result.type.shape, None)

    def body(cursor: Cursor, _: list[Plain]) -> Sequence[Plain]:
        taken = context.evaluate(indices, cursor)
        assert isinstance(taken, Scalar)
        # Sizes are powers of two, and an index is never below zero: small ones use all their bits.
        inside = context.b.integer("andi", context.b.wide(taken, signed=False), source.shape[axis] - 1)
        place = Cursor((*cursor.index[:axis], inside, *cursor.index[axis + 1 :]), None, 1)
        memory.write_buffer(context, result, cursor, memory.read_buffer(context, source, place))
        return []

    nests.emit_nest(context, nest, [indices], body)
    context.places[operation.result] = result


_COUNTED_AT_ONCE = 8


def lower_histogram(kernel: Kernel, operation: Op) -> None:
    """Counts of each bin; values outside the bins and masked-off ones go into one more that nobody reads."""
    context, b = kernel.context, kernel.context.b
    bins, element = operation.result.type.shape[0], operation.result.type.element
    counts = context.allocate(Type(element, (bins + 1,)))
    result = Buffer(counts.pointer, element, (bins,))
    _clear(kernel, result)
    source, *mask = operation.operands
    lane = nests.last_wide_dimension(source.type.shape)
    nest = nests.plan_nest(context, source.type.shape, lane, width=_COUNTED_AT_ONCE)

    def body(cursor: Cursor, _: list[Plain]) -> Sequence[Plain]:
        condition = context.evaluate(mask[0], cursor) if mask else None
        if memory.is_false(condition):
            return []
        value = b.vector(context.evaluate(source, cursor), cursor.width)
        wide = b.vector(b.resize(value, "i64", signed=False), cursor.width)
        inside: Form = b.compare("ult", wide, b.index(bins))
        if condition is not None:
            inside = b.binary("andi", inside, b.vector(condition, cursor.width))
        slots = b.vector(b.select(inside, wide, b.index(bins), cursor.width), cursor.width)
        for slot in range(cursor.width):
            place = Cursor((b.extract(slots, slot),), None, 1)
            old = b.plain(memory.read_buffer(context, counts, place), 1)
            memory.write_buffer(context, counts, place, b.binary("addi", old, b.constant(1, element)))
        return []

    nests.emit_nest(context, nest, operation.operands, body)
    context.places[operation.result] = result


def _clear(kernel: Kernel, buffer: Buffer) -> None:
    context = kernel.context
    nest = nests.plan_nest(context, buffer.shape, nests.last_wide_dimension(buffer.shape))

    def body(cursor: Cursor, _: list[Plain]) -> Sequence[Plain]:
        memory.write_buffer(context, buffer, cursor, context.b.zero(buffer.element, 1))
        return []

    nests.emit_nest(context, nest, [], body)


def lower_unsplat(kernel: Kernel, operation: Op) -> None:
    """The only element of a tensor."""
    context = kernel.context
    zero = context.b.index(0)
    cursor = Cursor(tuple(zero for _ in operation.operands[0].type.shape), None, 1)
    form = context.evaluate(operation.operands[0], cursor)
    assert isinstance(form, Scalar) and not isinstance(form, Affine)
    context.places[operation.result] = form
