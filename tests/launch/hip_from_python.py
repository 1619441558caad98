"""Launches of the small release from Python on HIP's driver for tests: `hip_from_python.py FOLDER_OF_THE_PACKAGE`.

`x` of `scale` promises range32 there: what counts is how far shape and strides reach, not how many elements there are.
"""

from __future__ import annotations

import ctypes
import sys
from types import SimpleNamespace

import exchange_framework
import numpy as np

ROCM = (10, 0)
sys.modules["torch"] = SimpleNamespace(version=SimpleNamespace(hip="7.0"))
sys.path.insert(0, sys.argv[1])
import small  # noqa: E402

OUT = np.zeros(64, np.float32)
GIB = 2**28  # elements of fp32


class LikeTorch:
    """torch's way to say shape and strides, in elements."""

    dtype = "torch.float32"

    def __init__(self, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
        self.shape, self.strides = shape, strides

    def data_ptr(self) -> int:
        return OUT.ctypes.data

    def get_device(self) -> int:
        return 0

    def stride(self) -> tuple[int, ...]:
        return self.strides


class Exchanged(exchange_framework.Tensor):
    """DLPack's way; strides that are left out are those of a dense tensor."""

    def __init__(self, shape: tuple[int, ...], strides: tuple[int, ...] | None) -> None:
        super().__init__(OUT, ROCM)
        self.kept_shape = (ctypes.c_int64 * len(shape))(*shape)
        self.kept_strides = (ctypes.c_int64 * len(strides))(*strides) if strides else None


@exchange_framework.READ
def read(tensor: Exchanged, into) -> int:
    into[0] = exchange_framework.DlTensor(OUT.ctypes.data, *ROCM, len(tensor.kept_shape), 2, 32, 1, tensor.kept_shape,
                                          tensor.kept_strides, 0)  # fmt: skip
    return 0


TABLE = exchange_framework.Table(1, 0, None, (ctypes.c_void_p * 3)(), read, exchange_framework.current_stream)
Exchanged.__dlpack_c_exchange_api__ = exchange_framework.make_capsule(
    ctypes.addressof(TABLE), exchange_framework.CAPSULE, None
)

# Shape, strides, and whether the last byte lies within 2 GiB.
CASES = [
    ((2 * GIB - 1,), (1,), True),
    ((2 * GIB,), (1,), False),
    ((2, 2), (2 * GIB - 3, 1), True),
    ((2, 2), (2 * GIB - 2, 1), False),
    ((8 * GIB, 4), (0, 1), True),
    ((4, 2), (-(2 * GIB // 4), 1), True),
    ((5, 2), (-(2 * GIB // 4), 1), False),
    ((0, 8 * GIB), (8 * GIB, 1), True),
    ((2**62, 2), (2**62, 1), False),
    ((1,) * 9 + (2 * GIB,), (1,) * 10, False),
]


def is_taken(tensor: object) -> bool:
    try:
        small.scale(LikeTorch((64,), (1,)), tensor, 2, 64, BLOCK=64)
    except small.LaunchError as error:
        assert str(error) == "argument `x` of `scale` promises range32, and its buffer is longer than 2 GiB", error
        return False
    return True


for shape, strides, fits in CASES:
    for kind in (LikeTorch, Exchanged):
        if kind is Exchanged or len(shape) <= 8:
            assert is_taken(kind(shape, strides)) == fits, (kind, shape, strides)
assert is_taken(Exchanged((2 * GIB - 1,), None)) and not is_taken(Exchanged((2, GIB), None))
