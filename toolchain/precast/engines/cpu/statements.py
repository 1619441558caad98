"""Ops in program order. In: a block. Out: the text of its effects; lazy tensor ops write nothing here.

Scalars are computed where they stand. Tensor ops that must be computed where they stand go to their family's module.
"""

from __future__ import annotations

from collections.abc import Callable

from precast.engines.cpu import (
    assignment,
    atomics,
    control,
    dot,
    flips,
    kinds,
    mapping,
    memory,
    nests,
    printing,
    reduce,
    reshuffle,
    scan,
    tiles,
)
from precast.engines.cpu.clock import read_nanoseconds
from precast.engines.cpu.errors import refuse
from precast.engines.cpu.ir import Block, Op, Value
from precast.engines.cpu.joining import join_dimensions
from precast.engines.cpu.kernel import Kernel
from precast.engines.cpu.strides import Strides
from precast.engines.cpu.values import Buffer, Cursor, Plain, Scalar, Vector

_NOTHING = Cursor((), None, 1)
_IGNORED = (*kinds.BARRIERS, "llvm.intr.assume")

_GLOBAL_TIMER = "mov.u64 $0, %globaltimer;"  # all that `tl.extra.cuda.globaltimer` is
_REFUSED = {
    "tt.make_tensor_descriptor": "tensor descriptors are rewritten to pointers before, for this engine",
}


def lower_block(kernel: Kernel, block: Block) -> None:
    """Everything of a block but its terminator."""
    for operation in block.operations:
        kernel.context.offer_cut()
        if operation is not block.operations[-1] or not control.is_terminator(operation):
            lower_operation(kernel, operation)


def lower_operation(kernel: Kernel, operation: Op) -> None:
    kernel.context.current = operation
    lowering = _LOWERINGS.get(operation.name)
    if operation.name in _REFUSED:
        raise refuse(operation, _REFUSED[operation.name])
    if kinds.is_by_element(operation):
        _materialize(kernel, operation)
    elif lowering:
        lowering(kernel, operation)
    elif operation.name in _IGNORED or "grid_dependency" in operation.name:
        return
    elif operation.name == "tt.map_elementwise" and kinds.runs_by_element(operation):
        mapping.lower_map(kernel, operation)
    elif kinds.is_lazy(operation):
        _materialize(kernel, operation)
    elif operation.results:
        _lower_scalar(kernel, operation)
    else:
        raise refuse(operation, "the op is not known to it")


def _materialize(kernel: Kernel, operation: Op) -> None:
    if kinds.is_by_element(operation):
        _run_loop(kernel, [each for each in operation.results if each in kernel.analysis.materialized])
        return
    for value in operation.results:
        if value in kernel.analysis.materialized and not dot.keep_widened(kernel, value):
            kernel.fill(value)


def _run_loop(kernel: Kernel, results: list[Value]) -> None:
    """Results of a loop that each element runs through for itself, in one nest."""
    pairs = [(value, kernel.context.allocate(value.type)) for value in results]
    assignment.assign(kernel, pairs)
    for value, buffer in pairs:
        kernel.context.places[value] = buffer


def write_value(kernel: Kernel, value: Value, buffer: Buffer) -> None:
    """Evaluates a tensor at every place into a buffer of its shape."""
    context = kernel.context
    lane = nests.last_wide_dimension(value.type.shape)
    along = tiles.find_source_axis(context, value, lane)
    if along is not None and lane is not None:
        tiles.emit_turned(
            context, value, along, lane, [],
            lambda cursor: context.plain(value, cursor),
            lambda cursor, vector: memory.write_buffer(context, buffer, cursor, vector),
        )  # fmt: skip
        return
    shape = join_dimensions(context, value.type.shape, [value])
    nest = nests.plan_nest(context, shape, lane, nests.widest_bits([value]))

    def body(cursor: Cursor, carried: list[Plain]) -> list[Plain]:
        memory.write_buffer(context, buffer, cursor, context.evaluate(value, cursor))
        return []

    nests.emit_nest(context, nest, [value], body)


def _lower_scalar(kernel: Kernel, operation: Op) -> None:
    kernel.context.compute_scalar(operation)


def _lower_constant(kernel: Kernel, operation: Op) -> None:
    if not operation.result.type.is_tensor:
        _lower_scalar(kernel, operation)
    else:
        _materialize(kernel, operation)


def _lower_program_id(kernel: Kernel, operation: Op) -> None:
    axis = operation.attributes["axis"] + (3 if operation.name == "tt.get_num_programs" else 0)
    kernel.context.places[operation.result] = kernel.context.program[axis]


def _lower_load(kernel: Kernel, operation: Op) -> None:
    context = kernel.context
    if operation.result.type.is_tensor and kinds.is_volatile(operation):
        _load_volatile(kernel, operation)
        return
    if operation.result.type.is_tensor:
        _materialize(kernel, operation)
        return
    form = memory.evaluate_load(context, operation, _NOTHING)
    assert isinstance(form, Scalar)
    context.places[operation.result] = form


def _load_volatile(kernel: Kernel, operation: Op) -> None:
    """Element by element into a buffer: each is read exactly once."""
    context = kernel.context
    buffer = context.allocate(operation.result.type)
    nest = nests.plan_nest(context, operation.result.type.shape, None)

    def body(cursor: Cursor, _: list[Plain]) -> list[Plain]:
        memory.write_buffer(context, buffer, cursor, memory.evaluate_load(context, operation, cursor))
        return []

    nests.emit_nest(context, nest, operation.operands, body)
    context.places[operation.result] = buffer


def _lower_assembly(kernel: Kernel, operation: Op) -> None:
    """None of a GPU's, but for the read of its clock."""
    if operation.attributes.get("asm_string") != _GLOBAL_TIMER or operation.result.type.is_tensor:
        raise refuse(operation, "it is assembly of a GPU")
    kernel.context.places[operation.result] = read_nanoseconds(kernel.context)


def _lower_poison(kernel: Kernel, operation: Op) -> None:
    """Any value will do: zero."""
    if not operation.result.type.is_tensor:
        zero = kernel.context.b.zero(operation.result.type.element, 1)
        assert isinstance(zero, Scalar)
        kernel.context.places[operation.result] = zero


def _lower_store(kernel: Kernel, operation: Op) -> None:
    """The last store of a group emits all: in each place every value is evaluated, then every one stored."""
    context = kernel.context
    group = kernel.analysis.groups[operation]
    if operation is not group[-1]:
        return
    if not operation.operands[1].type.is_tensor:
        for store in group:
            mask = memory.store_mask(context, store, _NOTHING)
            pointer, value = (context.scalar(each) for each in store.operands[:2])
            if not memory.is_false(mask):
                memory.store(context, pointer, value, mask, store.operands[1].type.element, 1)
        return
    roots = [operand for store in group for operand in store.operands]
    shape = operation.operands[1].type.shape
    lane = store_lane(kernel, group)
    along = tiles.find_source_axis(context, operation.operands[1], lane) if len(group) == 1 else None
    if along is not None and lane is not None:
        _store_turned(kernel, operation, along, lane)
        return
    joined = join_dimensions(context, shape, roots)
    nest = nests.plan_nest(context, joined, lane, nests.widest_bits([store.operands[1] for store in group]))

    def body(cursor: Cursor, carried: list[Plain]) -> list[Plain]:
        with_masks = [(store, memory.store_mask(context, store, cursor)) for store in group]
        live = [(store, mask) for store, mask in with_masks if not memory.is_false(mask)]
        values = [context.evaluate(store.operands[1], cursor) for store, _ in live]
        for (store, mask), value in zip(live, values, strict=True):
            pointer = context.evaluate(store.operands[0], cursor)
            memory.store(context, pointer, value, mask, store.operands[1].type.element, cursor.width)
        return []

    nests.emit_nest(context, nest, roots, body)


def _store_turned(kernel: Kernel, operation: Op, along: int, lane: int) -> None:
    context = kernel.context
    pointer, value, *mask = operation.operands

    def write(cursor: Cursor, vector: Vector) -> None:
        condition = memory.store_mask(context, operation, cursor)
        if not memory.is_false(condition):
            place = context.evaluate(pointer, cursor)
            memory.store(context, place, vector, condition, value.type.element, cursor.width)

    # Lines that a tile writes in part are still in the nearest cache when the next one writes the rest.
    tiles.emit_turned(
        context, value, along, lane, [pointer, *mask], lambda cursor: context.plain(value, cursor), write, inner=lane
    )


def store_lane(kernel: Kernel, group: tuple[Op, ...]) -> int | None:
    """The dimension that lanes run along: one in which the stores' addresses step by 1, else the last one."""
    shape = group[0].operands[1].type.shape
    strides = Strides(kernel.context)
    for axis in reversed(range(len(shape))):
        if shape[axis] > 1 and all(strides.along(store.operands[0], axis) == 1 for store in group):
            return axis
    return nests.last_wide_dimension(shape)


_LOWERINGS: dict[str, Callable[[Kernel, Op], None]] = {
    "arith.constant": _lower_constant,
    "tt.get_program_id": _lower_program_id,
    "tt.get_num_programs": _lower_program_id,
    "tt.load": _lower_load,
    "ub.poison": _lower_poison,
    "tt.elementwise_inline_asm": _lower_assembly,
    "tt.store": _lower_store,
    "tt.reduce": reduce.lower_reduce,
    "tt.scan": scan.lower_scan,
    "tt.dot": dot.lower_dot,
    "tt.atomic_rmw": atomics.lower_atomic,
    "tt.atomic_cas": atomics.lower_atomic,
    flips.FLIP: reshuffle.lower_flip,
    "tt.reshape": reshuffle.lower_reshape,
    "tt.join": reshuffle.lower_join,
    "tt.cat": reshuffle.lower_cat,
    "tt.gather": reshuffle.lower_gather,
    "tt.histogram": reshuffle.lower_histogram,
    "tt.unsplat": reshuffle.lower_unsplat,
    "tt.assert": printing.lower_assert,
    "tt.print": printing.lower_print,
    "tt.atomic_load": atomics.lower_atomic,
    "tt.atomic_store": atomics.lower_atomic_store,
    "tt.atomic_poll": atomics.lower_atomic,
    "scf.for": control.lower_for,
    "scf.while": control.lower_while,
    "scf.if": control.lower_if,
}
