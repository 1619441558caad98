"""Parallel assignment of tensors. In: (value, buffer) pairs. Out: the loops, none reading what is overwritten.

Pairs of one shape share a nest. Where a buffer is still read by a later pair, or at another place of its own nest, the
value goes through a buffer of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from precast.engines.cpu import memory, nests
from precast.engines.cpu.ir import Value
from precast.engines.cpu.joining import join_dimensions
from precast.engines.cpu.kernel import Kernel
from precast.engines.cpu.values import Buffer, Cursor, Plain

Pair = tuple[Value, Buffer]


def assign(kernel: Kernel, pairs: Sequence[Pair]) -> None:
    """Assigns all values to their buffers at once."""
    pending = {pair: _reads(kernel, pair) for pair in pairs if not _is_there(kernel, pair)}
    copies: list[tuple[Buffer, Buffer]] = []
    while pending:
        group = _find_group(pending)
        if group:
            _emit_group(kernel, group)
        else:
            value, target = next(iter(pending))
            shadow = kernel.context.allocate(value.type)
            kernel.write_value(kernel, value, shadow)
            copies.append((shadow, target))
            group = [(value, target)]
        for pair in group:
            del pending[pair]
    for shadow, target in copies:
        copy_buffer(kernel, shadow, target)


def _is_there(kernel: Kernel, pair: Pair) -> bool:
    place = kernel.context.places.get(pair[0])
    return isinstance(place, Buffer) and (place.pointer, place.turned) == (pair[1].pointer, pair[1].turned)


def _reads(kernel: Kernel, pair: Pair) -> set[tuple[str, bool]]:
    """Pointers of the buffers that evaluating the value reads, and whether at another place."""
    found = set()
    for value, moved in kernel.analysis.buffers_read(pair[0]):
        place = kernel.context.places.get(value)
        if isinstance(place, Buffer):
            found.add((place.pointer, moved or place.turned != pair[1].turned or place.shape != pair[1].shape))
    return found


def _find_group(pending: dict[Pair, set[tuple[str, bool]]]) -> list[Pair]:
    """Pairs of one shape whose targets nothing else that is pending reads, nor they themselves elsewhere."""
    for shape in dict.fromkeys(target.shape for _, target in pending):
        group = [pair for pair in pending if pair[1].shape == shape]
        targets = {target.pointer for _, target in group}
        others = [reads for pair, reads in pending.items() if pair[1].shape != shape]
        read_later = {pointer for reads in others for pointer, _ in reads}
        read_elsewhere = {pointer for pair in group for pointer, moved in pending[pair] if moved}
        if not targets & (read_later | read_elsewhere):
            return group
    return []


def _emit_group(kernel: Kernel, group: list[Pair]) -> None:
    context = kernel.context
    shape = group[0][1].shape
    values = [value for value, _ in group]
    joined = join_dimensions(context, shape, values)
    nest = nests.plan_nest(context, joined, nests.last_wide_dimension(shape), nests.widest_bits(values))

    def body(cursor: Cursor, _: list[Plain]) -> Sequence[Plain]:
        forms = [context.plain(value, cursor) for value in values]
        for (_value, buffer), form in zip(group, forms, strict=True):
            memory.write_buffer(context, buffer, cursor, form)
        return []

    nests.emit_nest(context, nest, values, body)


def copy_buffer(kernel: Kernel, source: Buffer, target: Buffer) -> None:
    """Copies one buffer into another of the same shape."""
    context = kernel.context
    nest = nests.plan_nest(context, source.shape, nests.last_wide_dimension(source.shape))

    def body(cursor: Cursor, _: list[Plain]) -> Sequence[Plain]:
        memory.write_buffer(context, target, cursor, memory.read_buffer(context, source, cursor))
        return []

    nests.emit_nest(context, nest, [], body)
