"""Triton's driver for a CPU: which device there is, how long things take on it, how kernels get into memory.

In: what Triton's runtime asks. Out: its answers. There is one device, which PyTorch too calls "cpu", with one stream,
0, and a launch has run when it returns.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable
from typing import Any

from triton.backends.driver import DriverBase

from precast.backend.launcher import CpuLauncher
from precast.backend.presence import NAME, find_level, is_device

_CACHE_BYTES = 64 << 20  # more than the last-level cache of most machines: what benchmarks write between runs
_ANY_NUMBER = 1 << 30  # no limit of a GPU's kind


class CpuDriver(DriverBase):  # type: ignore[misc]
    """The driver; active where `presence` says so."""

    launcher_cls = CpuLauncher

    def __init__(self) -> None:
        self.utils = Images()

    @classmethod
    def is_active(cls) -> bool:
        return is_device(cls)

    def map_python_to_cpp_type(self, ty: str) -> str:
        return "uint64_t"  # every value has a slot of 8 bytes

    def get_current_target(self) -> Any:
        from triton import knobs
        from triton.backends.compiler import GPUTarget

        return GPUTarget(NAME, knobs.runtime.override_arch or find_level(), 1)

    def get_current_device(self) -> str:
        return NAME

    def set_current_device(self, device: str) -> None:
        """There is one."""

    def get_current_stream(self, device: str | None = None) -> int:
        return 0

    def get_active_torch_device(self) -> Any:
        import torch

        return torch.device("cpu")

    def get_device_interface(self) -> Any:
        return CpuInterface

    def get_benchmarker(self) -> Callable[..., Any]:
        from triton.testing import do_bench

        return do_bench  # type: ignore[no-any-return]

    def get_empty_cache_for_benchmark(self) -> Any:
        return CacheFiller()

    def clear_cache(self, cache: Any) -> None:
        cache.zero_()


class CacheFiller:
    """Memory that is written between the runs of a benchmark, so that each finds the processor's caches as the last."""

    def __init__(self) -> None:
        self._memory = (ctypes.c_char * _CACHE_BYTES)()

    def zero_(self) -> None:
        ctypes.memset(self._memory, 0, _CACHE_BYTES)


class Images:
    """What Triton calls a driver's `utils`."""

    def get_device_properties(self, device: str) -> dict[str, Any]:
        """A GPU's properties, as far as a CPU has them; no program is refused for its shared memory."""
        return {
            "max_shared_mem": _ANY_NUMBER,
            "multiprocessor_count": len(os.sched_getaffinity(0)),
            "max_num_regs": _ANY_NUMBER,
            "warpSize": 1,
            "arch": find_level(),
        }

    def load_binary(self, name: str, image: bytes, shared: int, device: str) -> tuple[Any, int, int, int, int]:
        """The loaded image, its entry's address; no registers counted, none spilled, no limit of threads."""
        from precast.engines.cpu.loading import load_object

        loaded = load_object(image, name)
        return loaded, loaded.entry, 0, 0, _ANY_NUMBER

    def unload_module(self, loaded: Any) -> None:
        """Goes with the last reference to it."""


class Event:
    """A point in time, as `torch.cuda.Event`; times in milliseconds."""

    def __init__(self, enable_timing: bool = False, **_: Any) -> None:
        self._nanoseconds = 0

    def record(self, stream: Any = None) -> None:
        self._nanoseconds = time.perf_counter_ns()

    def synchronize(self) -> None:
        """Everything before it has happened."""

    def query(self) -> bool:
        return True

    def elapsed_time(self, later: Event) -> float:
        return max(later._nanoseconds - self._nanoseconds, 1) / 1e6


class CpuInterface:
    """What Triton asks of `torch.cuda` for a GPU."""

    Event = Event

    @staticmethod
    def synchronize(device: Any = None) -> None:
        """A launch has run when it returns."""

    @staticmethod
    def current_device() -> str:
        return NAME

    @staticmethod
    def device_count() -> int:
        return 1

    @staticmethod
    def is_available() -> bool:
        return True
