"""`tt.map_elementwise` whose function loops or loads. In: the op. Out: a buffer for each result.

The function is lowered where it stands, once, inside loops over the elements. Others are applied to vectors instead.
"""

from __future__ import annotations

from collections.abc import Sequence

from precast.engines.cpu import memory, nests
from precast.engines.cpu.ir import Op
from precast.engines.cpu.kernel import Kernel
from precast.engines.cpu.values import Cursor, Plain, Scalar


def lower_map(kernel: Kernel, operation: Op) -> None:
    """Element after element, in row-major order."""
    context = kernel.context
    shape = operation.operands[0].type.shape
    buffers = [context.allocate(each.type) for each in operation.results]

    def body(cursor: Cursor, _: list[Plain]) -> Sequence[Plain]:
        with context.region():
            given = [context.b.plain(context.evaluate(each, cursor), 1) for each in operation.operands]
            for buffer, result in zip(buffers, _call(kernel, operation, given), strict=True):
                memory.write_buffer(context, buffer, cursor, result)
        return []

    nests.emit_nest(context, nests.plan_nest(context, shape, None), operation.operands, body)
    for value, buffer in zip(operation.results, buffers, strict=True):
        context.places[value] = buffer


def _call(kernel: Kernel, operation: Op, given: Sequence[Plain]) -> list[Scalar]:
    for argument, form in zip(operation.body.arguments, given, strict=True):
        assert isinstance(form, Scalar)
        kernel.context.places[argument] = form
    kernel.lower_block(kernel, operation.body)
    return [kernel.context.scalar(each) for each in operation.body.terminator.operands]
