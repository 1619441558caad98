"""Large projects: null builds, one stale unit, full builds, a second machine; seconds, memory, and what planning costs.

`python bench/scale.py --units 6000` makes a project of small kernels, each in some variants for two targets, and one
more kernel of a single unit, which is the one that an edit makes stale. `--engine standin` compiles nothing, so that
what is measured is the graph alone; its units are then made in this process, outside of the clock. `--engine none`
makes files in place of units, and the snapshot that a build of them would leave: enough for null builds of any size.
`--table` measures all that there are bounds for, in about nine minutes of four cores with nothing else to do, and
writes `results/scale.json` (see `scale_table`); `--rows plan,second` measures some of it. `--json` prints one object as
the last line. Times are of whole processes, by the wall clock and of the processor, which says more on a shared
machine; medians of `--repeat` runs.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "bench" / "results" / "scale.json"
TARGETS = ("cuda:90", "hip:gfx942")
BLOCKS = (64, 128, 256, 512, 1024)
DTYPES = ("fp32", "fp16")
PER_KERNEL = len(TARGETS) * len(BLOCKS) * len(DTYPES)
STAGES = ("ttir", "ttgir", "llir", "ptx", "cubin")
UNUSUAL = ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED")  # of containers and CI
SETTLED_S = 2.3  # then the times of files can be trusted
SETTINGS = """
[tool.precast]
name = "scale"
version = "1"
targets = {targets}
max_units = 0
{more}
"""
KERNEL = """
import triton
import triton.language as tl


@triton.jit
def {name}_kernel(out, x, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    value = tl.load(x + offsets, mask=inside)
    tl.store(out + offsets, value * {number} + value, mask=inside)
"""
SPEC = """
[kernel.{name}]
source = "{name}.py:{name}_kernel"
grid = ["cdiv(n, BLOCK)", "1", "1"]
only = {only}

[kernel.{name}.args]
out = {{ type = "*{{dtype}}", align = 16 }}
x = {{ type = "*{{dtype}}", align = 16 }}
n = "i32"

[kernel.{name}.matrix]
dtype = {dtypes}
BLOCK = {blocks}
"""
SINGLE = "single"


def make_project(folder: Path, units: int, standin: bool) -> None:
    """A project of at least `units` units, of which kernel `single` has one."""
    (folder / "kernels").mkdir(parents=True)
    more = '[tool.precast.triton]\nPRECAST_ENGINE = "stand-in"' if standin else ""
    (folder / "pyproject.toml").write_text(SETTINGS.format(targets=json.dumps(TARGETS), more=more))
    for number in range(max(1, -(-(units - 1) // PER_KERNEL))):
        add_kernel(folder, f"k{number}", number + 2, TARGETS, DTYPES, BLOCKS)
    add_kernel(folder, SINGLE, 1, TARGETS[:1], DTYPES[:1], BLOCKS[:1])


def add_kernel(folder: Path, name: str, number: int, only: tuple, dtypes: tuple, blocks: tuple) -> None:
    spec = SPEC.format(name=name, only=json.dumps(only), dtypes=json.dumps(dtypes), blocks=json.dumps(blocks))
    (folder / "kernels" / f"{name}.toml").write_text(spec)
    (folder / "kernels" / f"{name}.py").write_text(KERNEL.format(name=name, number=number))


class InThisProcess:
    """Runs stand-in jobs here, at once."""

    def __init__(self) -> None:
        from precast.engines.standin import StandinEngine

        self._engine = StandinEngine()

    def prepare(self, jobs: object) -> None:
        pass

    def submit(self, job: object) -> Future:
        from precast.worker.walk import run_job

        future: Future = Future()
        future.set_result(run_job(job, self._engine, lambda step: None))
        return future

    def close(self, *, cancel: bool = False) -> None:
        pass


def make_units(folder: Path) -> None:
    """Every unit of a project, by the stand-in engine and without the graph."""
    from precast.graph.request import Request
    from precast.graph.running import run_step
    from precast.graph.session import Session
    from precast.progress.events import SilentReporter
    from precast.project import read_project

    session = Session(read_project(folder), Request(), SilentReporter(), lambda *_: InThisProcess())
    for step in session.steps.units:
        run_step(session, step)
    session.close()


def fake_units(folder: Path, units: int) -> None:
    """Files as units have them, a snapshot of these, and what a small build in this place rested on."""
    from precast.digest import look_at
    from precast.graph.request import Request
    from precast.graph.snapshot import FileTable, read_snapshot, snapshot_path, write_snapshot

    place, root = folder / snapshot_path(Request()), folder.resolve()
    asker = json.loads(place.read_bytes().split(b"\n")[1])["asker"]
    snapshot = read_snapshot(place, asker)
    states = {}
    for number in range(units):
        unit = f"build/units/cuda-90/faked_kernel-{number:012x}"
        (root / unit).mkdir(parents=True)
        for name in ("facts.json", "key.json", *(f"faked_kernel.{stage}" for stage in STAGES)):
            (root / unit / name).write_text(name)
            states[f"{unit}/{name}"] = look_at(root / unit / name)
    outputs = FileTable.of(states)
    write_snapshot(place, replace(snapshot, outputs=outputs, units=units))


def environment() -> dict[str, str]:
    """That of a user: one in which Python keeps what it has compiled of modules, and does not write by the line."""
    return {name: value for name, value in os.environ.items() if name not in UNUSUAL}


def build(folder: Path, *words: str) -> dict:
    """One `precast build`: wall and processor seconds, peak memory and processor seconds of its own process, seconds of
    units, seconds from the first unit's start to the last one's end, its summary."""
    command = [sys.executable, "-m", "precast", "build", "-j2", "--json", "--project", str(folder), *words]
    before, begun = os.times(), time.perf_counter()
    moments = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder, env=environment()) as process:
        last = watch_process(process.pid)
        events = []
        for line in process.stdout or ():
            events.append(json.loads(line))
            if "@" in events[-1].get("step", ""):
                moments.append(time.perf_counter())
        process.wait()
        wall, after = time.perf_counter() - begun, os.times()
    if process.returncode or events[-1]["event"] != "summary":
        raise SystemExit(f"the build failed: {events[-3:]}")
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    compiled = [event["seconds"] for event in events if event["event"] == "ended" and "@" in event["step"]]
    peak, own = last()
    return {"wall_s": wall, "cpu_s": spent, "peak_mb": peak, "own_cpu_s": own, "units": compiled,
            "span_s": moments[-1] - moments[0] if moments else 0.0, "summary": events[-1]}  # fmt: skip


def watch_process(process: int) -> Callable[[], tuple[float, float]]:
    """The largest resident size of a process in MB and its own processor seconds, as last seen before it ended."""
    seen = [0.0, 0.0]
    tick = os.sysconf("SC_CLK_TCK")

    def watch() -> None:
        while True:
            try:
                text = Path(f"/proc/{process}/status").read_text()
                numbers = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
                seen[0] = max(seen[0], int(text.partition("VmHWM:")[2].split()[0]) / 1024)
                seen[1] = (int(numbers[11]) + int(numbers[12])) / tick
            except (OSError, IndexError):
                return
            time.sleep(0.01)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    return lambda: (thread.join(5), (round(seen[0], 1), round(seen[1], 3)))[1]


def measure_null(folder: Path, repeat: int) -> dict:
    runs = [build(folder) for _ in range(repeat)]
    assert all(not run["units"] for run in runs)
    return {"null_build_s": median(runs, "wall_s"), "null_cpu_s": median(runs, "cpu_s"), "null_mb": peak_of(runs)}


def measure_one(folder: Path, repeat: int) -> dict:
    """Builds after an edit of the kernel of one unit; `over` is what they take beyond compiling it."""
    runs = []
    for number in range(repeat):
        time.sleep(SETTLED_S)
        build(folder)  # so that the last build's files are known
        new_source = KERNEL.format(name=SINGLE, number=1000 + number)
        (folder / "kernels" / f"{SINGLE}.py").write_text(new_source)
        runs.append(build(folder))
        assert len(runs[-1]["units"]) == 1
    over = [run["wall_s"] - run["units"][0] for run in runs]
    return {"one_build_s": median(runs, "wall_s"), "one_over_compile_s": round(statistics.median(over), 3),
            "one_cpu_s": median(runs, "cpu_s"), "one_mb": peak_of(runs)}  # fmt: skip


def measure_second(folder: Path, units: int, standin: bool) -> dict:
    """A full build that fills a cache, and a build of the same sources elsewhere that takes all of it."""
    cache, other = folder.parent / "cache", folder.parent / "second"
    first = build(folder, "--cache", str(cache))
    make_project(other, units, standin)
    second = build(other, "--cache", str(cache))
    assert second["summary"]["built"] == 0
    return {"units": first["summary"]["units"], "full_build_s": round(first["wall_s"], 3),
            "full_cpu_s": round(first["cpu_s"], 3), "second_build_s": round(second["wall_s"], 3),
            "second_cpu_s": round(second["cpu_s"], 3),
            "second_of_full": round(second["wall_s"] / first["wall_s"], 3)}  # fmt: skip


def measure_plan(folder: Path, repeat: int) -> dict:
    """Seconds of a plan by unit, its files' digests known."""
    from precast.plan import plan_project
    from precast.project import read_project

    times, spent, units = [], [], 1
    for _ in range(repeat):
        begun, before = time.perf_counter(), time.process_time()
        units = len(plan_project(read_project(folder)).units)
        times.append(time.perf_counter() - begun)
        spent.append(time.process_time() - before)
    each, own = (round(min(taken) / units * 1000, 4) for taken in (times, spent))
    return {"plan_s": round(min(times), 3), "plan_ms_per_unit": each, "plan_cpu_ms_per_unit": own}


def median(runs: list[dict], key: str) -> float:
    return round(statistics.median(run[key] for run in runs), 3)


def peak_of(runs: list[dict]) -> float:
    return max(run["peak_mb"] for run in runs)


def measure(folder: Path, units: int, engine: str, only: list[str], repeat: int) -> dict:
    make_project(folder, units if engine != "none" else 1, engine != "triton")
    result: dict = {}
    if engine == "none":
        build(folder)
        fake_units(folder, units)
        time.sleep(SETTLED_S)
        first = build(folder)
        return {"units": first["summary"]["units"], "first_null_build_s": round(first["wall_s"], 3),
                **measure_null(folder, repeat)}  # fmt: skip
    if "second" in only:
        return measure_second(folder, units, engine != "triton")
    if engine == "standin" and "full" not in only:
        make_units(folder)
    first = build(folder)
    result |= {"units": first["summary"]["units"]}
    if "full" in only:
        result |= {"full_build_s": round(first["wall_s"], 3), "full_cpu_s": round(first["cpu_s"], 3),
                   "full_mb": first["peak_mb"]}  # fmt: skip
    time.sleep(SETTLED_S)
    result |= {"first_null_build_s": round(build(folder)["wall_s"], 3)}
    if "null" in only:
        result |= measure_null(folder, repeat)
        result |= measure_plan(folder, 3)
    if "one" in only:
        result |= measure_one(folder, repeat)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--units", type=int, default=6000, metavar="N")
    parser.add_argument(
        "--only",
        action="append",
        choices=("null", "one", "full", "second"),
        help="default: null and one; second: another machine, with a full cache",
    )
    parser.add_argument("--engine", choices=("triton", "standin", "none"), default="triton")
    parser.add_argument("--table", action="store_true", help="all that there are bounds for; nothing else is heard")
    parser.add_argument("--rows", metavar="NAME,…", help="of the table these alone: see `PARTS` in scale_table.py")
    parser.add_argument("--repeat", type=int, default=5, metavar="N", help="runs of each")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="keep the project here")
    parser.add_argument("--json", action="store_true", help="one object on the last line")
    parser.add_argument("--output", type=Path, metavar="FILE", help="add the result to this file of results")
    arguments = parser.parse_args()
    if arguments.table or arguments.rows:
        from scale_table import LONG, PARTS, measure_table

        names = arguments.rows.split(",") if arguments.rows else [each for each in PARTS if each not in LONG]
        if unknown := [each for each in names if each not in PARTS]:
            parser.error(f"no rows are called {', '.join(unknown)}: there are {', '.join(PARTS)}")
        result = measure_table(arguments.output or RESULT, names, arguments.folder)
        print(json.dumps(result) if arguments.json else json.dumps(result, indent=1))
        return
    only = arguments.only or ["null", "one"]
    scratch = arguments.folder or Path(tempfile.mkdtemp(prefix="precast-scale-"))
    try:
        result = measure(scratch / "project", arguments.units, arguments.engine, only, arguments.repeat)
    finally:
        if not arguments.folder:
            shutil.rmtree(scratch, ignore_errors=True)
    result |= {"engine": arguments.engine, "python": platform.python_version(), "cores": len(os.sched_getaffinity(0))}
    if arguments.output:
        known = json.loads(arguments.output.read_text()) if arguments.output.exists() else []
        known = known if isinstance(known, list) else [known]  # a table
        arguments.output.write_text(json.dumps([*known, result], indent=1) + "\n")
    if arguments.json:
        print(json.dumps(result))
    else:
        print("\n".join(f"{name:22} {value}" for name, value in result.items()))


if __name__ == "__main__":
    main()
