"""What `torch.cuda` answers for a device that is not there.

In: a target. Out: functions in the place of those that would ask a device, in the program's own process.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from precast.recording.no_device.driver import count_processors
from precast.target import Backend, Target, find_capability, shared_memory_limit, warp_size

_MEMORY = 80 << 30  # bytes
_VERSIONS = {Backend.CUDA: ("13.0", None), Backend.HIP: (None, "7.0.0")}
_NOTHING = (
    "init", "_lazy_init", "synchronize", "set_device", "empty_cache", "manual_seed", "manual_seed_all", "seed",
    "seed_all", "set_stream", "set_rng_state", "set_rng_state_all", "reset_peak_memory_stats", "ipc_collect",
    "reset_max_memory_allocated", "reset_accumulated_memory_stats", "set_per_process_memory_fraction",
)  # fmt: skip
_TRUE = ("is_available", "is_initialized", "is_bf16_supported", "is_tf32_supported", "_is_compiled")
_ANSWERS_OF_WAITING = {"query": True, "elapsed_time": 1.0, "is_capturing": False}
_OBJECTS = (
    "Stream", "ExternalStream", "Event", "CUDAGraph", "graph", "stream", "device", "device_of", "StreamContext",
)  # fmt: skip
_ZERO = (
    "current_device", "memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved",
    "initial_seed", "utilization",
)  # fmt: skip


class Waiting:
    """A stream, an event, a graph, and what else a program may wait for: all has happened."""

    cuda_stream = stream_id = device_index = priority = 0

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: _ANSWERS_OF_WAITING.get(name)

    def __enter__(self) -> Waiting:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def start(torch: Any, target: Target) -> None:
    """Puts the answers into `torch`; a build of it without CUDA answers like one with."""
    for name, value in _answers(torch, target).items():
        setattr(torch.cuda, name, value)
    for name in _OBJECTS:
        setattr(torch.cuda, name, type(name, (Waiting,), {}))
    torch.Generator = _make_generator(torch)
    torch.version.cuda, torch.version.hip = _VERSIONS[target.kind]
    if hasattr(torch, "accelerator"):
        _start_accelerator(torch)


def _answers(torch: Any, target: Target) -> dict[str, Callable[..., Any]]:
    properties = describe(target)
    answers: dict[str, Any] = {
        **dict.fromkeys(_NOTHING),
        **dict.fromkeys(_ZERO, 0),
        **dict.fromkeys(_TRUE, True),
        "is_current_stream_capturing": False,
        "device_count": 1,
        "get_device_capability": (properties.major, properties.minor),
        "get_device_properties": properties,
        "get_device_name": properties.name,
        "get_arch_list": [f"sm_{target.arch}" if target.kind is Backend.CUDA else target.arch],
        "mem_get_info": (_MEMORY, _MEMORY),
        "memory_stats": {},
    }  # fmt: skip
    made: dict[str, Callable[..., Any]] = {name: _answering(value) for name, value in answers.items()}
    return {
        **made,
        "current_stream": lambda *_: torch.cuda.Stream(),
        "default_stream": lambda *_: torch.cuda.Stream(),
        "get_rng_state": lambda *_, **__: torch.zeros(16, dtype=torch.uint8),
        "get_rng_state_all": lambda *_, **__: [torch.zeros(16, dtype=torch.uint8)],
    }  # fmt: skip


def _answering(value: Any) -> Callable[..., Any]:
    return lambda *_, **__: value


def describe(target: Target) -> SimpleNamespace:
    """The device as `torch.cuda.get_device_properties` has it."""
    (major, minor), shared = find_capability(target), shared_memory_limit(target) or 65536
    return SimpleNamespace(
        name=str(target), major=major, minor=minor, multi_processor_count=count_processors(target),
        total_memory=_MEMORY, gcnArchName=target.arch, warp_size=warp_size(target), regs_per_multiprocessor=65536,
        max_threads_per_multi_processor=2048, max_threads_per_block=1024, shared_memory_per_block=48 << 10,
        shared_memory_per_block_optin=shared, shared_memory_per_multiprocessor=shared + 1024, L2_cache_size=50 << 20,
        is_integrated=0, is_multi_gpu_board=0, uuid="", clock_rate=1_500_000, memory_clock_rate=1_500_000,
        memory_bus_width=4096,
    )  # fmt: skip


def _make_generator(torch: Any) -> Any:
    class Generator(torch.Generator):  # type: ignore[misc]
        """One of the host for any device: what is at random there is not known anyway."""

        def __new__(cls, device: Any = "cpu") -> Any:
            return super().__new__(cls, "cpu")

    return Generator


def _start_accelerator(torch: Any) -> None:
    answers = {
        "is_available": True, "device_count": 1, "current_device_index": 0, "current_device_idx": 0,
        "current_accelerator": torch.device("cuda"),
        **dict.fromkeys(("synchronize", "set_device_index", "set_device_idx", "set_stream", "empty_cache")),
    }  # fmt: skip
    for name, value in answers.items():
        setattr(torch.accelerator, name, _answering(value))
    torch.accelerator.current_stream = Waiting
