"""The CPU engine against gcc, OpenBLAS, NumPy and the machine's own peak, on one thread. Writes bench/results/cpu.json.

Each level that the machine has runs in a process of its own, v3 beside the OpenBLAS of that level; gcc compiles
`cpu_reference.c` with `-O3 -march=native -ffast-math`. A figure is from interleaved pairs: `speed` is how much faster
ours is, by work done, its median with the 95 % interval of order statistics. Results are checked after timing.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
if __name__ == "__main__":  # before NumPy loads its OpenBLAS, which any of these would slow down
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        os.environ.pop(name, None)
    if "v3" in sys.argv:
        os.environ["OPENBLAS_CORETYPE"] = "Haswell"
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ[name] = "1"
sys.path[:0] = [str(ROOT / "tests" / "numerics"), str(ROOT / "kernels"), str(ROOT / "bench")]

import llvmlite  # noqa: E402
import numpy as np  # noqa: E402
import triton  # noqa: E402
from argmax import argmax_kernel  # noqa: E402
from attention import attention_kernel  # noqa: E402
from bias_gelu import bias_gelu_kernel  # noqa: E402
from cpu_harness import LEVELS, Compiled, aligned, make_ttir, slot  # noqa: E402
from cpu_kernels import gather_kernel, products_kernel, sort_kernel, vector_add_kernel  # noqa: E402
from cumsum import cumsum_kernel  # noqa: E402
from histogram import histogram_kernel  # noqa: E402
from layer_norm import layer_norm_kernel  # noqa: E402
from matmul import matmul_kernel  # noqa: E402
from rms_norm import rms_norm_kernel  # noqa: E402
from softmax import softmax_kernel  # noqa: E402
from swiglu import swiglu_kernel  # noqa: E402
from transpose import transpose_kernel  # noqa: E402

PAIRS = 30
SAMPLE_S = 2e-3  # short calls are repeated until a sample takes this long
Run = Callable[[], object]


@dataclass(frozen=True)
class Case:
    """Two ways to do some work; `check` raises if the results differ. `work` is theirs by ours, where they differ."""

    ours: Run
    theirs: Run
    check: Run
    work: float = 1.0


def measure(case: Case, pairs: int) -> dict[str, float]:
    times: dict[str, list[float]] = {"ours": [], "theirs": []}
    repeats = {}
    for name in times:
        run: Run = getattr(case, name)
        run()
        repeats[name] = max(1, round(SAMPLE_S / max(_seconds(run, 3), 1e-9)))
    for number in range(pairs):
        for name in list(times)[:: 1 if number % 2 else -1]:
            times[name].append(_seconds(getattr(case, name), repeats[name]))
    case.check()
    speeds = sorted(b / a / case.work for a, b in zip(times["ours"], times["theirs"], strict=True))
    low, high = int(pairs / 2 - 0.98 * pairs**0.5), int(pairs / 2 + 0.98 * pairs**0.5)
    return {
        "ours_us": statistics.median(times["ours"]) * 1e6, "theirs_us": statistics.median(times["theirs"]) * 1e6,
        "speed": statistics.median(speeds), "low": speeds[max(low, 0)], "high": speeds[min(high, pairs - 1)],
    }  # fmt: skip


def _seconds(run: Run, repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        run()
    return (time.perf_counter() - start) / repeats


def array(shape: tuple[int, ...] | int, dtype: type = np.float32, seed: int = 0) -> np.ndarray:
    """An array on a cache line: zeros, or random numbers where a seed is given."""
    size = int(np.prod(shape))
    result = aligned(size * np.dtype(dtype).itemsize).view(dtype)[:size].reshape(shape)
    result[...] = np.random.default_rng(seed).standard_normal(shape) if seed else 0
    return result


class Bench:
    """The cases at one level. Every kernel's compile time, in processor seconds, and code bytes are kept."""

    def __init__(self, level: str, folder: Path) -> None:
        self.level = level
        self.compile_s: dict[str, float] = {}
        self.code_bytes: dict[str, int] = {}
        self.gcc = self._compile_reference(folder, "native")
        march = "native" if level == "x86-64-v4" else level
        self.peak = self._compile_reference(folder, march)

    @staticmethod
    def _compile_reference(folder: Path, march: str) -> ctypes.CDLL:
        """Linked without -ffast-math, which would make subnormal numbers zero in the whole process."""
        source = Path(__file__).with_name("cpu_reference.c")
        item, library = folder / f"{march}.o", folder / f"{march}.so"
        flags = ["-O3", f"-march={march}", "-ffast-math", "-fPIC"]
        subprocess.run(["gcc", *flags, "-c", str(source), "-o", str(item)], check=True)
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
        function = getattr(self.gcc, name)
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
        constants = {
            "HAS_BIAS": False, "ACTIVATION": "none", "PRECISION": "ieee", "BLOCK_M": 128, "BLOCK_N": 256,
            "BLOCK_K": 128, "GROUP_M": 8,
        }  # fmt: skip
        kernel = self.build(matmul_kernel, types, constants)
        grid = (triton.cdiv(m, 128) * triton.cdiv(n, 256),)
        arguments = (out, a, b, 0, m, n, k, n, k, n)
        ours = self.bind(kernel, grid, *arguments, parts=max(parts, 1))
        theirs: Run = self.bind(kernel, grid, *arguments) if parts else lambda: a @ b

        def check() -> None:
            assert np.allclose(out, a @ b, rtol=1e-3, atol=1e-3)

        return Case(ours, theirs, check)

    def _of_peak(self, ours: Run, check: Run, operations: float) -> Case:
        """Against fused multiply-adds alone."""
        out, steps = array(16), 20_000
        round_operations = self.peak.multiply_add(ctypes.c_void_p(out.ctypes.data), ctypes.c_long(1))
        given = ctypes.c_void_p(out.ctypes.data), ctypes.c_long(steps)
        return Case(ours, lambda: (self.peak.multiply_add(*given), out), check, round_operations * steps / operations)

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

    def compile(self) -> dict[str, float]:
        """Processor seconds for each kernel built so far, and for `tl.sort` of 1024."""
        times = sorted(self.compile_s.values())
        self.build(sort_kernel, {"out": "*fp32", "x": "*fp32"}, {"N": 1024})
        return {
            "units": len(times), "median_s": statistics.median(times), "longest_s": times[-1],
            "sort_1024_s": list(self.compile_s.values())[-1],
            "median_code_bytes": statistics.median(self.code_bytes.values()),
        }  # fmt: skip


def cases(bench: Bench) -> dict[str, Callable[[], Case]]:
    return {
        "vector add 65536": lambda: bench.vector_add(65536),
        "vector add 65000": lambda: bench.vector_add(65000),
        "vector add 4M": lambda: bench.vector_add(1 << 22),
        "softmax 256×781": lambda: bench.softmax(781, 1024),
        "softmax 256×1024": lambda: bench.softmax(1024, 1024),
        "softmax 256×4000": lambda: bench.softmax(4000, 4096),
        "layer norm 256×4000": lambda: bench.layer_norm(4000),
        "RMS norm 256×4000": lambda: bench.rms_norm(4000),
        "bias+GELU 256×4000": lambda: bench.bias_gelu(4000),
        "SwiGLU 256×4000": lambda: bench.swiglu(4000),
        "matmul fp32 512": lambda: bench.matmul(512, 512, 512),
        "matmul fp32 1024": lambda: bench.matmul(1024, 1024, 1024),
        "matmul fp32 500×333×100": lambda: bench.matmul(500, 333, 100),
        "attention fp32 4×1024×64": lambda: bench.attention(1024, 64, "fp32"),
        "attention fp16 4×1024×64": lambda: bench.attention(1024, 64, "fp16"),
        "dots alone 64": lambda: bench.products(64),
        "transpose 1024": lambda: bench.transpose(1024),
        "transpose 1000": lambda: bench.transpose(1000),
        "cumsum 256×4000": lambda: bench.cumsum(4000),
        "argmax 256×4000": lambda: bench.argmax(4000),
        "histogram 1M, 256": lambda: bench.histogram(1 << 20, 256),
        "gather 64K": lambda: bench.gather(65536),
        "two threads, matmul 1024": lambda: bench.matmul(1024, 1024, 1024, parts=2),
    }


def run_level(level: str, pairs: int, only: str) -> dict[str, object]:
    figures: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(level, Path(folder))
        for name, make in cases(bench).items():
            if only in name:
                found = {key: round(value, 4) for key, value in measure(make(), pairs).items()}
                figures[name] = found
                print(level, name, found, file=sys.stderr, flush=True)
        if only in "compile":
            figures["compile"] = {key: round(value, 4) for key, value in bench.compile().items()}
            print(level, "compile", figures["compile"], file=sys.stderr, flush=True)
    return figures


def describe_machine() -> dict[str, object]:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    machine = next((line.split(":")[1].strip() for line in lines if "model name" in line), "")
    gcc = subprocess.run(["gcc", "--version"], check=True, capture_output=True, text=True).stdout.splitlines()[0]
    return {
        "machine": machine, "threads": 1, "python": platform.python_version(), "numpy": np.__version__, "gcc": gcc,
        "triton": triton.__version__, "llvmlite": llvmlite.__version__,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "results" / "cpu.json")
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    parser.add_argument("--level", choices=("v3", "v4"), help="this level alone, printed as JSON")
    arguments = parser.parse_args()
    if arguments.level:
        print(json.dumps(run_level(f"x86-64-{arguments.level}", arguments.pairs, arguments.only), ensure_ascii=False))
        return
    report = {**describe_machine(), "pairs": arguments.pairs, "levels": {}}
    for level in [each for each in ("x86-64-v4", "x86-64-v3") if each in LEVELS]:
        command = [sys.executable, __file__, "--level", level[-2:], "--pairs", str(arguments.pairs)]
        command += ["--only", arguments.only]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        report["levels"][level] = json.loads(done.stdout)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
