"""What a launch costs, against the driver alone and against Triton: `python bench/launch.py RELEASE [--out FILE]`.

RELEASE is the release of bench/launch_kernels, made by `precast build --project bench/launch_kernels`. A call of
Triton's is measured twice: with Triton's own launch, and served from the release. On a machine without an NVIDIA device
only the CPU's figures are measured, those of calls where Precast is Triton's back end (its `cpu` extra). Every figure
is the ratio (or difference) of paired, interleaved repetitions with a 95 % interval of its mean; `holds` says that the
interval is clear of the bound. One repetition of a launch is the median of some batches, whose queue is emptied outside
the clock. Needs a C compiler; torch and Triton for the Python figures. Runs on the standard library alone otherwise.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import json
import math
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
REPETITIONS = 40
BATCH = 400  # launches in one batch: fewer than a stream's queue holds
BATCHES = 9  # in one repetition
SHAPES = {0: (0, 0), 6: (3, 3), 19: (8, 11), 58: (20, 38)}


@dataclass(frozen=True)
class Figure:
    """One line of the table. `low` and `high` bound the mean of the paired comparison."""

    what: str
    against: str
    unit: str  # ratio, or us for a difference
    bound: float
    mean: float
    low: float
    high: float
    ours: float  # medians, in `scale`
    theirs: float
    scale: str
    repetitions: int

    @property
    def holds(self) -> bool:
        return self.high <= self.bound


def compare(what: str, against: str, bound: float, ours: list[float], theirs: list[float], scale: str,
            unit: str = "ratio") -> Figure:  # fmt: skip
    pairs = zip(ours, theirs, strict=True)
    values = [a / b if unit == "ratio" else a - b for a, b in pairs]
    mean = statistics.fmean(values)
    half = 2.03 * statistics.stdev(values) / math.sqrt(len(values))  # Student's t for 35 and more
    return Figure(what, against, unit, bound, mean, mean - half, mean + half, statistics.median(ours),
                  statistics.median(theirs), scale, len(values))  # fmt: skip


class Bench:
    """The release, its manifest and the compiled C part."""

    def __init__(self, release: Path, work: Path) -> None:
        self.release = release.resolve()
        self.work = work
        self.units = {unit["unit"]: unit for unit in json.loads((release / "manifest.json").read_text())["units"]}
        flags = [str(HERE / "launch_raw.c"), "-O2", "-std=c11", "-D_GNU_SOURCE", f"-I{self.release}/include",
                 f"-L{self.release}/lib", f"-Wl,-rpath,{self.release}/lib", "-lbench", "-ldl"]  # fmt: skip
        subprocess.run(["cc", "-shared", "-fPIC", "-o", work / "raw.so", *flags], check=True)
        subprocess.run(["cc", "-o", work / "raw", *flags], check=True)
        self.raw = ctypes.CDLL(str(work / "raw.so"))
        for name in ("raw_batch", "ours_batch", "cpu_ours_batch", "cpu_pointer_batch", "query_batch"):
            getattr(self.raw, name).restype = ctypes.c_double
        self.raw.device_memory.restype = ctypes.c_uint64
        self.raw.ours_error.restype = ctypes.c_char_p

    def image(self, unit: str) -> tuple[str, int, str]:
        """Pack, offset and symbol of a unit."""
        entry = self.units[unit]
        return str(self.release / entry["file"]), entry["offset"], entry["facts"]["symbol"]

    def prepare(self, arguments: int) -> None:
        pack, offset, symbol = self.image(f"args{arguments}@cuda:90")
        failed = self.raw.raw_prepare(
            str(self.release).encode(), pack.encode(), ctypes.c_long(offset), symbol.encode(), arguments
        )
        if failed:
            raise SystemExit(f"cannot prepare args{arguments}: {self.raw.ours_error().decode()}")

    def raw_batch(self, arguments: int) -> float:
        return checked(self.raw.raw_batch(*SHAPES[arguments], BATCH), self.raw)

    def ours_batch(self, arguments: int) -> float:
        return checked(self.raw.ours_batch(arguments, BATCH), self.raw)


def checked(nanoseconds: float, library: ctypes.CDLL) -> float:
    if nanoseconds < 0:
        raise SystemExit(f"a launch failed: {library.ours_error().decode()}")
    return nanoseconds


def python_batch(call: Any, text: str, values: Sequence[object], synchronize: Callable[[], object],
                 server: Any = None) -> Callable[[], float]:  # fmt: skip
    """Gives nanoseconds of one call in a batch; the call is written out, as in a user's program.

    `text` is the call, with `{}` for the names of the values. With a server it is on meanwhile, and knows the call.
    """
    names = ", ".join(f"v{number}" for number in range(len(values)))
    scope: dict[str, Any] = {"repeat": repeat}
    exec(f"def loop(count, kernel, grid, {names}):\n for _ in repeat(None, count): {text.format(names)}", scope)
    loop = scope["loop"]

    def batch() -> float:
        loop(1, call, (1,), *values)
        start = time.perf_counter_ns()
        loop(BATCH, call, (1,), *values)
        elapsed = time.perf_counter_ns() - start
        synchronize()
        return elapsed / BATCH

    def served_batch() -> float:
        with server.start():
            return batch()

    return served_batch if server else batch


def interleave(batches: dict[str, Callable[[], float]]) -> dict[str, list[float]]:
    """Repetitions of each kind of batch, taken in turn and in both orders."""
    samples: dict[str, list[float]] = {name: [] for name in batches}
    for batch in batches.values():
        batch()
    for _ in range(REPETITIONS):
        taken: dict[str, list[float]] = {name: [] for name in batches}
        for number in range(BATCHES):
            for name in list(batches)[:: -1 if number % 2 else 1]:
                taken[name].append(batches[name]())
        for name, values in taken.items():
            samples[name].append(statistics.median(values))
    return samples


def measure_c(bench: Bench) -> list[Figure]:
    figures = []
    for arguments in SHAPES:
        bench.prepare(arguments)
        samples = interleave({"raw": partial(bench.raw_batch, arguments), "ours": partial(bench.ours_batch, arguments)})
        what = f"C launch, {arguments} arguments"
        figures.append(compare(what, "raw cuLaunchKernel", 1.05, samples["ours"], samples["raw"], "ns"))
    return figures


def measure_python(bench: Bench) -> Iterator[tuple[list[Figure], dict[str, float]]]:
    """The figures, and what part of Triton's call the driver alone takes: nothing that calls the driver can be less."""
    import torch

    for arguments in (6, 19):
        pointers, numbers = SHAPES[arguments]
        values = [torch.zeros(64, device="cuda") for _ in range(pointers)] + [7] * numbers
        bench.prepare(arguments)
        raw = {"raw": partial(bench.raw_batch, arguments)}
        what = f"{arguments} arguments"
        samples = compare_calls(bench, f"args{arguments}", "", values, torch.cuda.synchronize, raw)
        direct = compare(f"Python launch with tensors, {what}", "raw cuLaunchKernel from C", 1.2,
                         samples["ours"], samples["raw"], "ns")  # fmt: skip
        driver = round(compare("", "", 0, samples["raw"], samples["triton"], "ns").mean, 3)
        yield [direct, *call_figures(what, samples)], {what: driver}
    values = [torch.zeros(64, device="cuda", dtype=torch.float16) for _ in range(2)] + [64, 1, 64]
    samples = compare_calls(bench, "rows", ", BLOCK=1024", values, torch.cuda.synchronize, {})
    yield call_figures("5 arguments and a constexpr by name", samples), {}


def call_figures(what: str, samples: dict[str, list[float]], where: str = "") -> list[Figure]:
    """Direct and served calls against Triton's own, and the one against the other."""
    import triton

    own = f"kernel[grid](…) of Triton {triton.__version__}{where}"
    return [
        compare(f"Python launch with tensors, {what}", own, 0.25, samples["ours"], samples["triton"], "ns"),
        compare(f"served call of Triton's, {what}", own, 0.4, samples["served"], samples["triton"], "ns"),
        compare(f"served call of Triton's, {what}", f"a Python launch{where}", 1.3, samples["served"],
                samples["ours"], "ns"),
    ]  # fmt: skip


def compare_calls(bench: Bench, kernel: str, named: str, values: Sequence[object], wait: Callable[[], object],
                  others: dict[str, Callable[[], float]]) -> dict[str, list[float]]:  # fmt: skip
    """Samples of one call as ours, as Triton's, and as Triton's when it is served, taken in turn with `others`."""
    if str(bench.release / "python") not in sys.path:
        sys.path.insert(0, str(bench.release / "python"))
    import bench as package

    function = getattr(load_module(HERE / "launch_kernels/kernels/launch.py"), f"{kernel}_kernel")
    server = package.serve()
    server.stop()
    ours, theirs = f"kernel({{}}{named})", f"kernel[grid]({{}}{named})"
    return interleave({**others, "ours": python_batch(getattr(package, kernel), ours, values, wait),
                       "triton": python_batch(function, theirs, values, wait),
                       "served": python_batch(function, theirs, values, wait, server)})  # fmt: skip


class HostTensor:
    """Memory as both take it: an address, an element type, a place."""

    dtype = "torch.float32"

    def __init__(self) -> None:
        self._memory = (ctypes.c_float * 128)()

    def data_ptr(self) -> int:
        return -(-ctypes.addressof(self._memory) // 64) * 64

    def get_device(self) -> int:
        return -1

    def stride(self) -> tuple[int, ...]:
        return (1,)

    @property
    def shape(self) -> tuple[int, ...]:
        return (64,)


def measure_host_calls(bench: Bench) -> list[Figure]:
    """The calls on a CPU, where Triton has Precast as its back end."""
    if not importlib.util.find_spec("triton"):
        return []
    from triton.runtime import driver

    try:
        backend = driver.active.get_current_target().backend
    except RuntimeError:
        return []
    if backend != "cpu":
        return []
    figures = []
    for arguments in (6, 19):
        pointers, numbers = SHAPES[arguments]
        values = [HostTensor() for _ in range(pointers)] + [7] * numbers
        samples = compare_calls(bench, f"args{arguments}", "", values, lambda: None, {})
        figures += call_figures(f"{arguments} arguments", samples, " on a CPU")
    values = [*(HostTensor() for _ in range(2)), 64, 1, 64]
    samples = compare_calls(bench, "rows", ", BLOCK=1024", values, lambda: None, {})
    return figures + call_figures("5 arguments and a constexpr by name", samples, " on a CPU")


PYTHON_START = """
import ctypes, sys
sys.path.insert(0, {python!r})
cuda = ctypes.CDLL("libcuda.so.1")
context, memory, last = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_float()
assert not cuda.cuInit(0) and not cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
assert not cuda.cuCtxSetCurrent(context) and not cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(4 << 16))
import bench
bench.fill(memory.value, 2.5, 1 << 16)
place = ctypes.c_uint64(memory.value + 4 * 65535)
assert not cuda.cuMemcpyDtoH_v2(ctypes.byref(last), place, ctypes.c_size_t(4)) and last.value == 2.5
"""


def seconds_of(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def measure_start(bench: Bench) -> list[Figure]:
    images = bench.work / "fill.txt"
    images.write_text("{} {} {}\n".format(*bench.image("fill:BLOCK=256@cuda:90")))
    program = [str(bench.work / "raw"), "start"]
    tail = [str(bench.release), str(images)]
    python = [sys.executable, "-I", "-S", "-c", PYTHON_START.format(python=str(bench.release / "python"))]
    commands = {"bare": [*program, "bare", *tail], "ours": [*program, "ours", *tail], "python": python}
    samples: dict[str, list[float]] = {name: [] for name in commands}
    for command in commands.values():
        seconds_of(command)
    for _ in range(REPETITIONS):
        for name, command in commands.items():
            samples[name].append(1000 * seconds_of(command))
    against = "a bare driver program"
    return [
        compare("process start to first result, C", against, 1.1, samples["ours"], samples["bare"], "ms"),
        compare("process start to first result, Python", against, 1.5, samples["python"], samples["bare"], "ms"),
    ]


def measure_resident(bench: Bench) -> list[Figure]:
    images = bench.work / "wide.txt"
    images.write_text("".join("{} {} {}\n".format(*bench.image(f"wide:STEP={n}@cuda:90")) for n in (1, 2, 3)))
    samples: dict[str, list[float]] = {"bare": [], "ours": []}
    for _ in range(REPETITIONS):
        for name, values in samples.items():
            command = [str(bench.work / "raw"), "resident", name, str(bench.release), str(images)]
            output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            values.append(float(output.split()[0]))
    what = f"resident memory, 3 units of a release of {len(bench.units)}"
    return [compare(what, "the same 3 images alone", 1.2, samples["ours"], samples["bare"], "KiB")]


def measure_cpu(bench: Bench) -> list[Figure]:
    unit = next(entry for entry in bench.units.values() if entry["unit"].startswith("args6@cpu"))
    library, symbol = str(bench.release / unit["file"]).encode(), unit["facts"]["symbol"].encode()
    folder, count = str(bench.release).encode(), 20_000
    ours, theirs = [], []
    for _ in range(REPETITIONS):
        theirs.append(checked(bench.raw.cpu_pointer_batch(library, symbol, count), bench.raw) / 1000)
        ours.append(checked(bench.raw.cpu_ours_batch(folder, count), bench.raw) / 1000)
    return [compare("CPU launch of a grid of 1", "a call through a pointer", 1.0, ours, theirs, "us", "us")]


def load_module(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def has_device() -> bool:
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    count = ctypes.c_int()
    return cuda.cuInit(0) == 0 and cuda.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0


def read_processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(": ")[1] for line in lines if line.startswith("model name")), platform.machine())


def describe_device(bench: Bench) -> dict[str, Any]:
    import torch
    import triton

    version = ctypes.c_int()
    ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(version))
    driver = f"CUDA {version.value // 1000}.{version.value % 1000 // 10}"
    return {"device": torch.cuda.get_device_name(), "driver": driver, "torch": torch.__version__,
            "triton": triton.__version__, "context_query_ns": round(bench.raw.query_batch(100_000), 1)}  # fmt: skip


def measure(release: Path, write: Callable[[dict[str, Any]], None]) -> None:
    """All figures that this machine can give, and what it is; written as they come. Whole processes come first, as
    nothing should be forked once torch is imported."""
    machine: dict[str, Any] = {"processor": read_processor(), "python": sys.version.split()[0]}
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(release, Path(folder))
        figures: list[Figure] = []

        def note(more: list[Figure]) -> None:
            figures.extend(more)
            write({"machine": machine, "figures": [{**asdict(figure), "holds": figure.holds} for figure in figures]})

        note(measure_cpu(bench))
        if not has_device():
            note(measure_host_calls(bench))
            return
        for part in (measure_start, measure_resident, measure_c):
            note(part(bench))
        machine["driver_alone_of_triton"] = {}
        for more, driver in measure_python(bench):
            machine["driver_alone_of_triton"] |= driver
            note(more)
        machine |= describe_device(bench)
        note([])


def print_figure(figure: dict[str, Any]) -> None:
    mark = "ok " if figure["holds"] else "OVER"
    print(f"{mark} {figure['what']} against {figure['against']}: {figure['mean']:.3f} "
          f"[{figure['low']:.3f}, {figure['high']:.3f}] of at most {figure['bound']} ({figure['unit']}); "
          f"{figure['ours']:.1f} and {figure['theirs']:.1f} {figure['scale']}", flush=True)  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("release", type=Path)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    printed = 0

    def write(result: dict[str, Any]) -> None:
        nonlocal printed
        for figure in result["figures"][printed:]:
            print_figure(figure)
        printed = len(result["figures"])
        if arguments.out:
            arguments.out.write_text(json.dumps(result, indent=1) + "\n")

    measure(arguments.release, write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
