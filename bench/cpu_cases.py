"""The cases of `bench/cpu.py`: kernels at a level, what they are compared with, and how pairs of them are timed."""

from __future__ import annotations

import ctypes
import importlib.util
import statistics
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import triton
import triton.language as tl
from argmax import argmax_kernel
from attention import attention_kernel
from bias_gelu import bias_gelu_kernel
from cpu_harness import Compiled, aligned, from_bf16, make_ttir, slot, to_bf16
from cpu_kernels import (
    gather_kernel,
    products_kernel,
    small_matmul_kernel,
    sort_kernel,
    vector_add_kernel,
)
from cumsum import cumsum_kernel
from histogram import histogram_kernel
from layer_norm import layer_norm_kernel
from matmul import matmul_kernel
from rms_norm import rms_norm_kernel
from softmax import softmax_kernel
from swiglu import swiglu_kernel
from transpose import transpose_kernel

V3 = "x86-64-v3"
SAMPLE_S = 2e-3  # short calls are repeated until a sample takes this long
MATMUL = {
    "HAS_BIAS": False, "ACTIVATION": "none", "PRECISION": "ieee", "BLOCK_M": 256, "BLOCK_N": 256, "GROUP_M": 8,
}  # fmt: skip
HAS_TORCH = importlib.util.find_spec("torch") is not None
Run = Callable[[], object]
Figure = dict[str, str | float | bool | None]


@dataclass(frozen=True)
class Case:
    """Two ways to do some work; `check` raises if the results differ. `work` is theirs by ours, where they differ."""

    ours: Run
    theirs: Run
    check: Run
    work: float = 1.0
    clock: Callable[[], float] = time.thread_time  # what other processes take meanwhile is not counted


def measure(case: Case, pairs: int) -> dict[str, float]:
    times: dict[str, list[float]] = {"ours": [], "theirs": []}
    repeats = {}
    for name in times:
        run: Run = getattr(case, name)
        run()
        repeats[name] = max(1, round(SAMPLE_S / max(_seconds(run, 3, case.clock), 1e-9)))
    for number in range(pairs):
        for name in list(times)[:: 1 if number % 2 else -1]:
            times[name].append(_seconds(getattr(case, name), repeats[name], case.clock))
    case.check()
    ratios = sorted(b / a / case.work for a, b in zip(times["ours"], times["theirs"], strict=True))
    low, high = int(pairs / 2 - 0.98 * pairs**0.5), int(pairs / 2 + 0.98 * pairs**0.5)
    return {
        "ours": statistics.median(times["ours"]) * 1e6, "theirs": statistics.median(times["theirs"]) * 1e6,
        "ratio": statistics.median(ratios), "low": ratios[max(low, 0)], "high": ratios[min(high, pairs - 1)],
    }  # fmt: skip


def _seconds(run: Run, repeats: int, clock: Callable[[], float]) -> float:
    start = clock()
    for _ in range(repeats):
        run()
    return (clock() - start) / repeats


def array(shape: tuple[int, ...] | int, dtype: type = np.float32, seed: int = 0) -> np.ndarray:
    """An array on a cache line: zeros, or random numbers where a seed is given."""
    size = int(np.prod(shape))
    result = aligned(size * np.dtype(dtype).itemsize).view(dtype)[:size].reshape(shape)
    result[...] = np.random.default_rng(seed).standard_normal(shape) if seed else 0
    return result


def find_gcc_flags(level: str) -> list[str]:
    """The machine's own instructions, or for v3 those of that level; scheduled for the machine in both cases."""
    return ["-O3", *(["-march=x86-64-v3", "-mtune=native"] if level == V3 else ["-march=native"]), "-ffast-math"]


class Bench:
    """The cases at one level. Every kernel's compile time, in processor seconds, and code bytes are kept."""

    def __init__(self, level: str, folder: Path) -> None:
        self.level = level
        self.compile_s: dict[str, float] = {}
        self.code_bytes: dict[str, int] = {}
        self.reference_library = self._compile_reference(folder)

    def _compile_reference(self, folder: Path) -> ctypes.CDLL:
        """Linked without -ffast-math, which would make subnormal numbers zero in the whole process."""
        source = Path(__file__).with_name("cpu_reference.c")
        item, library = folder / "reference.o", folder / "reference.so"
        subprocess.run(["gcc", *find_gcc_flags(self.level), "-fPIC", "-c", str(source), "-o", str(item)], check=True)
        subprocess.run(["gcc", "-shared", str(item), "-o", str(library), "-lm"], check=True)
        return ctypes.CDLL(str(library))

    def build(self, function: object, types: dict[str, str], constants: dict[str, object]) -> Compiled:
        ttir = make_ttir(function, types, tuple(constants.items()))
        start = time.process_time()
        kernel = Compiled(ttir, list(types.values()), self.level)
        name = f"{function.__name__} {' '.join(map(str, constants.values()))} {' '.join(types.values())}"  # type: ignore[attr-defined]
        self.compile_s[name] = time.process_time() - start
        self.code_bytes[name] = kernel.facts.code_bytes
        return kernel

    def bind(self, kernel: Compiled, grid: tuple[int, ...], *arguments: object, parts: int = 1) -> Run:
        """A call with everything but the call done; with several parts, that many threads."""
        sizes = np.array((*grid, 1, 1)[:3], np.int32)
        slots = np.array([slot(*each) for each in zip(arguments, kernel.types, strict=True)], np.uint64)
        programs = int(np.prod(sizes))
        bounds = [programs * part // parts for part in range(parts + 1)]
        scratch = [aligned(kernel.facts.thread_scratch_bytes) for _ in range(parts)]
        entry, kept = kernel.entry, (slots, sizes, arguments)

        def part(number: int) -> None:
            slots, sizes, _ = kept
            begin, end = bounds[number : number + 2]
            entry(slots.ctypes.data, sizes.ctypes.data, begin, end, scratch[number].ctypes.data)

        if parts == 1:
            places = slots.ctypes.data, sizes.ctypes.data, 0, programs, scratch[0].ctypes.data
            return lambda: (entry(*places), kept, scratch)

        def run() -> None:
            threads = [threading.Thread(target=part, args=(number,)) for number in range(1, parts)]
            for thread in threads:
                thread.start()
            part(0)
            for thread in threads:
                thread.join()

        return run

    def reference(self, name: str, *arguments: object) -> Run:
        function = getattr(self.reference_library, name)
        given = [
            ctypes.c_void_p(each.ctypes.data) if isinstance(each, np.ndarray) else ctypes.c_long(each)  # type: ignore[arg-type]
            for each in arguments
        ]
        return lambda: (function(*given), arguments)

    # Streams.

    def vector_add(self, n: int) -> Case:
        x, y, out, theirs = array(n, seed=1), array(n, seed=2), array(n), array(n)
        types = {"out": "*fp32", "x": "*fp32", "y": "*fp32", "n": "i32"}
        kernel = self.build(vector_add_kernel, types, {"BLOCK": 1024})
        ours = self.bind(kernel, (triton.cdiv(n, 1024),), out, x, y, n)
        return self._same(ours, self.reference("vector_add", theirs, x, y, n), out, theirs, 0)

    def gather(self, n: int) -> Case:
        x, out, theirs = array(n, seed=1), array(n), array(n)
        index = array(n, np.int32)
        index[:] = np.random.default_rng(3).integers(0, n, n)
        types = {"out": "*fp32", "x": "*fp32", "index": "*i32", "n": "i32"}
        kernel = self.build(gather_kernel, types, {"BLOCK": 1024})
        ours = self.bind(kernel, (triton.cdiv(n, 1024),), out, x, index, n)
        return self._same(ours, self.reference("gather", theirs, x, index, n), out, theirs, 0)

    def histogram(self, n: int, bins: int, block: int = 16384) -> Case:
        """In blocks large enough that their atomic additions, one for each bin, are few beside the elements."""
        x, out, theirs = array(n, np.int32), array(bins, np.int32), array(bins, np.int32)
        x[:] = np.random.default_rng(3).integers(0, bins, n)
        kernel = self.build(
            histogram_kernel, {"counts": "*i32", "x": "*i32", "n": "i64"}, {"BINS": bins, "BLOCK": block}
        )
        run = self.bind(kernel, (triton.cdiv(n, block),), out, x, n)

        def ours() -> None:
            out[:] = 0
            run()

        return self._same(ours, self.reference("histogram", theirs, x, n, bins), out, theirs, 0)

    @staticmethod
    def _same(ours: Run, theirs: Run, a: np.ndarray, b: np.ndarray, error: float) -> Case:
        def check() -> None:
            assert np.allclose(a, b, atol=error, rtol=error), np.abs(a - b).max()

        return Case(ours, theirs, check)

    # Rows.

    def softmax(self, columns: int, block: int) -> Case:
        x, out, theirs = array((256, columns), seed=1), array((256, columns)), array((256, columns))
        types = {"out": "*fp32", "x": "*fp32", **dict.fromkeys(["stride", "n_rows", "n_cols"], "i32")}
        kernel = self.build(softmax_kernel, types, {"BLOCK": block})
        ours = self.bind(kernel, (256,), out, x, columns, 256, columns)
        return self._same(ours, self.reference("softmax", theirs, x, 256, columns), out, theirs, 1e-5)

    def layer_norm(self, columns: int) -> Case:
        x, out, theirs = array((256, columns), seed=1), array((256, columns)), array((256, columns))
        weight, bias = array(columns, seed=2), array(columns, seed=3)
        types = {each: "*fp32" for each in ("out", "x", "weight", "bias")}
        types |= {**dict.fromkeys(["stride", "n_rows", "n_cols"], "i32"), "eps": "fp32"}
        kernel = self.build(layer_norm_kernel, types, {"BLOCK": 2048})
        ours = self.bind(kernel, (256,), out, x, weight, bias, columns, 256, columns, 1e-5)
        return self._same(ours, self.reference("layer_norm", theirs, x, weight, bias, 256, columns), out, theirs, 1e-3)

    def rms_norm(self, columns: int) -> Case:
        x, out, theirs = array((256, columns), seed=1), array((256, columns)), array((256, columns))
        weight = array(columns, seed=2)
        types = {each: "*fp32" for each in ("out", "x", "residual", "weight")}
        types |= {**dict.fromkeys(["stride", "n_rows", "n_cols"], "i32"), "eps": "fp32"}
        kernel = self.build(rms_norm_kernel, types, {"HAS_RESIDUAL": False, "BLOCK": 2048})
        ours = self.bind(kernel, (256,), out, x, 0, weight, columns, 256, columns, 1e-5)
        return self._same(ours, self.reference("rms_norm", theirs, x, weight, 256, columns), out, theirs, 1e-3)

    def bias_gelu(self, columns: int) -> Case:
        x, bias = array((256, columns), seed=1), array(columns, seed=2)
        out, theirs = array((256, columns)), array((256, columns))
        types = {each: "*fp32" for each in ("out", "x", "bias")}
        types |= dict.fromkeys(["n_rows", "n_cols", "out_stride", "x_stride"], "i32")
        kernel = self.build(bias_gelu_kernel, types, {"FORM": "tanh", "BLOCK": 1024})
        ours = self.bind(kernel, (256, triton.cdiv(columns, 1024)), out, x, bias, 256, columns, columns, columns)
        return self._same(ours, self.reference("bias_gelu", theirs, x, bias, 256, columns), out, theirs, 1e-4)

    def swiglu(self, columns: int) -> Case:
        x, out, theirs = array((256, 2 * columns), seed=1), array((256, columns)), array((256, columns))
        types = {"out": "*fp32", "x": "*fp32", **dict.fromkeys(["n_rows", "n_cols", "out_stride", "x_stride"], "i32")}
        kernel = self.build(swiglu_kernel, types, {"BLOCK": 1024})
        ours = self.bind(kernel, (256, triton.cdiv(columns, 1024)), out, x, 256, columns, columns, 2 * columns)
        return self._same(ours, self.reference("swiglu", theirs, x, 256, columns), out, theirs, 1e-4)

    def cumsum(self, columns: int) -> Case:
        x, out, theirs = array((256, columns), seed=1), array((256, columns)), array((256, columns))
        types = {"out": "*fp32", "x": "*fp32"}
        types |= dict.fromkeys(["n_rows", "n_cols", "out_stride", "x_stride"], "i32")
        kernel = self.build(cumsum_kernel, types, {"BLOCK": 1024})
        ours = self.bind(kernel, (256,), out, x, 256, columns, columns, columns)
        return self._same(ours, self.reference("cumsum", theirs, x, 256, columns), out, theirs, 1e-3)

    def argmax(self, columns: int) -> Case:
        x, out, theirs = array((256, columns), seed=1), array(256, np.int64), array(256, np.int64)
        types = {"out": "*i64", "x": "*fp32", **dict.fromkeys(["stride", "n_rows", "n_cols"], "i32")}
        kernel = self.build(argmax_kernel, types, {"BLOCK": 1024})
        ours = self.bind(kernel, (256,), out, x, columns, 256, columns)
        return self._same(ours, self.reference("argmax", theirs, x, 256, columns), out, theirs, 0)

    # Blocks.

    def matmul(self, m: int, n: int, k: int, parts: int = 0) -> Case:
        """Against OpenBLAS; with `parts`, as many threads against one."""
        a, b, out = array((m, k), seed=1), array((k, n), seed=2), array((m, n))
        types = dict.fromkeys(["out", "a", "b", "bias"], "*fp32")
        types |= dict.fromkeys(["m", "n", "k", "out_stride", "a_stride", "b_stride"], "i32")
        kernel = self.build(matmul_kernel, types, {**MATMUL, "BLOCK_K": 128})
        grid = (triton.cdiv(m, MATMUL["BLOCK_M"]) * triton.cdiv(n, MATMUL["BLOCK_N"]),)
        arguments = (out, a, b, 0, m, n, k, n, k, n)
        ours = self.bind(kernel, grid, *arguments, parts=max(parts, 1))
        theirs: Run = self.bind(kernel, grid, *arguments) if parts else lambda: a @ b

        def check() -> None:
            assert np.allclose(out, a @ b, rtol=1e-3, atol=1e-3)

        return Case(ours, theirs, check, clock=time.perf_counter if parts else time.thread_time)

    def _small_matmul(
        self, size: int, block: tuple[int, int, int], element: str, total: str, kind: object, *arrays: np.ndarray
    ) -> Run:
        """In blocks of so many rows, columns and steps."""
        types = {"out": f"*{total}", "a": f"*{element}", "b": f"*{element}", "n": "i32", "k": "i32"}
        blocks = dict(zip(("BLOCK_M", "BLOCK_N", "BLOCK_K"), block, strict=True))
        kernel = self.build(small_matmul_kernel, types, {"TOTAL": kind, **blocks})
        return self.bind(kernel, (size // block[0], size // block[1]), *arrays, size, size)

    def bytes_matmul(self, size: int) -> Case:
        """Against ours in fp32."""
        shape = (size, size)
        a, b, out = array(shape, np.int8), array(shape, np.int8), array(shape, np.int32)
        for seed, each in enumerate((a, b)):
            each[...] = np.random.default_rng(seed).integers(-128, 128, shape)
        ours = self._small_matmul(size, (256, 256, 256), "i8", "i32", tl.int32, out, a, b)

        def check() -> None:
            assert np.array_equal(out, a.astype(np.float64) @ b.astype(np.float64))

        return Case(ours, self.matmul(size, size, size).ours, check)

    def bf16_matmul(self, size: int) -> Case:
        """Against torch, where it is installed, else ours in fp32."""
        shape = (size, size)
        a, b, out = array(shape, np.uint16), array(shape, np.uint16), array(shape)
        for seed, each in enumerate((a, b)):
            each[...] = to_bf16(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))
        ours = self._small_matmul(size, (size, 256, size), "bf16", "fp32", tl.float32, out, a, b)

        def check() -> None:
            assert np.allclose(out, from_bf16(a) @ from_bf16(b), rtol=1e-2, atol=1e-2)

        return Case(ours, self._torch_matmul(a, b) or self.matmul(size, size, size).ours, check)

    @staticmethod
    def _torch_matmul(a: np.ndarray, b: np.ndarray) -> Run | None:
        if not HAS_TORCH:
            return None
        import torch

        torch.set_num_threads(1)
        x, y = (torch.from_numpy(each.view(np.int16)).view(torch.bfloat16) for each in (a, b))
        return lambda: x @ y

    def _of_peak(self, ours: Run, check: Run, operations: float) -> Case:
        """Against fused multiply-adds alone."""
        out, steps = array(16), 20_000
        round_operations = self.reference_library.multiply_add(ctypes.c_void_p(out.ctypes.data), ctypes.c_long(1))
        given = ctypes.c_void_p(out.ctypes.data), ctypes.c_long(steps)
        work = round_operations * steps / operations
        return Case(ours, lambda: (self.reference_library.multiply_add(*given), out), check, work)

    def attention(self, length: int, depth: int, dtype: str) -> Case:
        """Four heads, not causal: the operations of the two products are counted."""
        heads = 4
        kind = np.float16 if dtype == "fp16" else np.float32
        q, k, v = (array((heads, length, depth), kind, seed) for seed in (1, 2, 3))
        out = array((heads, length, depth), kind)
        types = {**{each: f"*{dtype}" for each in ("out", "q", "k", "v")}, "scale": "fp32"}
        names = attention_kernel.arg_names
        types |= dict.fromkeys(names[len(types) : names.index("CAUSAL")], "i32")
        constants = {"CAUSAL": False, "HEAD_DIM": depth, "BLOCK_M": 64, "BLOCK_N": 64}
        kernel = self.build(attention_kernel, types, constants)
        strides = [heads * length * depth, length * depth, depth] * 4
        arguments = (out, q, k, v, depth**-0.5, 1, heads, heads, length, length, *strides)
        ours = self.bind(kernel, (triton.cdiv(length, 64), heads), *arguments)

        def check() -> None:
            x, y, z = (each.astype(np.float32) for each in (q, k, v))
            score = x @ y.swapaxes(1, 2) * np.float32(depth**-0.5)
            weights = np.exp(score - score.max(-1, keepdims=True))
            assert np.allclose(out, weights / weights.sum(-1, keepdims=True) @ z, atol=2e-3)

        return self._of_peak(ours, check, 4.0 * heads * length * length * depth)

    def products(self, size: int) -> Case:
        a, b, out = array((size, size), seed=1), array((size, size), seed=2), array((size, size))
        kernel = self.build(products_kernel, {"out": "*fp32", "a": "*fp32", "b": "*fp32", "rounds": "i32"}, {"N": size})
        ours = self.bind(kernel, (1,), out, a, b, 64)

        def check() -> None:
            assert np.allclose(out, 64 * (a @ b.T), atol=1e-1)

        return self._of_peak(ours, check, 64 * 2.0 * size**3)

    def transpose(self, size: int) -> Case:
        x, out = array((size, size), seed=1), array((size, size))
        types = {"out": "*fp32", "x": "*fp32", **dict.fromkeys(["n_rows", "n_cols", "out_stride", "x_stride"], "i32")}
        kernel = self.build(transpose_kernel, types, {"BLOCK": 64})
        grid = (triton.cdiv(size, 64), triton.cdiv(size, 64))
        ours = self.bind(kernel, grid, out, x, size, size, size, size)

        def check() -> None:
            assert np.array_equal(out, x.T)

        return Case(ours, lambda: np.ascontiguousarray(x.T), check)

    def compile(self) -> list[Figure]:
        """Processor time of each kernel built so far, of `tl.sort` of 1024, and code; the bounds are upper ones."""
        times = sorted(self.compile_s.values())
        code = statistics.median(self.code_bytes.values())
        self.build(sort_kernel, {"out": "*fp32", "x": "*fp32"}, {"N": 1024})
        of = f"of {len(times)} units"
        found = [
            (f"compile, median {of}", "s", statistics.median(times), 0.08),
            (f"compile, longest {of}", "s", times[-1], 1.0),
            ("compile, tl.sort of 1024", "s", list(self.compile_s.values())[-1], 1.0),
            (f"code, median {of}", "bytes", code, 3380),
        ]
        return [
            {"what": what, "level": self.level, "scale": scale, "ours": ours, "bound": bound, "holds": ours <= bound}
            for what, scale, ours, bound in found
        ]
