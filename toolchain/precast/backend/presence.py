"""Whether the CPU is the device of this process. In: the environment, the machine, what is installed. Out: yes or no.

Triton wants one active driver, and programs count them, at import or in a forked worker where a GPU's own driver cannot
answer. So beside a GPU the CPU is the device only when it is asked for by name.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

TRITON = "3.9."
NAME = "cpu"  # of the entry point
PARTS = ("mlir", "llvmlite")
GPU_DEVICES = ("nvidiactl", "nvidia0", "nvgpu", "kfd")


def is_device(own_driver: type) -> bool:
    """Whether kernels run on the CPU. Never raises, whatever Triton this is."""
    wanted = os.environ.get("TRITON_DEFAULT_BACKEND")
    if wanted and wanted != NAME:
        return False
    return has_parts() and (bool(wanted) or not (has_gpu() or has_other_driver(own_driver)))


def has_parts() -> bool:
    """Whether this is the Triton that the engine knows, with the `cpu` extra, on a processor that it has code for."""
    import triton

    known = str(getattr(triton, "__version__", "")).startswith(TRITON)
    return known and all(importlib.util.find_spec(each) for each in PARTS) and find_level() is not None


def find_level() -> str | None:
    """This processor's feature level, `x86-64-v2` to `-v4-amx`; None below them."""
    from precast.target import read_native_level

    return read_native_level()


def has_gpu(devices: Path = Path("/dev")) -> bool:
    """Whether the kernel has a GPU's driver loaded that Triton compiles for."""
    return any((devices / each).exists() for each in GPU_DEVICES)


def has_other_driver(own_driver: type) -> bool:
    """Whether another of Triton's back ends says that its device is there."""
    from triton.backends import backends

    return any(each.driver.is_active() for each in backends.values() if each.driver is not own_driver)
