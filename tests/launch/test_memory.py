"""Tensors without memory are refused, whatever their framework offers; what a tensor reaches is measured by extent."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import exchange_framework
import numpy as np
import pytest
from conftest import aligned
from exchange_framework import Tensor
from launch_release import HERE


class Traced:
    """torch's way: data_ptr(), dtype, get_device(); `address` may be an error, as tracing raises."""

    dtype = "torch.float32"

    def __init__(self, address: int | BaseException, shape: tuple[int, ...] = (4, 64)) -> None:
        self.address, self.shape = address, shape

    def data_ptr(self) -> int:
        if isinstance(self.address, BaseException):
            raise self.address
        return self.address

    def get_device(self) -> int:
        return -1

    def stride(self) -> tuple[int, ...]:
        return tuple(np.zeros(self.shape).strides)


class OnlyPointer:
    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape

    def data_ptr(self) -> int:
        return 0


class Storage:
    """What torch's tensors lie in; its address may be an error."""

    def __init__(self, address: int | BaseException) -> None:
        self.address = address

    data_ptr = Traced.data_ptr


class Part(Traced):
    """A part of a tensor: its address is what its storage has for one, and an offset."""

    def __init__(self, storage: int | BaseException, address: int = 12) -> None:
        super().__init__(address)
        self.storage = storage

    def untyped_storage(self) -> Storage:
        if isinstance(self.storage, NotImplementedError):
            raise self.storage
        return Storage(self.storage)


class Substitute(Part):
    """One whose operations are code of Python's."""

    @classmethod
    def __torch_dispatch__(cls) -> None:
        raise AssertionError


class Reinterpreted(OnlyPointer):
    """A tensor under another element type."""

    base = Part(0)

    def data_ptr(self) -> int:
        return 12


class Interface:
    """The array interface, with an address of zero."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape

    @property
    def __array_interface__(self) -> dict[str, object]:
        return {"data": (0, False), "typestr": "<f4", "shape": self.shape, "version": 3}


class Undelivered:
    """DLPack that raises, as a tensor that needs a gradient."""

    def __dlpack__(self) -> object:
        raise BufferError("not exported:\nsecond line")

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


class Nowhere(Tensor):
    """DLPack's table of functions, with a null address."""


@exchange_framework.READ
def read_nothing(tensor: Nowhere, into) -> int:
    tensor.kept = (ctypes.c_int64 * 1)(tensor.array.size)
    into[0] = exchange_framework.DlTensor(None, 1, 0, 1, 2, 32, 1, tensor.kept, None, 64)
    return 0


class PartOfNothing(Nowhere):
    """A part of a tensor at a null address."""

    untyped_storage = Part(0).untyped_storage


@exchange_framework.READ
def read_part(tensor: PartOfNothing, into) -> int:
    read_nothing(tensor, into)
    into[0].data = 12
    return 0


TABLES = {}
for framework, reader in ((Nowhere, read_nothing), (PartOfNothing, read_part)):
    TABLES[framework] = exchange_framework.Table(
        1, 0, None, (ctypes.c_void_p * 3)(), reader, exchange_framework.current_stream
    )
    framework.__dlpack_c_exchange_api__ = exchange_framework.make_capsule(
        ctypes.addressof(TABLES[framework]), exchange_framework.CAPSULE, None
    )
NONE = "it has elements and no memory"
CASES = [
    (Traced(0), f"Traced that cannot be launched with: {NONE}"),
    (Traced(RuntimeError("Cannot access data pointer of Tensor\nmore")),
     "Traced that cannot be launched with: Cannot access data pointer of Tensor"),
    (OnlyPointer((3,)), f"OnlyPointer that cannot be launched with: {NONE}"),
    (Interface((3,)), f"Interface that cannot be launched with: {NONE}"),
    (Undelivered(), "Undelivered that cannot be launched with: not exported:"),
    (Nowhere(np.zeros(3, np.float32)), f"Nowhere that cannot be launched with: {NONE}"),
    (PartOfNothing(np.zeros(3, np.float32)), f"PartOfNothing that cannot be launched with: {NONE}"),
    (Part(0), f"Part that cannot be launched with: {NONE}"),
    (Part(RuntimeError("invalid storage")), f"Part that cannot be launched with: {NONE}"),
    (Part(NotImplementedError("no storage")), f"Part that cannot be launched with: {NONE}"),
    (Substitute(0, 2**45), f"Substitute that cannot be launched with: {NONE}"),
    (Reinterpreted((3,)), f"Reinterpreted that cannot be launched with: {NONE}"),
]  # fmt: skip


@pytest.mark.parametrize(("tensor", "words"), CASES, ids=lambda each: type(each).__name__)
def test_tensors_without_memory_are_refused(small, x, tensor, words):
    out = aligned(1000)
    for call in (lambda: small.scale(tensor, x, 2, 1000, BLOCK=64), lambda: small.scale(out, tensor, 2, 10, BLOCK=64),
                 lambda: small.biased(np.zeros(1, np.int64), tensor, 1)):  # fmt: skip
        for _ in range(2):
            with pytest.raises(ValueError, match="argument") as caught:
                call()
            assert str(caught.value).endswith(f"` is a {words}")
    small.scale(out, x, 2, 1000, BLOCK=64)
    np.testing.assert_array_equal(out, 2 * x)


class Substituted(Substitute):
    """Its memory is an array's."""

    def __init__(self, array: np.ndarray) -> None:
        super().__init__(array.ctypes.data, array.ctypes.data)
        self.shape = array.shape


def test_a_tensor_with_code_of_pythons_may_have_memory(small, x):
    out = aligned(1000)
    small.scale(Substituted(out), Substituted(x), 2, 1000, BLOCK=64)
    np.testing.assert_array_equal(out, 2 * x)


@pytest.mark.parametrize("empty", [Traced(0, (0, 4)), OnlyPointer((0,)), Interface((0,)),
                                   Nowhere(np.zeros(0, np.float32))], ids=lambda each: type(each).__name__)  # fmt: skip
def test_empty_tensors_need_no_memory(small, empty):
    small.scale(empty, empty, 2, 0, BLOCK=64, dtype="fp32")


def test_an_interrupt_while_a_tensor_is_read_is_itself(small, x):
    with pytest.raises(KeyboardInterrupt):
        small.scale(Traced(KeyboardInterrupt()), x, 2, 1000, BLOCK=64)
    with pytest.raises(KeyboardInterrupt):
        small.scale(Part(KeyboardInterrupt()), x, 2, 1000, BLOCK=64)


def test_range32_is_measured_by_extent(release, fakes):
    """In a process of its own, with HIP's driver for tests."""
    environment = {**os.environ, "LD_LIBRARY_PATH": str(fakes / "hip"), "PYTHONPATH": str(HERE)}
    done = subprocess.run([sys.executable, HERE / "hip_from_python.py", release / "python"], env=environment,
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0 and not done.stderr, done.stderr
