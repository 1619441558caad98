"""Launches of the small release from Python on the CUDA driver for tests: `cuda_from_python.py FOLDER_OF_THE_PACKAGE`.

Whatever a call leaves out or gives by name, it means its own unit, whatever the calls before it meant.
"""

from __future__ import annotations

import ctypes
import sys
from itertools import product
from types import SimpleNamespace

import numpy as np
from exchange_framework import COMPLEX, CUDA, FLOAT, Tensor

sys.path.insert(0, sys.argv[1])
import small

DRIVER = ctypes.CDLL("libcuda.so.1")


class Launch(ctypes.Structure):
    _fields_ = [("symbol", ctypes.c_char * 256), ("grid", ctypes.c_uint * 3), ("threads", ctypes.c_uint),
                ("shared_bytes", ctypes.c_uint), ("stream", ctypes.c_void_p), ("device", ctypes.c_int),
                ("parameter_count", ctypes.c_int)]  # fmt: skip


DRIVER.fake_last_launch.restype = ctypes.POINTER(Launch)


def tensor(dtype: str) -> Tensor:
    return Tensor(np.zeros(64, dtype), (CUDA, 0), FLOAT)


def launched() -> tuple[str, int, int]:
    """Symbol, grid and how many launches there were."""
    launch = DRIVER.fake_last_launch().contents
    return launch.symbol.decode(), launch.grid[0], DRIVER.fake_launch_count()


def refused(call, kind: type[Exception] = small.LaunchError) -> str:
    try:
        call()
    except kind as error:
        return str(error)
    raise AssertionError("the call was not refused")


def check_left_out_axes() -> None:
    tensors = {"fp16": tensor("float16"), "fp32": tensor("float32")}
    said = ({"dtype": "?", "BLOCK": 64}, {}, {"BLOCK": 64}, {"dtype": "?"})
    symbols: dict[str, str] = {}
    for number, (dtype, names, repeats) in enumerate(product(tensors, said, (1, 2, 3)), 1):
        named = {name: dtype if value == "?" else value for name, value in names.items()}
        values = tensors[dtype], tensors[dtype], 64 * number
        for _ in range(repeats):
            before = DRIVER.fake_launch_count()
            small.typed(*values, **named)
            symbol, grid, count = launched()
            assert symbols.setdefault(dtype, symbol) == symbol
            assert (grid, count) == (number, before + 1)
    assert len(set(symbols.values())) == 2
    half, single = tensors["fp16"], tensors["fp32"]
    assert refused(lambda: small.typed(half, single, 64)) == "argument `x` of `typed` is fp32, and dtype=fp16"
    assert refused(lambda: small.typed(single, single, 64, dtype="fp16")) == (
        "argument `out` of `typed` is fp32, and dtype=fp16"
    )
    assert "BLOCK=65" in refused(lambda: small.typed(single, single, 64, BLOCK=65))
    address = single.array.ctypes.data
    assert refused(lambda: small.typed(address, address, 64)).startswith("several units of `typed` fit")
    small.typed(address, address, 64, dtype="fp16")
    assert launched()[0] == symbols["fp16"]


def check_named_axes_and_hints() -> None:
    x = tensor("float32")
    symbols: dict[tuple[int, int, int], str] = {}
    for block, n, m in product((64, 128), (32, 33), (48, 50, 1)):
        for call in (small.steady, small.steady[(7, 1)]):
            call(x, n, m, BLOCK=block)
            symbol, grid, _ = launched()
            assert symbols.setdefault((block, n, m), symbol) == symbol
            assert grid == (2 if call is small.steady else 7)
            assert DRIVER.fake_last_launch().contents.parameter_count == (4 if m == 1 else 5)
    assert len(set(symbols.values())) == 10  # m = 1 has one unit for any n
    small.steady(x, 32, 48)
    assert launched()[0] == symbols[64, 32, 48]  # the spec's first block
    assert refused(lambda: small.steady(tensor("float64"), 32, 48, BLOCK=64)) == (
        "argument `x` of `steady` is fp64, steady:BLOCK=64,n%16,m%16@cuda:90 takes fp32"
    )


def check_descriptors() -> None:
    """A tensor that describes itself, and one described by an object as Triton's."""
    half, odd = tensor("float16"), Tensor(np.zeros(64, "complex64"), (CUDA, 0), COMPLEX)
    described = SimpleNamespace(base=half, shape=[8, 8], strides=[8, 1], padding="zero")
    small.features(described, 3, FEATURE="descriptor")
    assert DRIVER.fake_last_launch().contents.parameter_count == 8
    for wrong in (odd, SimpleNamespace(base=odd, shape=[8, 8], strides=[8, 1])):
        assert refused(lambda wrong=wrong: small.features(wrong, 3, FEATURE="descriptor"), TypeError) == (
            "argument `x` of `features` has elements of type the framework's, which no kernel takes"
        )
    described.strides = [1]
    assert refused(lambda: small.features(described, 3, FEATURE="descriptor"), ValueError) == (
        "argument `x` of `features` has a shape of 2 dimensions and strides of 1"
    )
    described.shape = [1] * 9
    assert refused(lambda: small.features(described, 3, FEATURE="descriptor"), ValueError) == (
        "argument `x` of `features` has 9 dimensions; a tensor descriptor has at most 5"
    )
    described.shape = 5
    assert refused(lambda: small.features(described, 3, FEATURE="descriptor"), TypeError) == (
        "argument `x` of `features` takes a tensor or a tensor descriptor, not SimpleNamespace"
    )


def check_allocator() -> None:
    """Scratch from a function of the caller's, which may take itself away; then the next launch asks the driver."""
    memory, asked = np.zeros(4096, np.uint8), []
    aligned = memory[-memory.ctypes.data % 128 :]

    def allocate(size: int, alignment: int, stream: int, device: int) -> object:
        asked.append((size, alignment, stream, device))
        small.set_allocator(None)
        return aligned

    x = tensor("float16")
    small.set_allocator(allocate)
    for _ in range(2):
        small.features(x, 3, FEATURE="scratch", stream=0x10007)
    assert asked == [(100 * 3 * 2 * 2, 128, 0x10007, 0)], asked
    assert DRIVER.fake_count(b"cuMemAllocAsync") == DRIVER.fake_count(b"cuMemFreeAsync") == 1
    small.set_allocator(lambda *_: 1 // 0)
    assert refused(lambda: small.features(x, 3, FEATURE="scratch"), ZeroDivisionError)
    small.set_allocator(None)


check_left_out_axes()
check_named_axes_and_hints()
check_descriptors()
check_allocator()
