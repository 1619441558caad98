"""Values of a call from Python that are out of the ordinary: right results, or one line that says what is wrong."""

from __future__ import annotations

import inspect
import pickle
import sys
import threading

import numpy as np
import pytest
from conftest import aligned
from test_python import message


def test_numbers_of_numpy_are_no_tensors(small, x):
    out = aligned(1000)
    small.scale(np.uint64(out.ctypes.data), np.int64(x.ctypes.data), 2, 1000, BLOCK=64, dtype=np.float32)
    np.testing.assert_array_equal(out, 2 * x)
    small.scale(out, x[:1].reshape(()), 3, 1, BLOCK=64)  # an array, though of no dimensions
    assert message(TypeError, lambda: small.scale(out, x[5], 2, 1, BLOCK=64)) == (
        "argument `x` of `scale` takes a tensor, an address or None, not float32"
    )
    for address in (-1, 2**64, np.int64(-1)):
        assert message(OverflowError, lambda given=address: small.scale(out, given, 2, 1, BLOCK=64)) == (
            f"argument `x` of `scale` is {address!r}, which is no address"
        )


def test_numbers_that_fit_badly(small, x):
    out = np.zeros(32, np.int64)
    rest = (-2, -3, -4, -5, 1, 200, 60000, 4_000_000_000, 2**64 - 1, 1.0, 1.0, 1.5, -2.5, 1.0, (-16, (x, 0.5)), -19,
            1 / 3, None, 1)  # fmt: skip
    small.record(out, np.bool_(True), *rest, WIDTH="i32", REAL="fp16")
    assert out[0] == 1
    assert message(OverflowError, lambda: small.scale(x, x, 10**400, 1, BLOCK=64)).endswith("does not fit in fp32")
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(RecursionError, match="in a tuple of arguments"):
        small.record(out, True, *rest[:14], endless, *rest[15:], WIDTH="i32", REAL="fp16")


def test_what_is_read_only_is_not_written(small, x, tmp_path):
    """Not by a kernel that surely writes there; an input may be."""
    frozen = aligned(1000)
    frozen.flags.writeable = False
    np.save(tmp_path / "x.npy", x)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    for out in (frozen, mapped, frozen):
        assert message(small.LaunchError, lambda out=out: small.scale(out, x, 2, 1000, BLOCK=64)) == (
            "argument `out` of `scale` is read-only, and scale:dtype=fp32,BLOCK=64@cpu:x86-64-v3 writes to it"
        )
    out = aligned(1000)
    for source in (mapped, frozen, mapped):
        small.scale(out, source, 2, 1000, BLOCK=64)
        np.testing.assert_array_equal(out, 2 * source)


def test_more_types_of_tensor_than_are_remembered(small, x):
    out = aligned(1000)
    for number in range(50):
        kind = type(f"Array{number}", (np.ndarray,), {})
        small.scale(out.view(kind), x.view(kind), number, 1000, BLOCK=64)
        np.testing.assert_array_equal(out, number * x)
        assert message(TypeError, lambda kind=kind: small.scale(out, x.astype(complex).view(kind), 2, 1, BLOCK=64)) == (
            "argument `x` of `scale` has elements of type complex128, which no kernel takes"
        )


@pytest.mark.parametrize("grid", [(4.0,), "4", None, (), (1, 1, 1, 1), np.ones(2)])
def test_what_is_no_grid(small, x, grid):
    expected = f"the grid of `scale` is {grid!r}; a grid is 1 to 3 integers"
    for given in (grid, lambda meta: grid):
        assert message(TypeError, lambda given=given: small.scale[given](x, x, 1, 1000, BLOCK=64)) == expected


def test_a_grid_too_large_for_any_device(small, x):
    assert "more than 2147483647" in message(small.LaunchError, lambda: small.scale[2**70](x, x, 1, 1000, BLOCK=64))
    with pytest.raises(ZeroDivisionError):
        small.scale[lambda meta: 1 // 0](x, x, 1, 1000, BLOCK=64)


def test_a_grid_function_sees_every_axis(small, x):
    seen: list[dict[str, object]] = []
    small.scale[lambda meta: seen.append(meta) or 1](x, x, 1, 64, BLOCK=64)
    (meta,) = seen
    assert (meta["dtype"], meta["BLOCK"], meta["n"]) == ("fp32", 64, 64)


def test_an_error_of_a_callback_is_its_own_launch_s(small):
    """Another thread's launch is none of its business, nor is a launch inside of the callback."""
    culprit = threading.get_ident()

    def read(unit: str, *_: object) -> None:
        if threading.get_ident() == culprit:
            small.count(np.zeros(4, np.int32), 4)
            raise KeyError(unit)
        sum(range(2000))  # so that the other launch fails while this one is here

    def launch_well() -> None:
        try:
            while not stop.is_set():
                small.tally(0, 2)
        except Exception as error:
            failures.append(error)

    stop, failures = threading.Event(), []
    other = threading.Thread(target=launch_well)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    small.set_buffer_reader(read)
    try:
        other.start()
        for _ in range(300):
            with pytest.raises(KeyError):
                small.tally(0, 2)
    finally:
        stop.set()
        other.join()
        sys.setswitchinterval(interval)
        small.set_buffer_reader(None)
    assert failures == []


def test_numbers_of_threads(small):
    for count, said in ((-1, -1), (1025, 1025), (2**32 + 2, 2**31 - 1), (-(2**80), -(2**31))):
        assert message(small.LaunchError, lambda count=count: small.set_threads(count)) == (
            f"a CPU launch cannot use {said} threads: 1 to 1024, or 0 for as many as the process may run on"
        )


def test_an_error_reaches_another_process(small, x):
    with pytest.raises(small.LaunchError) as caught:
        small.scale(x, x, 1, 1000, BLOCK=7)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (type(copy), copy.args, copy.status) == (small.LaunchError, caught.value.args, 6)


def test_signature_of_a_kernel(small):
    record = str(inspect.signature(small.record))
    assert ", pair, count, real=0.25, absent=None, one=1, *, WIDTH=Ellipsis, REAL=Ellipsis, PINNED=64, " in record
    assert record.endswith("MODE='fast', CAP='none', EVEN=False, RATE=0.5, TILE='(16,8)', stream=None)")
    assert str(inspect.signature(small.scale)) == "(out, x, alpha, n, *, dtype=Ellipsis, BLOCK=Ellipsis, stream=None)"


SCALARS = (True, -2, -3, -4, -5, 1, 200, 60000, 4_000_000_000, 1, 1.0, 1.0, 1.5, -2.5, 1.0)


def test_arguments_with_a_default_may_be_left_out(small, x):
    out = np.zeros(32, np.int64)
    small.record(out, *SCALARS, (-16, (x, 0.5)), -19, WIDTH="i32", REAL="fp16")
    assert out[18:20].tolist() == [-19, 0x3400]
    small.record(out, *SCALARS, (-16, (x, 0.5)), -19, one=1, real=1 / 3, WIDTH="i32", REAL="fp16")
    assert out[18:20].tolist() == [-19, 0x3555]
    with pytest.raises(TypeError) as caught:
        small.record(out, *SCALARS, one=1, WIDTH="i32", REAL="fp16")
    assert str(caught.value).startswith("the call of `record` lacks pair, count; its arguments are out, a_i1, ")
    seen = {}
    small.record[lambda meta: seen.update(meta) or (1,)](
        out, *SCALARS, (-16, (x, 0.5)), -19, WIDTH="i32", REAL="fp16", RATE=0.5
    )
    assert [seen[name] for name in ("real", "absent", "one", "PINNED", "MODE", "RATE")] == [
        0.25,
        None,
        1,
        64,
        "fast",
        0.5,
    ]


def test_constants_may_be_named_and_are_checked(small, x):
    out = np.zeros(32, np.int64)

    def call(**constants):
        small.record(out, *SCALARS, (-16, (x, 0.5)), -19, WIDTH="i32", REAL="fp16", **constants)

    call(PINNED=64, MODE="fast", CAP=None, EVEN=False, RATE=0.5, TILE=(16, 8))
    call(**{"".join(["MO", "DE"]): "fast"})
    for constants, said in (
        ({"PINNED": 65}, "PINNED=65; there are 64"),
        ({"MODE": "slow"}, "MODE='slow'; there are fast"),
        ({"CAP": 1}, "CAP=1; there are none"),
        ({"EVEN": True}, "EVEN=True; there are false"),
        ({"RATE": 0.25}, "RATE=0.25; there are 0.5"),
        ({"TILE": (16, 16)}, "TILE=(16, 16); there are (16,8)"),
    ):
        with pytest.raises(small.LaunchError) as caught:
            call(**constants)
        assert (caught.value.status, str(caught.value)) == (6, f"`record` has no variant with {said}")
    with pytest.raises(TypeError):
        call(PINED=64)
