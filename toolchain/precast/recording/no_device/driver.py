"""A driver that launches nothing, and a compiler that compiles nothing: a program runs up to its launches.

In: a target. Out: Triton, in the program's own process, whose kernels are specialised as for that target. Whatever
Triton of 3.6 to 3.9 that is.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from precast.target import Target, shared_memory_limit, warp_size

Launched = Callable[[tuple[Any, ...]], None]  # gets what a kernel was launched with
# Multiprocessors of the largest product of each architecture, which programs make grids and constexprs of.
_PROCESSORS = {
    "75": 72, "80": 108, "86": 84, "87": 16, "89": 142, "90": 132, "100": 148, "103": 160, "120": 188,
    "gfx906": 60, "gfx908": 120, "gfx90a": 110, "gfx942": 304, "gfx950": 256, "gfx1100": 48, "gfx1201": 32,
}  # fmt: skip


def start(target: Target, launched: Launched) -> None:
    """From now on Triton compiles and launches nothing, and its tuners measure nothing."""
    import triton.compiler
    import triton.testing
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.driver import driver

    triton.compiler.compile = triton.compiler.compiler.compile = _pretending(launched)
    triton.testing.do_bench = triton.testing.do_bench_cudagraph = call_once
    Autotuner.do_bench = property(lambda tuner: call_once, lambda tuner, measure: None)
    Autotuner.check_disk_cache = lambda tuner, key, configs, measure: measure() or False
    driver._default = Driver(target)
    driver.set_active(driver._default)


def call_once(call: Callable[[], Any], *_: Any, quantiles: Any = None, return_mode: str = "mean", **__: Any) -> Any:
    """In the place of what measures: everything takes one millisecond."""
    call()
    return [1.0] * len(quantiles) if (quantiles and len(quantiles) > 1) or return_mode == "all" else 1.0


def count_processors(target: Target) -> int:
    return _PROCESSORS.get(target.arch, 64)


class Driver:
    """What Triton's runtime and programs ask of a driver."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self.utils = SimpleNamespace(get_device_properties=self._describe)

    def _describe(self, device: int) -> dict[str, int]:
        return {
            "max_shared_mem": shared_memory_limit(self._target) or 65536,
            "multiprocessor_count": count_processors(self._target),
            "max_num_regs": 65536,
            "warpSize": warp_size(self._target),
            "sm_clock_rate": 1_500_000,
            "mem_clock_rate": 1_500_000,
            "mem_bus_width": 4096,
        }

    def get_current_target(self) -> Any:
        from triton.backends.compiler import GPUTarget

        arch = self._target.arch
        return GPUTarget(self._target.backend, int(arch) if arch.isdecimal() else arch, warp_size(self._target))

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, device: int) -> None:
        """There is one."""

    def get_current_stream(self, device: int | None = None) -> int:
        return 0

    def get_active_torch_device(self) -> Any:
        import torch

        return torch.device("cuda", 0)

    def get_device_interface(self) -> Any:
        import torch

        return torch.cuda

    def get_benchmarker(self) -> Any:
        return call_once

    def get_empty_cache_for_benchmark(self) -> Any:
        return SimpleNamespace(zero_=lambda: None)

    def clear_cache(self, cache: Any) -> None:
        """Nothing is in it."""

    def map_python_to_cpp_type(self, name: str) -> str:
        return name


def _pretending(launched: Launched) -> Callable[..., Any]:
    """In the place of `triton.compile`: kernels that know what they would have been compiled from."""
    from triton.compiler import CompiledKernel

    class Uncompiled(CompiledKernel):  # type: ignore[misc]
        """As the JIT's own to whoever asks what it is; it launches nothing."""

        module = None
        function = 0
        n_regs = n_spills = 0
        n_max_threads = 1024

        def __init__(self, src: Any, target: Any, options: dict[str, Any]) -> None:
            about = {"shared": 0, "tmem_size": 0, **options, "name": src.name, "hash": "", "target": target}
            self.src, self.name, self.hash = src, src.name, ""
            self.metadata, self.packed_metadata = SimpleNamespace(**about), ()
            self.asm: dict[str, Any] = {}

        def _init_handles(self) -> None:
            """There is nothing to load."""

        def run(self, *given: Any) -> None:
            launched(given)

        def launch_metadata(self, grid: Any, stream: Any, *arguments: Any) -> None:
            return None

    def compile_nothing(src: Any, target: Any = None, options: Any = None, **_: Any) -> Any:
        if not hasattr(src, "attrs"):
            raise RuntimeError("a kernel that is a file of IR cannot be recorded")
        return Uncompiled(src, target, dict(options or {}))

    return compile_nothing
