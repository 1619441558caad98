"""Ops that move elements about: reshape, join, cat, gather, histogram, unsplat. In: the op. Out: a buffer."""

from __future__ import annotations

from collections.abc import Sequence

from precast.engines.cpu import memory, nests
from precast.engines.cpu.context import Context
from precast.engines.cpu.ir import ELEMENT_BITS, Op, Type, Value
from precast.engines.cpu.kernel import Kernel
from precast.engines.cpu.shapes import is_view
from precast.engines.cpu.values import Affine, Buffer, Cursor, Form, Plain, Scalar, Vector


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
_MOST_COUNTERS = 4096  # of all tables together: they stay in the first-level cache


def lower_histogram(kernel: Kernel, operation: Op) -> None:
    """Counts of each bin; values outside the bins and masked-off ones go into one more that nobody reads.

    Neighbours count in tables of their own, added up at the end: equal ones need not wait for one counter.
    """
    context = kernel.context
    bins, element = operation.result.type.shape[0], operation.result.type.element
    most = min(_MOST_COUNTERS, operation.operands[0].type.count)
    tables = next(each for each in (4, 2, 1) if each == 1 or each * bins <= most)
    counts = context.allocate(Type(element, (tables * bins + 1,)))
    _clear(kernel, Buffer(counts.pointer, element, (tables * bins,)))
    _count(kernel, operation, counts, tables)
    context.places[operation.result] = _add_tables(kernel, Buffer(counts.pointer, element, (tables, bins)))


def _count(kernel: Kernel, operation: Op, counts: Buffer, tables: int) -> None:
    context, b = kernel.context, kernel.context.b
    source, *mask = operation.operands
    lane = nests.last_wide_dimension(source.type.shape)
    nest = nests.plan_nest(context, source.type.shape, lane, width=_COUNTED_AT_ONCE)
    bins = operation.result.type.shape[0]

    def body(cursor: Cursor, _: list[Plain]) -> Sequence[Plain]:
        condition = context.evaluate(mask[0], cursor) if mask else None
        if memory.is_false(condition):
            return []
        slots = _find_slots(context, context.evaluate(source, cursor), condition, bins, tables, cursor.width)
        for lane in range(cursor.width):
            place = Cursor((b.wide(b.extract(slots, lane), signed=False),), None, 1)
            old = b.plain(memory.read_buffer(context, counts, place), 1)
            memory.write_buffer(context, counts, place, b.binary("addi", old, b.constant(1, counts.element)))
        return []

    nests.emit_nest(context, nest, operation.operands, body)


def _find_slots(context: Context, value: Form, condition: Form | None, bins: int, tables: int, width: int) -> Vector:
    """Each lane's counter as an i32; the one after all tables for what is not counted."""
    b = context.b
    wide = b.vector(value, width)
    if ELEMENT_BITS[wide.element] < 32:
        wide = b.vector(b.resize(wide, "i32", signed=False), width)
    inside: Form = b.compare("ult", wide, b.constant(bins, wide.element))
    if condition is not None:
        inside = b.binary("andi", inside, b.vector(condition, width))
    firsts = b.dense([lane % tables * bins for lane in range(width)], "i32")
    slots = b.binary("addi", b.resize(wide, "i32"), firsts)
    return b.vector(b.select(inside, slots, b.constant(tables * bins, "i32"), width), width)


def _add_tables(kernel: Kernel, tables: Buffer) -> Buffer:
    """The first table, to which the others are added."""
    context, b = kernel.context, kernel.context.b
    count, bins = tables.shape
    result = Buffer(tables.pointer, tables.element, (bins,))
    nest = nests.plan_nest(context, (bins,), nests.last_wide_dimension((bins,)))

    def body(cursor: Cursor, _: list[Plain]) -> Sequence[Plain]:
        lane = None if cursor.lane is None else 1
        places = [Cursor((b.index(table), *cursor.index), lane, cursor.width) for table in range(count)]
        total, *others = (b.plain(memory.read_buffer(context, tables, place), cursor.width) for place in places)
        for each in others:
            total = b.binary("addi", total, each)
        memory.write_buffer(context, result, cursor, total)
        return []

    if count > 1:
        nests.emit_nest(context, nest, [], body)
    return result


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
