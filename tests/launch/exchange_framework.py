"""A framework that gives DLPack's table of C functions, written with ctypes over NumPy's memory."""

from __future__ import annotations

import ctypes

import numpy as np

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
