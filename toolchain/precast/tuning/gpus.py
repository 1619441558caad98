"""A GPU as tuning uses it, through the library of its driver: memory, events, graphs.

In: launches on a stream. Out: addresses, seconds. Goes into candidates. CUDA's driver and the HIP runtime have the same
functions under other names; what a name stands for is a row of a table.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, ClassVar

import numpy as np

from precast.tuning.devices import FLUSHED, WARM, DeviceFault, Launch, Timer, count_launches

RELAXED = 2  # of capturing: what other streams do meanwhile is no matter
_ALONE = 1  # of a stream: apart from the default one


class Gpu:
    """The first device that the process sees. `names` are the functions of the driver's library by what they do."""

    kind: str
    names: ClassVar[Mapping[str, str]]
    libraries: ClassVar[tuple[str, ...]]
    timers: dict[str, str]
    name: str
    driver: str

    def __init__(self) -> None:
        self._library = _open_library(self.libraries)
        self._blocks: list[int] = []
        self._flush = 0
        self.do("initialise", 0)
        self.name, self.driver, cache = self.describe()
        self.flush_bytes = 2 * max(cache, 1 << 20)
        stream = ctypes.c_void_p()
        self.do("create_stream", ctypes.byref(stream), _ALONE)
        self.stream = int(stream.value or 0)

    def describe(self) -> tuple[str, str, int]:
        """Makes the device the current one: its name as a release has it, the driver's version, bytes of L2 cache."""
        raise NotImplementedError

    def name_error(self, code: int) -> str:
        raise NotImplementedError

    def do(self, act: str, *arguments: Any) -> None:
        """Calls the driver; `DeviceFault` for what it refuses."""
        name = self.names[act]
        code = getattr(self._library, name)(*arguments)
        if code:
            raise DeviceFault(f"{name}: {self.name_error(code)} ({code})")

    def allocate(self, data: np.ndarray[Any, Any]) -> int:
        if not len(data):
            return 0
        address = self._reserve(len(data))
        self._blocks.append(address)
        data = np.ascontiguousarray(data)
        self.do("copy_in", ctypes.c_uint64(address), ctypes.c_void_p(data.ctypes.data), _size(data))
        self.do("wait_for_all")  # a copy of little may still be under way
        return address

    def _reserve(self, size: int) -> int:
        address = ctypes.c_uint64()
        self.do("allocate", ctypes.byref(address), ctypes.c_size_t(size))
        return address.value

    def copy(self, to: int, source: int, size: int) -> None:
        places = ctypes.c_uint64(to), ctypes.c_uint64(source)
        self.do("copy", *places, ctypes.c_size_t(size), ctypes.c_void_p(self.stream))

    def read(self, address: int, size: int) -> np.ndarray[Any, Any]:
        data = np.empty(size, np.uint8)
        self.wait()
        self.do("copy_out", ctypes.c_void_p(data.ctypes.data), ctypes.c_uint64(address), _size(data))
        return data

    def free_all(self) -> None:
        while self._blocks:
            self.do("free", ctypes.c_uint64(self._blocks.pop()))

    def wait(self) -> None:
        self.do("wait", ctypes.c_void_p(self.stream))

    def flush(self) -> None:
        """Queues writes that leave nothing else in the L2 cache."""
        self._flush = self._flush or self._reserve(self.flush_bytes)
        count = ctypes.c_size_t(self.flush_bytes // 4)
        self.do("fill", ctypes.c_uint64(self._flush), 0, count, ctypes.c_void_p(self.stream))

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

    def __init__(self, device: Gpu) -> None:
        self._device = device
        self._events = [ctypes.c_void_p(), ctypes.c_void_p()]
        for each in self._events:
            device.do("create_event", ctypes.byref(each), 0)

    def mark(self, place: int) -> None:
        self._device.do("record_event", self._events[place], ctypes.c_void_p(self._device.stream))

    def seconds(self) -> float:
        """Between both marks, when the second is passed."""
        elapsed = ctypes.c_float()
        self._device.do("wait_for_event", self._events[1])
        self._device.do("measure", ctypes.byref(elapsed), *self._events)
        return elapsed.value / 1000

    def close(self) -> None:
        for each in self._events:
            self._device.do("destroy_event", each)


class _EventTimer:
    """Launches one after another; with flushing each is timed for itself, behind the flush that hides its start."""

    def __init__(self, device: Gpu, launch: Launch, count: int, cache: str) -> None:
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
    """Launches in a graph: between two of them there is no work of the host's."""

    def __init__(self, device: Gpu, launch: Launch, count: int) -> None:
        self._device = device
        self._count = count
        self._graph, self._ready = ctypes.c_void_p(), ctypes.c_void_p()
        stream = ctypes.c_void_p(device.stream)
        device.do("begin_capture", stream, RELAXED)
        try:
            for _ in range(count):
                launch(device.stream)
        except Exception as error:
            with suppress(DeviceFault):
                device.do("end_capture", stream, ctypes.byref(self._graph))
            raise DeviceFault(str(error)) from error
        device.do("end_capture", stream, ctypes.byref(self._graph))
        device.do("prepare_graph", ctypes.byref(self._ready), self._graph, ctypes.c_uint64(0))
        self._watch = _Stopwatch(device)
        self._replay()

    def _replay(self) -> None:
        self._device.do("launch_graph", self._ready, ctypes.c_void_p(self._device.stream))

    def sample(self) -> float:
        self._watch.mark(0)
        self._replay()
        self._watch.mark(1)
        return self._watch.seconds() / self._count

    def close(self) -> None:
        self._watch.close()
        self._device.do("destroy_ready", self._ready)
        self._device.do("destroy_graph", self._graph)


class Cuda(Gpu):
    """An NVIDIA device, through CUDA's driver."""

    kind, timers = "cuda", {WARM: "cuda graph", FLUSHED: "events"}
    libraries = ("libcuda.so.1",)
    names: ClassVar[Mapping[str, str]] = {
        "initialise": "cuInit", "create_stream": "cuStreamCreate", "wait": "cuStreamSynchronize",
        "wait_for_all": "cuCtxSynchronize", "allocate": "cuMemAlloc_v2", "free": "cuMemFree_v2",
        "copy_in": "cuMemcpyHtoD_v2", "copy_out": "cuMemcpyDtoH_v2", "copy": "cuMemcpyDtoDAsync_v2",
        "fill": "cuMemsetD32Async", "create_event": "cuEventCreate", "record_event": "cuEventRecord",
        "wait_for_event": "cuEventSynchronize", "measure": "cuEventElapsedTime", "destroy_event": "cuEventDestroy_v2",
        "begin_capture": "cuStreamBeginCapture_v2", "end_capture": "cuStreamEndCapture",
        "prepare_graph": "cuGraphInstantiateWithFlags", "launch_graph": "cuGraphLaunch",
        "destroy_ready": "cuGraphExecDestroy", "destroy_graph": "cuGraphDestroy",
        "get_device": "cuDeviceGet", "retain_context": "cuDevicePrimaryCtxRetain", "set_context": "cuCtxSetCurrent",
        "get_name": "cuDeviceGetName", "get_version": "cuDriverGetVersion", "get_attribute": "cuDeviceGetAttribute",
    }  # fmt: skip
    _CACHE_BYTES = 38

    def describe(self) -> tuple[str, str, int]:
        device, context, version, cache = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_int(), ctypes.c_int()
        name = ctypes.create_string_buffer(256)
        self.do("get_device", ctypes.byref(device), 0)
        self.do("retain_context", ctypes.byref(context), device)
        self.do("set_context", context)
        self.do("get_name", name, 256, device)
        self.do("get_version", ctypes.byref(version))
        self.do("get_attribute", ctypes.byref(cache), self._CACHE_BYTES, device)
        return name.value.decode(), f"CUDA {version.value // 1000}.{version.value % 1000 // 10}", cache.value

    def name_error(self, code: int) -> str:
        text = ctypes.c_char_p()
        self._library.cuGetErrorName(code, ctypes.byref(text))
        return (text.value or b"unknown").decode()


class Hip(Gpu):
    """An AMD device, through the HIP runtime."""

    kind, timers = "hip", {WARM: "hip graph", FLUSHED: "events"}
    libraries = ("libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so")  # as the release's own runtime looks for it
    names: ClassVar[Mapping[str, str]] = {
        "initialise": "hipInit", "create_stream": "hipStreamCreateWithFlags", "wait": "hipStreamSynchronize",
        "wait_for_all": "hipDeviceSynchronize", "allocate": "hipMalloc", "free": "hipFree",
        "copy_in": "hipMemcpyHtoD", "copy_out": "hipMemcpyDtoH", "copy": "hipMemcpyDtoDAsync",
        "fill": "hipMemsetD32Async", "create_event": "hipEventCreateWithFlags", "record_event": "hipEventRecord",
        "wait_for_event": "hipEventSynchronize", "measure": "hipEventElapsedTime", "destroy_event": "hipEventDestroy",
        "begin_capture": "hipStreamBeginCapture", "end_capture": "hipStreamEndCapture",
        "prepare_graph": "hipGraphInstantiateWithFlags", "launch_graph": "hipGraphLaunch",
        "destroy_ready": "hipGraphExecDestroy", "destroy_graph": "hipGraphDestroy",
        "count": "hipGetDeviceCount", "set_device": "hipSetDevice", "get_properties": "hipGetDevicePropertiesR0600",
        "get_version": "hipRuntimeGetVersion", "get_attribute": "hipDeviceGetAttribute",
    }  # fmt: skip
    _CACHE_BYTES = 19
    _PROPERTIES_BYTES, _NAME_BYTES, _ARCH = 4096, 95, 1160  # hipDeviceProp_tR0600: the name first, gcnArchName at 1160

    def describe(self) -> tuple[str, str, int]:
        count, version, cache = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
        properties = ctypes.create_string_buffer(self._PROPERTIES_BYTES)
        self.do("count", ctypes.byref(count))
        if not count.value:
            raise DeviceFault("the HIP runtime finds no device")
        self.do("set_device", 0)
        self.do("get_properties", properties, 0)
        self.do("get_version", ctypes.byref(version))
        self.do("get_attribute", ctypes.byref(cache), self._CACHE_BYTES, 0)
        name = properties.raw[: self._NAME_BYTES].partition(b"\0")[0]  # as much as the release's runtime compares
        arch = properties.raw[self._ARCH :].partition(b"\0")[0].partition(b":")[0]
        number = version.value
        return (name or arch).decode(), f"HIP {number // 10**7}.{number // 10**5 % 100}", cache.value

    def name_error(self, code: int) -> str:
        find = self._library.hipGetErrorName
        find.restype = ctypes.c_char_p
        return (find(code) or b"unknown").decode()


GPUS: Mapping[str, type[Gpu]] = {"cuda": Cuda, "hip": Hip}


def _open_library(names: tuple[str, ...]) -> ctypes.CDLL:
    """The first that is there; `OSError` where none is."""
    for name in names[:-1]:
        with suppress(OSError):
            return ctypes.CDLL(name)
    return ctypes.CDLL(names[-1])


def open_gpu(kind: str) -> Gpu:
    """The device; `DeviceFault` where there is none, or no driver."""
    words = {"cuda": "CUDA driver", "hip": "HIP runtime"}
    try:
        return GPUS[kind]()
    except OSError as error:
        raise DeviceFault(f"there is no {words[kind]}: {error}") from None
