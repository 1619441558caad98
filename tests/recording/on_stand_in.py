"""A program for a GPU that is not there: a driver that compiles for sm_90 and launches nothing. Whatever Triton it is.

`on_stand_in.py FILE`: records into the file, and prints which Triton that was.
"""

import contextlib
import sys
from types import SimpleNamespace

import numpy as np
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.runtime.driver import driver
from triton.tools.tensor_descriptor import TensorDescriptor

import precast


class Driver:
    """What Triton's runtime asks of a driver."""

    utils = SimpleNamespace(
        load_binary=lambda name, image, shared, device: (object(), 1, 32, 0, 1024),
        unload_module=lambda module: None,
        get_device_properties=lambda device: {"max_shared_mem": 1 << 20, "warpSize": 32, "multiprocessor_count": 1},
    )

    def launcher_cls(self, source, metadata):
        return lambda *arguments: None

    def get_current_target(self):
        return GPUTarget("cuda", 90, 32)

    def get_current_device(self):
        return 0

    def get_current_stream(self, device):
        return 0

    def get_active_torch_device(self):
        return "cuda"


class Tensor:
    def __init__(self, dtype="float32", address=4096, shape=(64, 64)):
        self.dtype, self.address, self.shape = np.dtype(dtype) if dtype != "bfloat16" else dtype, address, shape

    def data_ptr(self):
        return self.address

    def stride(self):
        return (self.shape[1], 1)

    def ptr_range(self):
        return 1 << 20


def measure(call, quantiles):
    call()
    measure.calls += 1
    return [float(measure.calls)] * 3


measure.calls = 0


@triton.jit
def add(x, out, n, flag, value: tl.float32, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, i < n) + value, (i < n) & flag)


@triton.autotune([triton.Config({"BLOCK": 128}, num_warps=2), triton.Config({"BLOCK": 64})], ["n"], do_bench=measure)
@triton.heuristics({"EVEN": lambda given: given["n"] % given["BLOCK"] == 0})
@triton.jit
def tuned(pair, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(pair[1] + i, tl.load(pair[0] + i, (i < n) | EVEN), (i < n) | EVEN)


class MyTuner(triton.runtime.Autotuner):
    """A library's own tuner, which does not go through Triton's `run`."""

    def run(self, *arguments, **keywords):
        for config in self.configs:
            self.fn.run(*arguments, **keywords, **config.all_kwargs())
        return self.fn.run(*arguments, **keywords, **self.configs[0].all_kwargs())


@triton.jit
def library(out, BLOCK: tl.constexpr):
    tl.store(out + tl.arange(0, BLOCK), 1)


tuner = MyTuner(
    library, library.arg_names, [triton.Config({"BLOCK": each}) for each in (32, 64)], [], None, None, do_bench=measure
)


def later():
    """A library that is imported later."""

    class Later(triton.runtime.Autotuner):
        run = MyTuner.run

    return Later(library, library.arg_names, tuner.configs, [], None, None, do_bench=measure)


@triton.jit
def warmed(out, VALUE: tl.constexpr):
    tl.store(out, VALUE)


@triton.jit
def describe(source, out):
    tl.store(out, tl.sum(source.load([0, 0])))


@triton.jit
def passed(out, function):
    tl.store(out, function)


@triton.jit
def failing(out, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK == 1)


def run():
    add[(4,)](Tensor(), Tensor(address=4104), 256, True, 2.0, BLOCK=64, num_warps=2)
    add[lambda given: (triton.cdiv(given["n"], given["BLOCK"]),)](Tensor("bfloat16"), Tensor(), 1, False, 1, 64)
    tuned[(2,)]((Tensor(), Tensor()), 256)
    tuner[(1,)](Tensor("int64"))
    later()[(1,)](Tensor("int64"))
    warmed.warmup(Tensor(), 2.0, grid=(1,))  # which is never launched
    kernel = warmed.warmup(Tensor(), 3.0, grid=(1,))
    kernel[(1, 1, 1)](Tensor(), 3.0)
    describe[(1,)](TensorDescriptor.from_tensor(Tensor(), [16, 32]), Tensor())
    passed[(1,)](Tensor(), tl.constexpr(3))
    with contextlib.suppress(triton.compiler.errors.CompilationError):
        failing[(1,)](Tensor(), 2)


if __name__ == "__main__":
    driver.set_active(Driver())
    with precast.record(sys.argv[1]) as recording:
        run()
    run()  # as ever, and not recorded
    print(triton.__version__)
    print(*(f"{each.what}: {each.reason}" for each in recording.merged.unsaid), sep="\n")
