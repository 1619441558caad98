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


class Cuda:
    """The current CUDA device: the first one that the process sees."""

    kind, timers = "cuda", {WARM: "cuda graph", FLUSHED: "events"}

    def __init__(self) -> None:
        self._library = ctypes.CDLL("libcuda.so.1")
        self._blocks: list[int] = []
        device, context, version, cache = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_int(), ctypes.c_int()
        name = ctypes.create_string_buffer(256)
        self.do("cuInit", 0)
        self.do("cuDeviceGet", ctypes.byref(device), 0)
        self.do("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.do("cuCtxSetCurrent", context)
        self.do("cuDeviceGetName", name, 256, device)
        self.do("cuDriverGetVersion", ctypes.byref(version))
        self.do("cuDeviceGetAttribute", ctypes.byref(cache), 38, device)  # bytes of the L2 cache
        stream = ctypes.c_void_p()
        self.do("cuStreamCreate", ctypes.byref(stream), 1)  # apart from the default stream
        self.name = name.value.decode()
        self.driver = f"CUDA {version.value // 1000}.{version.value % 1000 // 10}"
        self.stream = int(stream.value or 0)
        self.flush_bytes = 2 * max(cache.value, 1 << 20)
        self._flush = 0

    def do(self, name: str, *arguments: Any) -> None:
        """Calls the driver; `DeviceFault` for what it refuses."""
        code = getattr(self._library, name)(*arguments)
        if code:
            text = ctypes.c_char_p()
            self._library.cuGetErrorName(code, ctypes.byref(text))
            raise DeviceFault(f"{name}: {(text.value or b'unknown').decode()} ({code})")

    def allocate(self, data: np.ndarray[Any, Any]) -> int:
        if not len(data):
            return 0
        address = self._reserve(len(data))
        self._blocks.append(address)
        data = np.ascontiguousarray(data)
        self.do("cuMemcpyHtoD_v2", ctypes.c_uint64(address), ctypes.c_void_p(data.ctypes.data), _size(data))
        self.do("cuCtxSynchronize")  # a copy of little may still be under way
        return address

    def _reserve(self, size: int) -> int:
        address = ctypes.c_uint64()
        self.do("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        return address.value

    def copy(self, to: int, source: int, size: int) -> None:
        places = ctypes.c_uint64(to), ctypes.c_uint64(source)
        self.do("cuMemcpyDtoDAsync_v2", *places, ctypes.c_size_t(size), ctypes.c_void_p(self.stream))

    def read(self, address: int, size: int) -> np.ndarray[Any, Any]:
        data = np.empty(size, np.uint8)
        self.wait()
        self.do("cuMemcpyDtoH_v2", ctypes.c_void_p(data.ctypes.data), ctypes.c_uint64(address), _size(data))
        return data

    def free_all(self) -> None:
        while self._blocks:
            self.do("cuMemFree_v2", ctypes.c_uint64(self._blocks.pop()))

    def wait(self) -> None:
        self.do("cuStreamSynchronize", ctypes.c_void_p(self.stream))

    def flush(self) -> None:
        """Queues writes that leave nothing else in the L2 cache."""
        self._flush = self._flush or self._reserve(self.flush_bytes)
        count = ctypes.c_size_t(self.flush_bytes // 4)
        self.do("cuMemsetD32Async", ctypes.c_uint64(self._flush), 0, count, ctypes.c_void_p(self.stream))

    def make_timer(self, launch: Launch, seconds: float, cache: str) -> Timer:
        timer = _EventTimer(self, launch, 1, cache)
        try:
            first = min(timer.sample() for _ in range(3))
        finally:
            timer.close()
        count = count_launches(first, seconds)
        if cache == FLUSHED:
            return _EventTimer(self, launch, min(count, 20), cache)
        try:
            return _GraphTimer(self, launch, count)
        except DeviceFault:  # what a launch does besides may be nothing that can be captured
            return _EventTimer(self, launch, count, cache)


def _size(data: np.ndarray[Any, Any]) -> ctypes.c_size_t:
    return ctypes.c_size_t(data.nbytes)


class _Stopwatch:
    """Two events on a stream."""

    def __init__(self, device: Cuda) -> None:
        self._device = device
        self._events = [ctypes.c_void_p(), ctypes.c_void_p()]
        for each in self._events:
            device.do("cuEventCreate", ctypes.byref(each), 0)

    def mark(self, place: int) -> None:
        self._device.do("cuEventRecord", self._events[place], ctypes.c_void_p(self._device.stream))

    def seconds(self) -> float:
        """Between both marks, when the second is passed."""
        elapsed = ctypes.c_float()
        self._device.do("cuEventSynchronize", self._events[1])
        self._device.do("cuEventElapsedTime", ctypes.byref(elapsed), *self._events)
        return elapsed.value / 1000

    def close(self) -> None:
        for each in self._events:
            self._device.do("cuEventDestroy_v2", each)


class _EventTimer:
    """Launches one after another; with flushing each is timed for itself, behind the flush that hides its start."""

    def __init__(self, device: Cuda, launch: Launch, count: int, cache: str) -> None:
        self._device = device
        self._launch = launch
        self._count = count
        self._flushes = cache == FLUSHED
        self._watches = [_Stopwatch(device) for _ in range(count if self._flushes else 1)]

    def sample(self) -> float:
        count = 1 if self._flushes else self._count
        for watch in self._watches:
            if self._flushes:
                self._device.flush()
            watch.mark(0)
            for _ in range(count):
                self._launch(self._device.stream)
            watch.mark(1)
        times = sorted(watch.seconds() for watch in self._watches)
        return times[len(times) // 2] / count

    def close(self) -> None:
        for watch in self._watches:
            watch.close()


class _GraphTimer:
    """Launches in a CUDA graph: between two of them there is no work of the host's."""

    def __init__(self, device: Cuda, launch: Launch, count: int) -> None:
        self._device = device
        self._count = count
        self._graph, self._ready = ctypes.c_void_p(), ctypes.c_void_p()
        stream = ctypes.c_void_p(device.stream)
        device.do("cuStreamBeginCapture_v2", stream, 2)  # what other streams do meanwhile is no matter
        try:
            for _ in range(count):
                launch(device.stream)
        except Exception as error:
            device._library.cuStreamEndCapture(stream, ctypes.byref(self._graph))
            raise DeviceFault(str(error)) from error
        device.do("cuStreamEndCapture", stream, ctypes.byref(self._graph))
        device.do("cuGraphInstantiateWithFlags", ctypes.byref(self._ready), self._graph, ctypes.c_uint64(0))
        self._watch = _Stopwatch(device)
        self._replay()

    def _replay(self) -> None:
        self._device.do("cuGraphLaunch", self._ready, ctypes.c_void_p(self._device.stream))

    def sample(self) -> float:
        self._watch.mark(0)
        self._replay()
        self._watch.mark(1)
        return self._watch.seconds() / self._count

    def close(self) -> None:
        self._watch.close()
        self._device.do("cuGraphExecDestroy", self._ready)
        self._device.do("cuGraphDestroy", self._graph)


def open_device(kind: str) -> Device:
    """The device that units of a kind of target run on; `DeviceFault` where there is none."""
    if kind == "cpu":
        return Host()
    if kind != "cuda":
        raise DeviceFault(f"no device of kind {kind} can be tuned on: there are cuda and cpu")
    try:
        return Cuda()
    except OSError as error:
        raise DeviceFault(f"there is no CUDA driver: {error}") from None
