"""The CPU engine against NumPy on one thread: matmul, softmax, layer norm, transpose. Writes bench/results/cpu.json.

Each figure is the median of interleaved pairs, with a 95 % interval of the median (order statistics) of the ratio.
Outputs are checked after timing.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):  # either would slow NumPy down: this process only
    os.environ.pop(name, None)
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[name] = "1"
sys.path[:0] = [str(ROOT / "tests" / "numerics"), str(ROOT / "kernels")]

import llvmlite  # noqa: E402
import numpy as np  # noqa: E402
import triton  # noqa: E402
from attention import attention_kernel  # noqa: E402
from cpu_harness import build  # noqa: E402
from layer_norm import layer_norm_kernel  # noqa: E402
from matmul import matmul_kernel  # noqa: E402
from softmax import softmax_kernel  # noqa: E402
from transpose import transpose_kernel  # noqa: E402

PAIRS = 30


def measure(ours: Callable[[], object], theirs: Callable[[], object], pairs: int) -> dict[str, float]:
    """Median seconds of both and the interval of their ratio, from interleaved runs."""
    ours(), theirs()
    own, other = [], []
    for _ in range(pairs):
        for function, times in ((ours, own), (theirs, other)):
            start = time.perf_counter()
            function()
            times.append(time.perf_counter() - start)
    ratios = sorted(a / b for a, b in zip(own, other, strict=True))
    low, high = int(pairs / 2 - 0.98 * pairs**0.5), int(pairs / 2 + 0.98 * pairs**0.5)
    return {
        "ours_s": statistics.median(own), "numpy_s": statistics.median(other), "ratio": statistics.median(ratios),
        "ratio_low": ratios[max(low, 0)], "ratio_high": ratios[min(high, pairs - 1)],
    }  # fmt: skip


def bench_matmul(size: int, pairs: int, dtype: str = "fp32") -> dict[str, object]:
    a, b = np.random.default_rng(1).standard_normal((2, size, size)).astype(np.float32)
    x, y = (a, b) if dtype == "fp32" else (a.astype(np.float16), b.astype(np.float16))
    out = np.zeros_like(x)
    types = {"out": f"*{dtype}", "a": f"*{dtype}", "b": f"*{dtype}", "bias": f"*{dtype}"}
    types |= dict.fromkeys(["m", "n", "k", "out_stride", "a_stride", "b_stride"], "i32")
    constants = {
        "HAS_BIAS": False, "ACTIVATION": "none", "PRECISION": "ieee", "BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64,
        "GROUP_M": 8,
    }  # fmt: skip
    kernel = build(matmul_kernel, types, constants, level=level())
    grid = (triton.cdiv(size, 128) ** 2,)
    found = measure(lambda: kernel(grid, out, x, y, 0, size, size, size, size, size, size), lambda: a @ b, pairs)
    assert np.allclose(out, x.astype(np.float32) @ y.astype(np.float32), rtol=1e-2, atol=0.3)
    flops = 2.0 * size**3
    return {**found, "gflops": flops / found["ours_s"] / 1e9, "numpy_gflops": flops / found["numpy_s"] / 1e9}


def per_element(found: dict[str, float], count: int) -> dict[str, object]:
    return {**found, "ns_per_element": found["ours_s"] / count * 1e9, "numpy_ns": found["numpy_s"] / count * 1e9}


def bench_softmax(columns: int, block: int, pairs: int) -> dict[str, object]:
    x = np.random.default_rng(1).standard_normal((256, columns)).astype(np.float32)
    out = np.zeros_like(x)
    types = {"out": "*fp32", "x": "*fp32", **dict.fromkeys(["stride", "n_rows", "n_cols"], "i32")}
    kernel = build(softmax_kernel, types, {"BLOCK": block}, level=level())

    def reference() -> np.ndarray:
        weights = np.exp(x - x.max(1, keepdims=True))
        return weights / weights.sum(1, keepdims=True)

    found = measure(lambda: kernel((256,), out, x, columns, 256, columns), reference, pairs)
    assert np.allclose(out, reference(), atol=1e-6)
    return per_element(found, x.size)


def bench_layer_norm(columns: int, pairs: int) -> dict[str, object]:
    x = np.random.default_rng(1).standard_normal((256, columns)).astype(np.float32)
    weight, bias = np.random.default_rng(2).standard_normal((2, columns)).astype(np.float32)
    out = np.zeros_like(x)
    types = {each: "*fp32" for each in ("out", "x", "weight", "bias")}
    types |= {**dict.fromkeys(["stride", "n_rows", "n_cols"], "i32"), "eps": "fp32"}
    kernel = build(layer_norm_kernel, types, {"BLOCK": 2048}, level=level())

    def reference() -> np.ndarray:
        centred = x - x.mean(1, keepdims=True)
        return centred / np.sqrt((centred * centred).mean(1, keepdims=True) + np.float32(1e-5)) * weight + bias

    found = measure(lambda: kernel((256,), out, x, weight, bias, columns, 256, columns, 1e-5), reference, pairs)
    assert np.allclose(out, reference(), atol=1e-4)
    return per_element(found, x.size)


def bench_transpose(size: int, pairs: int) -> dict[str, object]:
    x = np.random.default_rng(1).standard_normal((size, size)).astype(np.float32)
    out = np.zeros_like(x)
    types = {"out": "*fp32", "x": "*fp32", **dict.fromkeys(["n_rows", "n_cols", "out_stride", "x_stride"], "i32")}
    kernel = build(transpose_kernel, types, {"BLOCK": 64}, level=level())
    grid = (triton.cdiv(size, 64), triton.cdiv(size, 64))
    found = measure(lambda: kernel(grid, out, x, size, size, size, size), lambda: np.ascontiguousarray(x.T), pairs)
    assert np.array_equal(out, x.T)
    return {**found, "gb_per_s": 2 * x.nbytes / found["ours_s"] / 1e9}


def bench_attention(length: int, depth: int, pairs: int, dtype: str = "fp32") -> dict[str, object]:
    """Four heads, not causal: the floating-point operations of the two products are counted."""
    heads = 4
    q, k, v = np.random.default_rng(1).standard_normal((3, heads, length, depth)).astype(np.float32)
    stored = [each.astype(np.float16) if dtype == "fp16" else each for each in (q, k, v)]
    out = np.zeros_like(stored[0])
    scale = depth**-0.5
    types = {**{each: f"*{dtype}" for each in ("out", "q", "k", "v")}, "scale": "fp32"}
    names = attention_kernel.arg_names
    types |= dict.fromkeys(names[len(types) : names.index("CAUSAL")], "i32")
    constants = {"CAUSAL": False, "HEAD_DIM": depth, "BLOCK_M": 64, "BLOCK_N": 64}
    kernel = build(attention_kernel, types, constants, level=level())
    strides = [heads * length * depth, length * depth, depth] * 4

    def reference() -> np.ndarray:
        score = q @ k.swapaxes(1, 2) * np.float32(scale)
        weights = np.exp(score - score.max(-1, keepdims=True))
        return weights / weights.sum(-1, keepdims=True) @ v

    arguments = (out, *stored, scale, 1, heads, heads, length, length, *strides)
    found = measure(lambda: kernel((triton.cdiv(length, 64), heads), *arguments), reference, pairs)
    assert np.allclose(out, reference(), atol=2e-3)
    flops = 4.0 * heads * length * length * depth
    return {**found, "gflops": flops / found["ours_s"] / 1e9, "numpy_gflops": flops / found["numpy_s"] / 1e9}


def level() -> str:
    """The highest feature level of this machine."""
    flags = Path("/proc/cpuinfo").read_text()
    return "x86-64-v4" if "avx512vl" in flags and os.environ.get("BENCH_LEVEL") != "v3" else "x86-64-v3"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "results" / "cpu.json")
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    pairs = arguments.pairs
    figures = {
        "matmul fp32 512": lambda: bench_matmul(512, pairs),
        "matmul fp32 1024": lambda: bench_matmul(1024, pairs),
        "matmul fp16 512": lambda: bench_matmul(512, pairs, "fp16"),
        "softmax 256×781": lambda: bench_softmax(781, 1024, pairs),
        "softmax 256×4000": lambda: bench_softmax(4000, 4096, pairs),
        "layer norm 256×4000": lambda: bench_layer_norm(4000, pairs),
        "attention fp32 4×1024×64": lambda: bench_attention(1024, 64, pairs),
        "attention fp16 4×1024×64": lambda: bench_attention(1024, 64, pairs, "fp16"),
        "transpose 1024": lambda: bench_transpose(1024, pairs),
        "transpose 1000": lambda: bench_transpose(1000, pairs),
    }
    results = {name: run() for name, run in figures.items() if arguments.only in name}
    for name, result in results.items():
        print(name, {key: round(float(str(value)), 4) for key, value in result.items()})
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    machine = next((line.split(":")[1].strip() for line in lines if "model name" in line), "")
    report = {
        "machine": machine, "level": level(), "threads": 1, "pairs": pairs, "python": platform.python_version(),
        "numpy": np.__version__, "triton": triton.__version__, "llvmlite": llvmlite.__version__, "figures": results,
    }  # fmt: skip
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(report, indent=1, ensure_ascii=False, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
