"""A program without PyTorch for a GPU that is not there: what it passes has an address and a type, and no memory."""

import numpy as np
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


class Array:
    def __init__(self, dtype="float32", address=4096, shape=(64, 64)):
        self.dtype = np.dtype(dtype) if dtype != "bfloat16" else dtype
        self.address, self.shape = address, shape

    def data_ptr(self):
        return self.address

    def stride(self):
        return (self.shape[1], 1)

    def ptr_range(self):
        return 1 << 40


def measure(call, quantiles):
    raise SystemExit("nothing is measured without a device")


def keep(configs, given, **named):
    return configs[: len(configs) - 1]


CONFIGS = [triton.Config({"BLOCK": 128}, num_warps=2), triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 32})]


@triton.autotune(CONFIGS, ["n"], do_bench=measure, prune_configs_by={"early_config_prune": keep}, cache_results=True)
@triton.heuristics({"EVEN": lambda given: given["n"] % given["BLOCK"] == 0})
@triton.jit
def tuned(x, bias, out, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, (i < n) | EVEN), (i < n) | EVEN)


@triton.jit
def parts(pair, source, SMS: tl.constexpr):
    tl.store(pair[1], tl.load(pair[0]) + tl.sum(source.load([0, 0])) + SMS)


@triton.jit
def failing(out):
    tl.static_assert(False)  # which nobody compiles


if __name__ == "__main__":
    for n in (256, 1000):
        tuned[lambda given, n=n: (triton.cdiv(n, given["BLOCK"]),)](Array("bfloat16", 4098), None, Array(), n)
    properties = triton.runtime.driver.active.utils.get_device_properties(0)
    pair = (Array("int32", 4100), Array("int32", 4100))
    parts[(1,)](pair, TensorDescriptor.from_tensor(Array(), [16, 32]), properties["multiprocessor_count"])
    kernel = failing.warmup(Array(), grid=(1,))
    kernel[(1, 1, 1)](Array())
    print(triton.runtime.driver.active.get_current_target(), kernel.metadata.num_warps, kernel.n_regs)
