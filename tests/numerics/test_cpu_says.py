"""What programs say, and atomic loads, stores and polls."""

import ctypes
import threading
import time

import numpy as np
import pytest
import triton
import triton.language as tl
from cpu_harness import build
from level_tiers import EVERY_LEVEL

levels = pytest.mark.parametrize("level", EVERY_LEVEL)


@triton.jit
def print_kernel(x, n, N: tl.constexpr, FORM: tl.constexpr):
    i = tl.arange(0, N)
    if FORM == "tensor":
        tl.device_print("i:", i + n)
    elif FORM == "several":
        tl.device_print("both:", tl.load(x + i), n)
    elif FORM == "words":
        tl.device_print('50% of "it" \\fa')
    elif FORM == "hex":
        tl.device_print("bits:", (i - 1).to(tl.int16), hex=True)
    elif FORM == "wide":
        tl.device_print("v:", tl.load(x + i)[:, None].to(tl.float16) * 2)
    elif FORM == "signs":
        tl.device_print("s:", i.to(tl.uint8) + 250, (i - 1).to(tl.int64), i > 0)


@levels
@pytest.mark.parametrize(
    ("form", "lines"),
    [
        ("tensor", ["idx (0) i: 7", "idx (1) i: 8"]),
        ("several", ["idx (0) both: (operand 0) 0.500000", "idx (1) both: (operand 0) 1.500000",
                     "idx () both: (operand 1) 7"]),
        ("words", [' 50% of "it" \\fa']),
        ("hex", ["idx (0) bits: 0xffff", "idx (1) bits: 0x0000"]),
        ("wide", ["idx (0, 0) v: 1.000000", "idx (1, 0) v: 3.000000"]),
        ("signs", ["idx (0) s: (operand 0) 250", "idx (1) s: (operand 0) 251", "idx (0) s: (operand 1) -1",
                   "idx (1) s: (operand 1) 0", "idx (0) s: (operand 2) 0", "idx (1) s: (operand 2) 1"]),
    ],
)  # fmt: skip
def test_printed_lines(form, lines, level, capfd):
    kernel = build(print_kernel, {"x": "*fp32", "n": "i32"}, {"N": 2, "FORM": form}, level=level)
    kernel((1, 2), np.array([0.5, 1.5], np.float32), 7)
    ctypes.CDLL(None).fflush(None)
    separator = "" if form == "words" else " "
    expected = [f"pid (0, {program}, 0){separator}{line}" for program in (0, 1) for line in lines]
    assert capfd.readouterr().out.splitlines() == expected


@triton.jit
def check_kernel(x, n, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.device_assert(tl.load(x + i) < n, "100% trop élevé")


def test_a_failed_assert_is_told_once(capfd):
    x = np.arange(8, dtype=np.int32)
    kernel = build(check_kernel, {"x": "*i32", "n": "i32"}, {"N": 8}, debug=True)
    assert kernel((3,), x, 8) == 0
    assert kernel((3,), x, 5) == 1
    assert capfd.readouterr().err == "program (0, 0, 0): assertion `100% trop élevé` failed\n"


@triton.jit
def sum_kernel(out, x, N: tl.constexpr, FORM: tl.constexpr):
    i = tl.arange(0, N)
    if FORM == "reduce":
        tl.store(out, tl.sum(tl.load(x + i), 0))
    elif FORM == "scan":
        tl.store(out + i, tl.cumsum(tl.load(x + i), 0))
    else:
        at = i[:, None] * N + i[None, :]
        tl.store(out + i, tl.sum(tl.load(x + at % (2 * N)), 0))


@pytest.mark.parametrize("form", ["reduce", "scan", "columns"])
def test_an_overflow_inside_of_a_sum_fails_where_it_is_checked(form, capfd):
    types = {"out": "*i32", "x": "*i32"}
    kernel = build(sum_kernel, types, {"N": 32, "FORM": form}, debug=True, sanitize_overflow=True)
    x, out = np.arange(64, dtype=np.int32), np.zeros(32, np.int32)
    x[3] = 2**30
    assert kernel((1,), out, x) == (form == "columns")  # which adds it to itself
    if form != "columns":
        assert out[0 if form == "reduce" else 31] == x[:32].sum()
    x[5] = 2**30
    assert kernel((1,), out, x) == 1
    assert "overflow detected for operation add" in capfd.readouterr().err


@triton.jit
def move_kernel(out, x, n, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.atomic_store(out + i, tl.atomic_load(x + i, mask=i < n) + 1, mask=i < n)
    tl.atomic_store(out + N, tl.atomic_load(x))


@levels
@pytest.mark.parametrize("element", ["i32", "i64", "fp32"])
def test_atomic_loads_and_stores(element, level):
    dtype = {"i32": np.int32, "i64": np.int64, "fp32": np.float32}[element]
    x, out = np.arange(5, 69).astype(dtype), np.zeros(65, dtype)
    kernel = build(move_kernel, {"out": f"*{element}", "x": f"*{element}", "n": "i32"}, {"N": 64}, level=level)
    kernel((1,), out, x, 37)
    assert np.array_equal(out, [*(x[:37] + 1), *np.zeros(27), 5])


@triton.jit
def poll_kernel(out, flags, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.atomic_poll(flags + i, 3, timeout_ns=50_000_000))
    tl.store(out + N, tl.atomic_poll(flags, 3))
    tl.store(out + N + 1, tl.load(flags + N) == 7)


def test_polls_wait_for_another_thread_or_the_time():
    flags, out = np.array([0, 4, 0], np.int32), np.full(4, 9, np.int8)
    kernel = build(poll_kernel, {"out": "*i8", "flags": "*i32"}, {"N": 2})

    def write():
        while (out[:2] == 9).any():  # until the first polls have given up
            time.sleep(0.001)
        flags[2] = 7
        flags[0] = 3

    writer = threading.Thread(target=write)
    writer.start()
    kernel((1,), out, flags)
    writer.join()
    assert out.tolist() == [0, 0, 1, 1]


@triton.jit
def timer_kernel(out):
    tl.store(out, tl.extra.cuda.globaltimer())


def test_the_global_timer_is_the_monotonic_clock():
    before, out = time.monotonic_ns(), np.zeros(1, np.int64)
    build(timer_kernel, {"out": "*i64"})((1,), out)
    assert before < out[0] < time.monotonic_ns()
