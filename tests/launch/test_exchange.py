"""Tensors of a framework that gives DLPack's table of C functions: they are read without a Python call each."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest
from conftest import aligned
from exchange_framework import COMPLEX, CUDA, HOST, Tensor
from test_python import message

HERE = Path(__file__).parent


def test_right_numbers_of_several_tensors(small, x):
    for count in (1000, 64):
        out = aligned(1000)
        small.scale(Tensor(out), Tensor(x), 2.5, count, BLOCK=64)
        np.testing.assert_array_equal(out[:count], 2.5 * x[:count])


def test_each_tensor_is_read_once(small, x):
    out, read_twice = Tensor(aligned(1000)), Tensor(x)
    small.scale(out, read_twice, 1, 1000, BLOCK=64)
    assert (out.reads, read_twice.reads) == (1, 1)


def test_what_is_wrong_is_said_after_the_unit_is_loaded_too(small, x):
    out = Tensor(aligned(1000))
    small.scale(out, Tensor(x), 2, 1000, BLOCK=64)
    odd, wide = aligned(999, offset=1), aligned(9, "float64")
    scale, launch_error = small.scale, small.LaunchError
    cases = [
        (launch_error, lambda: scale(out, Tensor(odd), 2, 999, BLOCK=64),
         f"argument `x` of `scale` promises align = 16, and its address is {odd.ctypes.data:#x}"),
        (launch_error, lambda: scale(out, Tensor(wide), 2, 9, BLOCK=64),
         "argument `x` of `scale` is fp64, and dtype=fp32"),
        (ValueError, lambda: scale(out, Tensor(x, (CUDA, 1)), 2, 9, BLOCK=64),
         "argument `x` of `scale` is on cuda:1, and `out` is on cpu:0"),
        (ValueError, lambda: scale(out, Tensor(x, (HOST, 1)), 2, 9, BLOCK=64),
         "argument `x` of `scale` is on cpu:1, and `out` is on cpu:0"),
        (TypeError, lambda: scale(out, Tensor(x, code=COMPLEX), 2, 9, BLOCK=64),
         "argument `x` of `scale` has elements of type the framework's, which no kernel takes"),
        (ValueError, lambda: scale(out, Tensor(x, (99, 0)), 2, 9, BLOCK=64),
         "argument `x` of `scale` is a Tensor that cannot be launched with: device type 99 of DLPack is none that "
         "kernels run on"),
        (OverflowError, lambda: scale(out, Tensor(x), 2, -(2**31) - 1, BLOCK=64),
         "argument `n` of `scale` is -2147483649, which does not fit in i32"),
        (OverflowError, lambda: scale(out, Tensor(x), 2, 2**70, BLOCK=64),
         "argument `n` of `scale` is 1180591620717411303424, which does not fit in i32"),
    ]  # fmt: skip
    for error, call, expected in cases:
        assert message(error, call) == expected


def test_other_values_beside_tensors(small, x):
    out = aligned(1000)
    small.scale(Tensor(out), x.ctypes.data, np.float64(2), True, BLOCK=64)
    small.scale(Tensor(out), x, 2, np.int16(1000), BLOCK=64)
    np.testing.assert_array_equal(out, 2 * x)
    with pytest.raises(small.LaunchError, match="is 0xffffffffffffff01"):
        small.scale(Tensor(out), 2**64 - 255, 2, 10, BLOCK=64)


def test_a_release_that_its_callback_refers_to_is_collected(small):
    class Marker:
        pass

    release = small._launch.open(small.release.folder)
    kernel, marker = release.kernel("scale"), Marker()
    release.set_allocator(lambda *_, held=(release, kernel, marker): 0)
    gone = weakref.ref(marker)
    del release, kernel, marker
    gc.collect()
    assert gone() is None


def test_launches_on_cuda(release, fakes):
    """In a process of its own, with the driver for tests."""
    environment = {**os.environ, "LD_LIBRARY_PATH": str(fakes / "cuda"), "PYTHONPATH": str(HERE)}
    done = subprocess.run([sys.executable, HERE / "cuda_from_python.py", release / "python"], env=environment,
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0 and not done.stderr, done.stderr
