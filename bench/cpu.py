"""The CPU engine against gcc, OpenBLAS, NumPy and the machine's own peak, on one thread. Writes bench/results/cpu.json.

Each level that the machine has runs in a process of its own, v3 beside the OpenBLAS of that level; gcc compiles
`cpu_reference.c` with `-O3 -march=native -ffast-math`, and beside v3 for that level. A figure is from interleaved
pairs, in the thread's own processor time: `ratio` is how much faster ours is, by work done, its median with the 95 %
interval of order statistics, which has to be clear of `bound`. Results are checked after timing. Levels that the
machine has not are listed: they are not run. README.md's rows of the engine are these figures.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
if __name__ == "__main__":  # before NumPy loads its OpenBLAS, which any of these would slow down
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        os.environ.pop(name, None)
    if "x86-64-v3" in sys.argv:
        os.environ["OPENBLAS_CORETYPE"] = "Haswell"
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ[name] = "1"
sys.path[:0] = [str(ROOT / "tests" / "numerics"), str(ROOT / "kernels"), str(ROOT / "bench")]

import llvmlite  # noqa: E402
import numpy as np  # noqa: E402
import triton  # noqa: E402
from cpu_cases import HAS_TORCH, V3, Bench, Case, Figure, find_gcc_flags, measure  # noqa: E402
from cpu_harness import LEVELS  # noqa: E402

PAIRS = 30
V4, BYTES, BF16, AMX = "x86-64-v4", "x86-64-v4-vnni", "x86-64-v4-bf16", "x86-64-v4-amx"
GCC, BLAS, PEAK, NUMPY, OURS = "gcc", "OpenBLAS", "FMA peak", "NumPy", "ours in fp32"


@dataclass(frozen=True)
class Row:
    """A line of the table: what is compared with what, and the least ratio on v4 (and above it) and on v3."""

    what: str
    against: str
    make: Callable[[Bench], Case]
    v4: float | None
    v3: float | None


ROWS = [
    Row("vector add 65536", GCC, lambda bench: bench.vector_add(65536), 0.97, 0.97),
    Row("vector add 65000", GCC, lambda bench: bench.vector_add(65000), 0.97, 0.97),
    Row("vector add 4M", GCC, lambda bench: bench.vector_add(1 << 22), 0.97, 0.97),
    Row("softmax 256×781", GCC, lambda bench: bench.softmax(781, 1024), 1.3, 1.1),
    Row("softmax 256×1024", GCC, lambda bench: bench.softmax(1024, 1024), 1.3, 1.1),
    Row("softmax 256×4000", GCC, lambda bench: bench.softmax(4000, 4096), 1.3, 1.1),
    Row("layer norm 256×4000", GCC, lambda bench: bench.layer_norm(4000), 1.05, 1.05),
    Row("RMS norm 256×4000", GCC, lambda bench: bench.rms_norm(4000), 1.05, 1.05),
    Row("bias+GELU 256×4000", GCC, lambda bench: bench.bias_gelu(4000), 1.3, None),
    Row("SwiGLU 256×4000", GCC, lambda bench: bench.swiglu(4000), 1.25, None),
    Row("matmul fp32 512", BLAS, lambda bench: bench.matmul(512, 512, 512), 0.97, 0.97),
    Row("matmul fp32 1024", BLAS, lambda bench: bench.matmul(1024, 1024, 1024), 0.95, 0.95),
    Row("matmul fp32 500×333×100", BLAS, lambda bench: bench.matmul(500, 333, 100), 0.85, 0.85),
    Row("attention fp32 4×1024×64", PEAK, lambda bench: bench.attention(1024, 64, "fp32"), 0.75, 0.75),
    Row("attention fp16 4×1024×64", PEAK, lambda bench: bench.attention(1024, 64, "fp16"), 0.75, 0.75),
    Row("dots alone 64", PEAK, lambda bench: bench.products(64), 0.92, 0.92),
    Row("transpose 1024", NUMPY, lambda bench: bench.transpose(1024), 5.0, None),
    Row("transpose 1000", NUMPY, lambda bench: bench.transpose(1000), 6.0, None),
    Row("cumsum 256×4000", GCC, lambda bench: bench.cumsum(4000), 0.95, 0.95),
    Row("argmax 256×4000", GCC, lambda bench: bench.argmax(4000), 0.95, 0.95),
    Row("histogram 1M, 256", GCC, lambda bench: bench.histogram(1 << 20, 256), 0.95, 0.95),
    Row("gather 64K", GCC, lambda bench: bench.gather(65536), 0.95, 0.95),
    Row("two threads, matmul 1024", "one thread", lambda bench: bench.matmul(1024, 1024, 1024, parts=2), 1.9, None),
]
OF_BYTES = [
    Row("matmul int8 512", OURS, lambda bench: bench.bytes_matmul(512), 3.0, None),
    Row("matmul int8 1024", OURS, lambda bench: bench.bytes_matmul(1024), 3.0, None),
]
OF_BF16 = Row(
    "matmul bf16 1024", "torch" if HAS_TORCH else OURS, lambda bench: bench.bf16_matmul(1024),
    0.9 if HAS_TORCH else None, None,
)  # fmt: skip
ABOVE = {BYTES: OF_BYTES, BF16: [OF_BF16], AMX: [*OF_BYTES, OF_BF16]}
RUN = (V4, V3, *ABOVE)


def run_level(level: str, pairs: int, only: str) -> list[Figure]:
    """The figures of a level; those above v4 differ from it in products of small numbers alone."""
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(level, Path(folder))
        for row in (each for each in ABOVE.get(level, ROWS) if only in each.what):
            bound = row.v3 if level == V3 else row.v4
            found = {key: round(value, 4) for key, value in measure(row.make(bench), pairs).items()}
            holds = None if bound is None else found["low"] >= bound
            against = " ".join([GCC, *find_gcc_flags(level)]) if row.against == GCC else row.against
            about = {"what": row.what, "level": level, "against": against, "scale": "us"}
            figures.append({**about, **found, "bound": bound, "holds": holds})
            print(figures[-1], file=sys.stderr, flush=True)
        if only in "compile" and level not in ABOVE:
            figures += bench.compile()
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
    parser.add_argument("--level", choices=RUN, help="this level alone, printed as JSON")
    arguments = parser.parse_args()
    if arguments.level:
        print(json.dumps(run_level(arguments.level, arguments.pairs, arguments.only), ensure_ascii=False))
        return
    figures: list[Figure] = []
    for level in (each for each in RUN if each in LEVELS):
        command = [sys.executable, __file__, "--level", level, "--pairs", str(arguments.pairs)]
        command += ["--only", arguments.only]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        figures += json.loads(done.stdout)
    report = {
        "machine": describe_machine(), "pairs": arguments.pairs, "figures": figures,
        "not run": [each for each in RUN if each not in LEVELS],
    }  # fmt: skip
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
