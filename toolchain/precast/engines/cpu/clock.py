"""The machine's clock, as a GPU's global timer. In: a context. Out: nanoseconds, from the C library."""

from __future__ import annotations

from precast.engines.cpu.context import Context
from precast.engines.cpu.values import Scalar

_MONOTONIC = 1


def read_nanoseconds(context: Context) -> Scalar:
    """The monotonic clock's time, by way of the bounce buffer."""
    b = context.b
    b.declare("clock_gettime", "(i32, !llvm.ptr) -> i32")
    time = context.bounce
    b.emit(f"func.call @clock_gettime({b.constant(_MONOTONIC, 'i32').name}, {time}) : (i32, !llvm.ptr) -> i32")
    seconds = b.scalar(f"llvm.load {time} : !llvm.ptr -> i64", "i64")
    rest = b.scalar(f"llvm.load {b.offset(time, b.index(1), 'i64')} : !llvm.ptr -> i64", "i64")
    return b.integer("addi", b.integer("muli", seconds, 1_000_000_000), rest)
