"""Atomic accesses of all kinds. In: the op. Out: one atomic for each element whose mask is set.

Program order is kept from element to element. Operations that x86 or LLVM has no atomic for loop on compare-and-swap.
"""

from __future__ import annotations

from collections.abc import Sequence

from precast.engines.cpu import floats, memory, nests
from precast.engines.cpu.clock import read_nanoseconds
from precast.engines.cpu.errors import refuse
from precast.engines.cpu.ir import ELEMENT_BITS, Op
from precast.engines.cpu.kernel import Kernel
from precast.engines.cpu.values import Cursor, Plain, Scalar

_KINDS = {
    "and": "_and", "or": "_or", "xor": "_xor", "add": "add", "fadd": "fadd", "max": "max", "min": "min",
    "umax": "umax", "umin": "umin", "exch": "xchg",
}  # fmt: skip


def lower_atomic(kernel: Kernel, operation: Op) -> None:
    """Emits the op where it stands; its result gets a buffer when something reads it."""
    context = kernel.context
    value = operation.result
    if not value.type.is_tensor:
        context.places[value] = _guarded(kernel, operation, Cursor((), None, 1))
        return
    used = bool(kernel.analysis.users.get(value))
    buffer = context.allocate(value.type) if used else None
    nest = nests.plan_nest(context, value.type.shape, None)

    def body(cursor: Cursor, _: list[Plain]) -> Sequence[Plain]:
        old = _guarded(kernel, operation, cursor)
        if buffer:
            memory.write_buffer(context, buffer, cursor, old)
        return []

    nests.emit_nest(context, nest, operation.operands, body)
    if buffer:
        context.places[value] = buffer


def lower_atomic_store(kernel: Kernel, operation: Op) -> None:
    """`tt.atomic_store`, which has no result."""
    context = kernel.context
    pointer, value, *masks = operation.operands

    def write(cursor: Cursor) -> Sequence[Plain]:
        item = _scalar(context.evaluate(value, cursor))
        place = _scalar(context.evaluate(pointer, cursor))
        memory.store_atomic(context.b, place, item)
        return []

    def body(cursor: Cursor, _: list[Plain]) -> Sequence[Plain]:
        mask = _scalar(context.evaluate(masks[0], cursor)) if masks else context.b.constant(1, "i1")
        if mask.constant is None:
            context.branch(mask, [], lambda: write(cursor))
        elif mask.constant:
            write(cursor)
        return []

    if value.type.is_tensor:
        nests.emit_nest(context, nests.plan_nest(context, value.type.shape, None), operation.operands, body)
    else:
        body(Cursor((), None, 1), [])


_MASKS = {"tt.atomic_rmw": 2, "tt.atomic_load": 1}  # the operand that is the mask


def _guarded(kernel: Kernel, operation: Op, cursor: Cursor) -> Scalar:
    """The old value at one element, zero where the mask is not set."""
    context = kernel.context
    place = _MASKS.get(operation.name, len(operation.operands))
    has_mask = place < len(operation.operands)
    mask = context.evaluate(operation.operands[place], cursor) if has_mask else context.b.constant(1, "i1")
    assert isinstance(mask, Scalar)
    zero = context.b.zero(operation.result.type.element, 1)
    if mask.constant is not None:
        return _emit(kernel, operation, cursor) if mask.constant else _scalar(zero)
    result = context.branch(mask, [zero], lambda: [_emit(kernel, operation, cursor)], lambda: [zero])[0]
    return _scalar(result)


def _scalar(form: object) -> Scalar:
    assert isinstance(form, Scalar)
    return form


def _emit(kernel: Kernel, operation: Op, cursor: Cursor) -> Scalar:
    operands = [_scalar(kernel.context.evaluate(each, cursor)) for each in operation.operands]
    if operation.name == "tt.atomic_load":
        return memory.load_atomic(kernel.context.b, operands[0], operation.result.type.element)
    if operation.name == "tt.atomic_poll":
        return _poll(kernel, operands[0], operands[1], operands[2] if len(operands) > 2 else None)
    if operation.name == "tt.atomic_cas":
        return _compare_and_swap(kernel, *operands[:3])
    return _read_modify_write(kernel, operation, operands[0], operands[1])


def _compare_and_swap(kernel: Kernel, pointer: Scalar, expected: Scalar, desired: Scalar) -> Scalar:
    b = kernel.context.b
    element = expected.element
    if floats_in_registers(element):
        expected, desired = (_scalar(floats.bits_of(b, each)) for each in (expected, desired))
    old = _swap(kernel, pointer, expected, desired)[0]
    if floats_in_registers(element):
        return _scalar(b.cast("arith.bitcast", old, element))
    return Scalar(old.name, element)


def floats_in_registers(element: str) -> bool:
    return element in ("f16", "f32", "f64")


def _swap(kernel: Kernel, pointer: Scalar, expected: Scalar, desired: Scalar) -> tuple[Scalar, Scalar]:
    """The old bits and whether they were the expected ones."""
    b = kernel.context.b
    type_ = expected.type
    pair = b.emit(f"llvm.cmpxchg {pointer.name}, {expected.name}, {desired.name} seq_cst seq_cst : !llvm.ptr, {type_}")
    structure = f"!llvm.struct<({type_}, i1)>"
    old = b.scalar(f"llvm.extractvalue {pair}[0] : {structure}", expected.element)
    return old, b.scalar(f"llvm.extractvalue {pair}[1] : {structure}", "i1")


def _read_modify_write(kernel: Kernel, operation: Op, pointer: Scalar, value: Scalar) -> Scalar:
    b = kernel.context.b
    kind = operation.attributes["kind"]
    element = value.element
    is_float = operation.operands[1].type.is_float
    if kind not in _KINDS or (is_float and kind not in ("fadd", "exch")):
        raise refuse(operation, f"kind `{kind}` on {element}")
    if kind == "fadd" and element not in ("f32", "f64"):
        return _add_small_float(kernel, pointer, value)
    kind_text = _KINDS[kind]
    return b.scalar(
        f"llvm.atomicrmw {kind_text} {pointer.name}, {value.name} seq_cst : !llvm.ptr, {value.type}", element
    )


def _add_small_float(kernel: Kernel, pointer: Scalar, value: Scalar) -> Scalar:
    """f16, bf16: reads, adds in f32, rounds, and swaps until nobody came between."""
    b = kernel.context.b
    element = value.element
    bits = f"i{ELEMENT_BITS[element]}"
    start = b.emit(f"llvm.load {pointer.name} atomic monotonic {{alignment = 2 : i64}} : !llvm.ptr -> {bits}")
    added = floats.widen(b, value)
    seen, final = b.fresh(), b.fresh()
    b.line(f"{final} = scf.while ({seen} = {start}) : ({bits}) -> {bits} {{")
    raw = Scalar(seen, bits)
    current = _scalar(b.cast("arith.bitcast", raw, "f16")) if element == "f16" else Scalar(seen, element)
    total = _scalar(floats.narrow(b, b.binary("addf", floats.widen(b, current), added), element))
    desired = _scalar(floats.bits_of(b, total)) if element == "f16" else Scalar(total.name, bits)
    old, done = _swap(kernel, pointer, raw, desired)
    again = b.integer("xori", done, 1)
    b.line(f"scf.condition({again.name}) {old.name} : {bits}")
    again_name = b.fresh()
    b.line(f"}} do {{ ^bb0({again_name}: {bits}): scf.yield {again_name} : {bits} }}")
    return _scalar(b.cast("arith.bitcast", Scalar(final, bits), "f16")) if element == "f16" else Scalar(final, element)


def _poll(kernel: Kernel, pointer: Scalar, expected: Scalar, timeout: Scalar | None) -> Scalar:
    """Reads until the value is there, or so many nanoseconds have gone by; whether it was."""
    b = kernel.context.b
    end = b.integer("addi", read_nanoseconds(kernel.context), b.wide(timeout)) if timeout else None
    found = b.fresh()
    b.line(f"{found} = scf.while : () -> i1 {{")
    value = memory.load_atomic(b, pointer, expected.element)
    met = _scalar(b.compare("eq", value, expected))
    again = b.integer("xori", met, 1)
    if end:
        again = b.integer("andi", again, _scalar(b.compare("slt", read_nanoseconds(kernel.context), end)))
    b.line(f"scf.condition({again.name}) {met.name} : i1")
    b.line(f"}} do {{ ^bb0({b.fresh()}: i1): scf.yield }}")
    return Scalar(found, "i1")
