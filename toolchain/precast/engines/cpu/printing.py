"""What a program says: `tt.print` and `tt.assert`. In: the op. Out: calls of the C library's `printf` and `dprintf`.

Printed lines are those of Triton's on a GPU: the program's id, the element's index, the words, the value; what is not
a tensor is printed once for each thread that the program asked for. A failed assert says so on standard error, the
first time in a launch, and sets the status word, which the entry returns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from precast.engines.cpu import floats, messages, nests
from precast.engines.cpu.context import Context
from precast.engines.cpu.ir import ELEMENT_BITS, Op, Value
from precast.engines.cpu.kernel import Kernel
from precast.engines.cpu.values import Cursor, Plain, Scalar

_NOWHERE = Cursor((), None, 1)


def lower_print(kernel: Kernel, operation: Op) -> None:
    """A line for each element of each operand."""
    context = kernel.context
    words = messages.unescape(str(operation.attributes.get("prefix", ""))).replace("%", "%%")
    program = messages.find_program(context)
    if not operation.operands:
        _for_each_thread(
            context, lambda: messages.call_variadic(context, "printf", f"pid (%u, %u, %u){words}\n", program)
        )
        return
    signs = operation.attributes.get("isSigned", ())
    for number, value in enumerate(operation.operands):
        in_hex = bool(operation.attributes.get("hex"))
        is_signed = not in_hex and (number >= len(signs) or bool(signs[number]))
        number_text = f"(operand {number}) " if len(operation.operands) > 1 else ""
        form = _format(value, in_hex, is_signed)
        _print_elements(context, value, words + number_text + form, program, is_signed)


def _print_elements(context: Context, value: Value, text: str, program: list[Scalar], is_signed: bool) -> None:
    shape = value.type.shape
    places = ", ".join(f"%{len(str(size - 1))}u" for size in shape)

    def line(cursor: Cursor) -> Sequence[Plain]:
        element = context.scalar(value) if not shape else context.b.plain(context.evaluate(value, cursor), 1)
        assert isinstance(element, Scalar)
        index = [context.b.resize(each, "i32") for each in cursor.index]
        item = _passed(context, element, is_signed)
        messages.call_variadic(context, "printf", f"pid (%u, %u, %u) idx ({places}){text}\n", [*program, *index, item])
        return []

    if not shape:
        _for_each_thread(context, lambda: line(_NOWHERE))
        return
    nests.emit_nest(context, nests.plan_nest(context, shape, None), [value], lambda cursor, _: line(cursor))


def _for_each_thread(context: Context, write: Callable[[], object]) -> None:
    """Writes it once, or in a loop over the threads that a program asked for."""
    if context.threads == 1:
        write()
        return

    def body(_: Scalar, carried: list[Plain]) -> Sequence[Plain]:
        write()
        return []

    context.count(context.threads, body)


def _format(value: Value, in_hex: bool, is_signed: bool) -> str:
    """C's conversion for a value as `_passed` makes it."""
    if value.type.is_pointer:
        return "%p"
    bits = ELEMENT_BITS[value.type.element]
    if in_hex:
        length = "ll" if bits == 64 or value.type.is_float else ""
        return f"0x%0{max(1, bits // 4)}{length}x" if not value.type.is_float else "%a"
    if value.type.is_float:
        return "%f"
    return ("%ll" if bits == 64 else "%") + ("i" if is_signed and bits > 1 else "u")


def _passed(context: Context, element: Scalar, is_signed: bool) -> Plain:
    """The value as C passes it to a function of any arguments: as a double, an int or a long long."""
    if element.element == "ptr":
        return element
    if element.element[0] in "fb":
        return floats.convert(context.b, element, "f64")
    narrow = ELEMENT_BITS[element.element] < 32
    return context.b.resize(element, "i32", is_signed and element.element != "i1") if narrow else element


def lower_assert(kernel: Kernel, operation: Op) -> None:
    """A false element sets the status word; the first one of a launch on a thread is told."""
    context = kernel.context
    condition = operation.operands[0]

    if not condition.type.is_tensor:
        messages.check(context, operation, context.scalar(condition))
        return

    def body(cursor: Cursor, _: list[Plain]) -> Sequence[Plain]:
        messages.check(context, operation, context.b.plain(context.evaluate(condition, cursor), 1))
        return []

    nests.emit_nest(context, nests.plan_nest(context, condition.type.shape, None), [condition], body)
