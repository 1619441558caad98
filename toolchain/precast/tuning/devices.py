"""A device as tuning uses it: memory, and how long launches take.

In: bytes, and functions that launch on a stream. Out: addresses, seconds. Goes into candidates.
A GPU is reached through the driver's own library; the host's processor through NumPy.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np

WARM, FLUSHED = "warm", "flushed"  # what is in the last level of cache when a kernel begins
MOST_LAUNCHES = 500  # in one sample

Launch = Callable[[int], object]  # on a stream


class DeviceFault(Exception):
    """What a driver refused."""


class Timer(Protocol):
    """Launches of one config and problem, made ready to be timed again and again."""

    def sample(self) -> float:
        """Seconds of one launch."""

    def close(self) -> None: ...


class Device(Protocol):
    """Where candidates are measured."""

    kind: str  # of a target: `cuda`, `cpu`
    name: str
    driver: str
    timers: dict[str, str]  # how times are taken, by what the cache holds
    stream: int

    def allocate(self, data: np.ndarray[Any, Any]) -> int:
        """Memory that holds a copy of the bytes, and its address; 0 for none."""

    def copy(self, to: int, source: int, size: int) -> None:
        """Bytes from one place of its memory to another."""

    def read(self, address: int, size: int) -> np.ndarray[Any, Any]: ...

    def free_all(self) -> None: ...

    def wait(self) -> None: ...

    def make_timer(self, launch: Launch, seconds: float, cache: str) -> Timer:
        """A timer whose samples take about so many seconds."""


class Host:
    """This machine's processor."""

    kind, driver, timers = "cpu", "", {WARM: "clock", FLUSHED: "clock"}
    stream = 2**64 - 1  # precast.h's PRECAST_CPU

    def __init__(self) -> None:
        self.name = read_processor()
        self._blocks: dict[int, np.ndarray[Any, Any]] = {}
        self._flush = np.zeros(64 << 20, np.uint8)

    def allocate(self, data: np.ndarray[Any, Any]) -> int:
        if not len(data):
            return 0
        block = np.zeros(len(data) + 64, np.uint8)
        address = -(-block.ctypes.data // 64) * 64
        self._blocks[address] = block
        ctypes.memmove(address, data.ctypes.data, len(data))
        return address

    def copy(self, to: int, source: int, size: int) -> None:
        ctypes.memmove(to, source, size)

    def read(self, address: int, size: int) -> np.ndarray[Any, Any]:
        data = np.empty(size, np.uint8)
        ctypes.memmove(data.ctypes.data, address, size)
        return data

    def free_all(self) -> None:
        self._blocks.clear()

    def wait(self) -> None:
        """A launch has ended when it returns."""

    def make_timer(self, launch: Launch, seconds: float, cache: str) -> Timer:
        return _HostTimer(self._flush if cache == FLUSHED else None, launch, seconds)


class _HostTimer:
    def __init__(self, flush: np.ndarray[Any, Any] | None, launch: Launch, seconds: float) -> None:
        self._flush = flush
        self._launch = launch
        self._count = 1
        self._count = count_launches(self.sample(), seconds)

    def sample(self) -> float:
        total = 0.0
        for _ in range(self._count if self._flush is not None else 1):
            count = 1
            if self._flush is None:
                count = self._count
            else:
                self._flush += 1
            start = time.perf_counter()
            for _ in range(count):
                self._launch(Host.stream)
            total += time.perf_counter() - start
        return total / self._count

    def close(self) -> None:
        """There is nothing to give back."""


def count_launches(seconds: float, wanted: float) -> int:
    """So many launches of `seconds` take about what is wanted."""
    return max(1, min(MOST_LAUNCHES, round(wanted / max(seconds, 1e-7))))


def read_processor() -> str:
    """The processor's name as it says it itself."""
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
        if line.startswith("model name"):
            return " ".join(line.partition(":")[2].split())
    return "cpu"
