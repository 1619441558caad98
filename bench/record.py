"""What recording costs a program: `python bench/record.py [--out FILE]`.

Calls that were met before, of plain and of autotuned functions, are timed in turn while they are recorded and while
they are not, by the processor's time. Where there is an NVIDIA device they run on it; else on the CPU, where Precast is
Triton's back end (its `cpu` extra), and with a driver that compiles for a GPU and launches nothing: there nothing else
takes any time, so that no program pays a larger part. Needs Triton; torch where there is a device.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from launch import Figure, HostTensor, compare, has_device, load_module, read_processor

HERE = Path(__file__).parent
BOUND = 1.05
ROUNDS, BATCHES, BATCH, SETTLING, WARM_UP = 36, 5, 100, 400, 600
SHAPES = {6: (3, 3), 19: (8, 11)}


class NoLaunch:
    """A driver of Triton's for a GPU that is not there."""

    utils = SimpleNamespace(
        load_binary=lambda name, image, shared, device: (object(), 1, 32, 0, 1024),
        unload_module=lambda module: None,
        get_device_properties=lambda device: {"max_shared_mem": 1 << 20, "warpSize": 32, "multiprocessor_count": 1},
    )

    def launcher_cls(self, source: Any, metadata: Any) -> Callable[..., None]:
        return lambda *arguments: None

    def get_current_target(self) -> Any:
        from triton.backends.compiler import GPUTarget

        return GPUTarget("cuda", 90, 32)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0


def make_calls(tensor: Callable[[], Any]) -> Iterator[tuple[str, Callable[[], object]]]:
    """A call of each kind, by name."""
    import triton

    kernels = load_module(HERE / "launch_kernels/kernels/launch.py")
    for count, (pointers, numbers) in SHAPES.items():
        values = [*(tensor() for _ in range(pointers)), *[7] * numbers]
        function = getattr(kernels, f"args{count}_kernel")
        yield f"{count} arguments", lambda function=function, values=values: function[1,](*values)
        configs = [triton.Config({}, num_warps=warps) for warps in (1, 2)]
        measure = dict(do_bench=lambda call, quantiles: (call(), [1.0] * 3)[1])
        tuner = triton.autotune(configs, key=["n0"], **measure)(function)
        yield f"{count} arguments, autotuned", lambda tuner=tuner, values=values: tuner[1,](*values)


def measure_call(call: Callable[[], object], watch: Any, what: str, where: str) -> Figure:
    """Paired rounds of one call, in both orders."""

    def batch() -> float:
        for _ in range(SETTLING):  # Python finds its ways anew where classes have changed
            call()
        start = time.thread_time_ns()
        for _ in range(BATCH):
            call()
        return (time.thread_time_ns() - start) / BATCH

    def recorded() -> float:
        watch.start()
        try:
            return batch()
        finally:
            watch.stop()

    for _ in range(WARM_UP // BATCH + 1):
        recorded(), batch()
    ours, theirs = [], []
    for _ in range(ROUNDS):
        taken: tuple[list[float], list[float]] = ([], [])
        for number in range(BATCHES):
            for is_ours in (number % 2 == 0, number % 2 == 1):
                taken[is_ours].append(recorded() if is_ours else batch())
        ours.append(statistics.median(taken[1]))
        theirs.append(statistics.median(taken[0]))
    return compare(f"recorded call, {what}", f"the same call{where}", BOUND, ours, theirs, "ns")


def measure_all(tensor: Callable[[], Any], where: str) -> list[Figure]:
    from precast.recording.watch import Watch

    figures = []
    with tempfile.TemporaryDirectory() as folder:
        for what, call in make_calls(tensor):
            figures.append(measure_call(call, Watch(Path(folder)), what, where))
    return figures


def measure() -> list[Figure]:
    from triton.runtime.driver import driver

    if has_device():
        import torch

        return measure_all(lambda: torch.zeros(64, device="cuda"), "")
    figures = []
    if importlib.util.find_spec("llvmlite"):
        figures = measure_all(HostTensor, " on a CPU")
    driver.set_active(NoLaunch())
    return figures + measure_all(HostTensor, " where launches take no time")


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    figures = measure()
    for each in figures:
        print(f"{each.what} against {each.against}: {each.mean:.3f} [{each.low:.3f}, {each.high:.3f}] of at most "
              f"{each.bound}; {each.ours:.0f} and {each.theirs:.0f} ns")  # fmt: skip
    if arguments.out:
        listed = [{**asdict(each), "holds": each.holds} for each in figures]
        result = {"machine": {"processor": read_processor()}, "figures": listed}
        arguments.out.write_text(json.dumps(result, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
