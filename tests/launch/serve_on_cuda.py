"""Calls of Triton served on the CUDA driver for tests: `serve_on_cuda.py EMPTY_FOLDER`.

`scale` has `num_warps` as an axis on sm_90; `add` has one value of it on each target, and a CPU unit. Prints what
a call of `scale` says that no unit fits.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import served_kernels
from launch_release import TestUnit, build_release, fake_image, make_unit

from precast.engines.source_digest import digest_source
from precast.spec.model import Argument

DRIVER = ctypes.CDLL("libcuda.so.1")
DRIVER.fake_last_launch.restype = ctypes.c_char_p  # a launch starts with its symbol
GPU_OPTIONS = (("launch_cooperative_grid", False), ("num_ctas", 1), ("num_stages", 3))


def make_units(kernel: str, alpha: list[Argument], target: str, warps: int, axes=()) -> Iterator[TestUnit]:
    function = getattr(served_kernels, f"{kernel}_kernel")
    arguments = [Argument("out", "*fp32"), Argument("x", "*fp32"), *alpha, Argument("n", "i32"),
                 Argument("BLOCK", "constexpr", value=64)]  # fmt: skip
    unit, facts = make_unit(kernel, target, [("BLOCK", 64), *axes], arguments, ("cdiv(n, BLOCK)", "1", "1"))
    gpu = not target.startswith("cpu")
    options = (("enable_fp_fusion", True), *((*GPU_OPTIONS, ("num_warps", warps)) if gpu else ()))
    facts = replace(facts, source_digest=digest_source(function).text, options=options)
    each = TestUnit(unit, facts, f"SCALE({facts.symbol}, float, 64)")
    yield replace(each, body=fake_image(each)) if gpu else each


def all_units() -> Iterator[TestUnit]:
    alpha = [Argument("alpha", "fp32")]
    for warps in (4, 8):
        yield from make_units("scale", alpha, "cuda:90", warps, [("num_warps", warps)])
    yield from make_units("add", [], "cuda:80", 4)
    yield from make_units("add", [], "cuda:90", 8)
    yield from make_units("add", [], "hip:gfx942", 2)
    yield from make_units("add", [], "cpu:x86-64-v2", 0)


class Tensor:
    dtype = "torch.float32"
    nbytes = 4096

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0

    def data_ptr(self) -> int:
        return 4096

    def get_device(self) -> int:
        return 0


class Reinterpreted:
    """A tensor under another type, as Triton makes them."""

    base = Tensor()

    def data_ptr(self) -> int:
        return self.base.data_ptr()


def last_stream() -> int:
    """The stream of the last launch; it stands behind 256 bytes of symbol, five numbers and padding."""
    find = ctypes.CFUNCTYPE(ctypes.c_void_p)(("fake_last_launch", DRIVER))
    return ctypes.c_uint64.from_address(find() + 280).value


def served(**options) -> str:
    """The unit that a call of `scale` runs."""
    tensor = Tensor()
    served_kernels.scale_kernel[(1,)](tensor, tensor, 2.0, 64, BLOCK=64, **options)
    return units[DRIVER.fake_last_launch().decode()]


def added(**options) -> str:
    tensor = Tensor()
    served_kernels.add_kernel[(1,)](tensor, tensor, 64, BLOCK=64, **options)
    return units[DRIVER.fake_last_launch().decode()]


def refused(call, **options) -> str:
    try:
        call(**options)
    except RuntimeError as error:
        return str(error)
    raise AssertionError("the call was not refused")


sys.path.insert(0, str(build_release(Path(sys.argv[1]), list(all_units()), name="gpu", selection=()) / "python"))
import gpu  # noqa: E402

DRIVER.fake_devices(1, (ctypes.c_int * 1)(90))
units = {each.facts.symbol: str(each.unit) for each in all_units()}
FUSED = "no variant has enable_fp_fusion=False; this would make it:\n"
with gpu.serve():
    for _ in range(2):  # looked at in Python, then known
        assert served(num_warps=8) == served(num_warps=8, num_stages=3) == "scale:BLOCK=64,num_warps=8@cuda:90"
        assert served() == served(num_warps=4) == "scale:BLOCK=64,num_warps=4@cuda:90"
        said = refused(served, num_warps=2)
        assert "no variant has num_warps=2; this would make it:\n[kernel.scale_kernel]\n" in said, said
        assert 'only = ["cuda:*", "hip:*"]' in said and said.endswith("[kernel.scale_kernel.options]\nnum_warps = 2"), (
            said
        )
        assert FUSED in refused(served, enable_fp_fusion=False)
        assert "no variant has num_stages=9" in refused(served, num_stages=9)
        assert "no variant has launch_cooperative_grid=True" in refused(served, launch_cooperative_grid=True)
        assert "targets have no option `BLOK`" in refused(served, BLOK=3)

        assert added() == added(num_warps=8) == "add:BLOCK=64@cuda:90"
        assert "no variant has num_warps=4" in refused(added, num_warps=4), "that unit is another GPU's"
        assert "no variant has num_warps=2" in refused(added, num_warps=2)
        x, before = np.zeros(64, "f4"), DRIVER.fake_launch_count()
        for warps in (2, 4, 8, 16):
            served_kernels.add_kernel[(1,)](x, x, 64, BLOCK=64, num_warps=warps)
        assert DRIVER.fake_launch_count() == before, "a CPU has no warps"
    sys.modules["torch._C"] = SimpleNamespace(_cuda_getCurrentRawStream=lambda device: (device + 1) << 16)
    for tensor in (Tensor(), Reinterpreted(), Tensor(), Reinterpreted()):
        served_kernels.scale_kernel[(1,)](tensor, tensor, 2.0, 64, BLOCK=64)
        assert last_stream() == 1 << 16
print(said)
