"""Ten thousand served calls: `served_many_times.py FOLDER_OF_THE_PACKAGE`. Memory, files and threads stay."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import threading
from pathlib import Path

sys.path.insert(0, sys.argv[1])
import known
import numpy as np
import served_call_kernels as kernels
import triton
from triton.language import constexpr
from triton.runtime.autotuner import Autotuner

ROUNDS, CALLS = 20, 500


def aligned(dtype: str) -> np.ndarray:
    store = np.zeros(128, dtype)
    return store[-store.ctypes.data % 64 // store.itemsize :][:64]


def state() -> tuple[int, int, int, int]:
    """Objects, memory in pages, files, threads."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return len(gc.get_objects()), pages, len(os.listdir("/proc/self/fd")), threading.active_count()


configs = [triton.Config({"BLOCK": block}, num_stages=2) for block in (32, 64)]
tuner = Autotuner(kernels.scale, kernels.scale.arg_names, configs, ["n"], None, None)
tensors = {dtype: (aligned(dtype), aligned(dtype)) for dtype in ("float32", "float64")}


def call_all(kinds: int) -> None:
    out, x = tensors["float32"]
    for number in range(kinds):
        kernels.scale[(1,)](out, x, 2.0, 64, BLOCK=64)
        kernels.scale[lambda meta: (1,)](*tensors["float64"], alpha=2.0, n=64, BLOCK=constexpr(64), num_warps=8)
        kernels.scale[(1,)](out, x, 2.0, number % 64, BLOCK=256, MODE=2)[(1, 1, 1)](out, x, 1.0, 64)
        tuner[(1,)](out, x, 2.0, 64)
        with contextlib.suppress(RuntimeError):
            kernels.scale[(1,)](out, x, 2.0, 64, BLOCK=65 if number % 50 == 0 else 64)
        if number % 100 == 0:
            one = kernels.make_kernel(constexpr(0))
            one[(1,)](out, x, 2.0, 64, BLOCK=64)


with known.serve():
    seen = []
    for _ in range(ROUNDS):
        call_all(CALLS // 4)
        seen.append(state())
first, last = seen[ROUNDS // 2], seen[-1]
flat = last[0] <= first[0] + 10 and last[1] <= first[1] + 64 and last[2:] == first[2:]
references = [sys.getrefcount(each) for pair in tensors.values() for each in pair]
print("flat" if flat and max(references) < 8 else f"{seen} {references}")
