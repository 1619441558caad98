"""Calls that say something, and what a failed assert does. In: an op, or a text and values. Out: the calls' text.

A failed assert says so on standard error, the first time in a launch, sets the status word that the entry returns, and
leaves what it said for the launcher: `precast_complaint` of the runtime, at the start of the thread's scratch.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from precast.engines.cpu.ir import Op
from precast.engines.cpu.values import Plain, Scalar, Vector

if TYPE_CHECKING:
    from precast.engines.cpu.context import Context

_ESCAPED = re.compile(rb"\\([0-9A-Fa-f]{2}|.)", re.DOTALL)
_STANDARD_ERROR = 2
_ANYWHERE = "precast:/"  # where a unit's texts have the project's files
_WORDS, _PROGRAM = 8, 16  # where a complaint has them


def check(context: Context, operation: Op, holds: Plain) -> None:
    """What an assert does where its condition, of one element or of a vector's, is `holds`."""
    b = context.b
    if isinstance(holds, Vector):
        holds = b.scalar(f"vector.reduction <and>, {holds.name} : {holds.type} into i1", "i1")
    context.branch(b.integer("xori", holds, 1), [], lambda: _fail(context, operation))


def _fail(context: Context, operation: Op) -> Sequence[Plain]:
    b = context.b
    file = operation.where.file.removeprefix(_ANYWHERE) if operation.where else ""
    where = f"{file}:{operation.where.line}: " if operation.where else ""
    message = unescape(str(operation.attributes.get("message", "")))
    text = f"{where}program (%u, %u, %u): assertion `{message.replace('%', '%%')}` failed\n"
    words = f"{where}{message}"
    before = b.scalar(f"llvm.load {context.status} : !llvm.ptr -> i32", "i32")
    first = b.compare("eq", before, b.constant(0, "i32"))
    assert isinstance(first, Scalar)

    def tell() -> Sequence[Plain]:
        call_variadic(context, "dprintf", text, find_program(context), [b.constant(_STANDARD_ERROR, "i32")])
        b.line(f"llvm.store {b.constant(1, 'i32').name}, {context.status} : i32, !llvm.ptr")
        b.line(f"llvm.store {b.text(words)}, {b.offset(context.status, b.index(_WORDS), 'i8')} : !llvm.ptr, !llvm.ptr")
        for number, each in enumerate(find_program(context)):
            place = b.offset(context.status, b.index(_PROGRAM + 4 * number), "i8")
            b.line(f"llvm.store {each.name}, {place} : i32, !llvm.ptr")
        return []

    return context.branch(first, [], tell)


def find_program(context: Context) -> list[Scalar]:
    """The program's id."""
    return list(context.program[:3])


def call_variadic(
    context: Context, name: str, text: str, values: Sequence[Plain], before: Sequence[Plain] = ()
) -> None:
    """Calls a function of the C library that takes values as a format says."""
    b = context.b
    arguments: list[Plain] = [*before, Scalar(b.text(text), "ptr"), *values]
    fixed = ", ".join(each.type for each in arguments[: len(before) + 1])
    b.declare_variadic(name, fixed)
    names, types = ", ".join(each.name for each in arguments), ", ".join(each.type for each in arguments)
    signature = f"!llvm.func<i32 ({fixed.replace('!llvm.', '')}, ...)>"
    b.emit(f"llvm.call @{name}({names}) vararg({signature}) : ({types}) -> i32")


def unescape(text: str) -> str:
    """A string attribute's text, of which MLIR wrote some bytes as two hexadecimal digits after a backslash."""
    data = _ESCAPED.sub(lambda found: _meant(found[1]), text.encode())
    return data.decode(errors="replace")


def _meant(escaped: bytes) -> bytes:
    return bytes.fromhex(escaped.decode()) if len(escaped) == 2 else {b"n": b"\n", b"t": b"\t"}.get(escaped, escaped)
