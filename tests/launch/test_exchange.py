"""Tensors of a framework that gives DLPack's table of C functions: they are read without a Python call each.

The framework here is a class whose table's functions are written with ctypes, over NumPy's memory.
"""

from __future__ import annotations

import ctypes
import gc
import weakref

import numpy as np
import pytest
from conftest import aligned
from test_python import message

FLOAT, COMPLEX = 2, 5
HOST, CUDA = 1, 2


class DlTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("rank", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]  # fmt: skip


READ = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(DlTensor))
STREAM = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))


class Table(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("older", ctypes.c_void_p),
                ("others", ctypes.c_void_p * 3), ("read", READ), ("current_stream", STREAM)]  # fmt: skip


@READ
def read(tensor: Tensor, into) -> int:
    shape = (ctypes.c_int64 * 1)(tensor.array.size)
    tensor.kept = shape
    tensor.reads += 1
    into[0] = DlTensor(tensor.array.ctypes.data - 16, *tensor.device, 1, tensor.code, 8 * tensor.array.itemsize, 1,
                       shape, None, 16)  # fmt: skip
    return 0


@STREAM
def current_stream(device_type: int, device: int, stream) -> int:
    return 0


TABLE = Table(1, 0, None, (ctypes.c_void_p * 3)(), read, current_stream)
CAPSULE = b"dlpack_exchange_api"  # a capsule keeps no copy of its name
make_capsule = ctypes.pythonapi.PyCapsule_New
make_capsule.restype, make_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Tensor:
    __dlpack_c_exchange_api__ = make_capsule(ctypes.addressof(TABLE), CAPSULE, None)
    dtype = "the framework's"

    def __init__(self, array: np.ndarray, device: tuple[int, int] = (HOST, 0), code: int = FLOAT) -> None:
        self.array, self.device, self.code, self.reads = array, device, code, 0


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
        (TypeError, lambda: scale(out, Tensor(x, (99, 0)), 2, 9, BLOCK=64),
         "device type 99 of DLPack is none that kernels run on"),
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
