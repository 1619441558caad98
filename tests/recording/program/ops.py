"""Kernels as people write them: tuned, with heuristics, absent arguments, tuples, constexprs of all kinds."""

import enum
import os

import triton
import triton.language as tl


class Mode(enum.IntEnum):
    PLAIN = 0
    TWICE = 2


def measure(call, quantiles):
    """Times that another run would not find again: the environment says which of the two configs is the fastest for
    the first key; for the next one it is the other."""
    call()
    key, config = divmod(measure.calls, 2)
    measure.calls += 1
    fastest = (int(os.environ.get("FASTEST", "0")) + key) % 2
    return [0.5 if config == fastest else 1.0] * 3


measure.calls = 0


@triton.jit
def square(value):
    return value * value


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, i < n) + tl.load(y + i, i < n), i < n)


@triton.heuristics({"EVEN": lambda given: given["n"] % given["BLOCK"] == 0})
@triton.jit
def scale(x, bias, out, n, stride, factor, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < (n if not EVEN else 2147483647)
    value = tl.load(x + i * stride, inside) * factor
    if bias is not None:
        value += tl.load(bias + i, inside)
    tl.store(out + i, value, inside)


@triton.autotune([triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128}, num_warps=8)], ["n"], do_bench=measure)
@triton.jit
def tuned(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, 3 * tl.load(x + i, i < n), i < n)


@triton.jit
def parts(arrays, sizes, FUNCTION: tl.constexpr, MODE: tl.constexpr, SHAPE: tl.constexpr, TYPE: tl.constexpr = None):
    i = tl.arange(0, SHAPE[0])
    value = FUNCTION(tl.load(arrays[0] + i)) + sizes[0] * sizes[1] + MODE
    if TYPE is not None:
        value = value.to(TYPE)
    tl.store(arrays[1] + i, value)


@triton.jit
def tile(source, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    found = source.load([4, 8])
    tl.store(out + tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :], found)


def make_kernel():
    @triton.jit
    def made(out, VALUE: tl.constexpr):
        tl.store(out, VALUE)

    return made
