"""What the build system costs: ours against the same jobs without it. Writes bench/results/build.json.

From the first job's start to the last job's end, for the units of this repository's kernels on one target, two at a
time: (ours) `precast build -j2`; (bare) the same jobs run one after another in two processes that import the engine
once; (triton) `triton.compile` of the same units in two such processes; (process) a process for each unit, as
`triton.tools.compile` does it, in the first round only. Each starts with empty caches. The engine's import is in none
of the first three: a build imports it while it plans, and `command` has the whole of its command, from its start to
the release. Rounds are interleaved, every other one in reverse; ratios are medians over rounds, with an interval
(order statistics) from six rounds on. The result is written after every round; with `--only ours,bare` it keeps the
other columns of the file there was, marked as older.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import math
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "build"))

RESULT = ROOT / "bench" / "results" / "build.json"
BOUND = 1.10
PROCESSES = 2
COLUMNS = ("ours", "bare", "triton", "process")
ONCE = ("process",)  # far from any bound
# Warp-specialised units get a process of their own for a stage, with and without the build system.
EXCLUDED = ("matmul_specialized",)


def make_project(folder: Path, target: str, kernels: str) -> None:
    """The repository's kernels, those whose spec's name is like `kernels`, as a project of one target."""
    shutil.copytree(ROOT / "kernels", folder / "kernels", ignore=shutil.ignore_patterns("__pycache__"))
    for path in (folder / "kernels").glob("*.toml"):
        if path.stem in EXCLUDED or not fnmatchcase(path.stem, kernels):
            path.unlink()
    (folder / "pyproject.toml").write_text(f'[tool.precast]\nname = "bench"\ntargets = ["{target}"]\n')


def plan_jobs(folder: Path) -> list:
    from precast.plan import plan_project
    from precast.project import read_project

    plan = plan_project(read_project(folder))
    return [plan.job(each.unit) for each in plan.units]


def measure_ours(target: str, kernels: str, scratch: Path) -> tuple[float, float]:
    """Seconds of `precast build` in a fresh copy: from the first unit's start to the last one's end, and in all."""
    project = scratch / "ours"
    make_project(project, target, kernels)
    command = [sys.executable, "-m", "precast", "build", f"-j{PROCESSES}", "--json", "--project", str(project)]
    begun, started, ended = time.perf_counter(), 0.0, 0.0
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            event, now = json.loads(line), time.perf_counter()
            if "@" in event.get("step", ""):
                started = started or now
                ended = now
    if process.returncode:
        raise SystemExit("the build failed")
    return ended - started, time.perf_counter() - begun


def measure_processes(kind: str, jobs: list, scratch: Path) -> float:
    """Seconds for `jobs` in two processes of this program that take the next job when they are done with one."""
    from precast.codec import to_json
    from precast.engines.triton.environment import worker_environment

    lines = iter([to_json(each) for each in place_jobs(jobs, scratch / kind)])
    lock = threading.Lock()
    times: list[float] = []

    def feed(process: subprocess.Popen) -> None:
        process.stdout.readline()  # its imports are done
        barrier.wait()
        while True:
            with lock:
                line = next(lines, None)
            if line is None:
                break
            times.append(time.perf_counter())
            process.stdin.write(line + "\n")
            process.stdin.flush()
            if process.stdout.readline() != "done\n":
                raise SystemExit(f"a {kind} process failed")
            times.append(time.perf_counter())
        process.stdin.close()
        process.wait()

    barrier = threading.Barrier(PROCESSES)
    command = [sys.executable, str(Path(__file__).resolve()), "--serve", kind]
    processes = []
    for number in range(PROCESSES):
        place = scratch / f"{kind}-{number}"
        place.mkdir()  # the engine keeps scratch files in its working directory
        environment = worker_environment(jobs[0].settings, os.environ, str(place))
        processes.append(
            subprocess.Popen(
                command,
                cwd=place,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                start_new_session=True,  # as workers are: schedulers share processors between sessions
            )
        )
    with ThreadPoolExecutor(PROCESSES) as pool:
        list(pool.map(feed, processes))
    return max(times) - min(times)


def measure_process_per_unit(jobs: list, scratch: Path) -> float:
    """Seconds for `jobs` with a process for each, two at a time."""
    from precast.codec import to_json

    def run(job: object) -> None:
        command = [sys.executable, str(Path(__file__).resolve()), "--serve", "triton"]
        subprocess.run(command, input=to_json(job) + "\n", text=True, check=True, capture_output=True)

    started = time.perf_counter()
    with ThreadPoolExecutor(PROCESSES) as pool:
        list(pool.map(run, place_jobs(jobs, scratch / "process")))
    return time.perf_counter() - started


def place_jobs(jobs: list, folder: Path) -> list:
    return [replace(each, store=str(folder / "store"), output=str(folder / "units" / each.unit.slug)) for each in jobs]


def serve(kind: str) -> None:
    """Runs the jobs that standard input names, as `bare` jobs or through `triton` alone."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # compilers print what they like
    from precast.codec import from_json
    from precast.job import Job

    if kind == "bare":
        from precast.engines.triton.compile import TritonEngine
        from precast.worker.walk import run_job

        engine = TritonEngine()
    else:
        import reference
        import triton  # noqa: F401 (before the clock starts)
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        job = from_json(line, Job)
        if kind == "bare":
            run_job(job, engine, lambda step: None)
        else:
            image = reference.compile_unit(job)
            Path(job.output).mkdir(parents=True)
            (Path(job.output) / "image").write_bytes(image)
        print("done", file=answers, flush=True)


def measure_round(columns: list[str], target: str, kernels: str) -> tuple[dict[str, float], int]:
    """Seconds of each column, measured in this order, and how many units there were."""
    seconds: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        make_project(scratch / "jobs", target, kernels)
        jobs = plan_jobs(scratch / "jobs")
        for column in columns:
            if column == "ours":
                seconds["ours"], seconds["command"] = measure_ours(target, kernels, scratch)
            elif column == "process":
                seconds["process"] = measure_process_per_unit(jobs, scratch)
            else:
                seconds[column] = measure_processes(column, jobs, scratch)
    return seconds, len(jobs)


def summarize(rounds: dict[str, list[float]]) -> dict:
    """Medians, and the ratios of ours to the others, round by round."""
    ratios = {}
    for name in COLUMNS[1:]:
        pairs = sorted(a / b for a, b in zip(rounds.get("ours", []), rounds.get(name, []), strict=False))
        if pairs:
            ratios[f"ours / {name}"] = {"median": statistics.median(pairs), **interval(pairs), "rounds": len(pairs)}
    return {"rounds_s": rounds, "median_s": {name: statistics.median(times) for name, times in rounds.items()}} | {
        "ratios": ratios
    }


def interval(ordered: list[float]) -> dict[str, float]:
    """A 95 % interval of the median, by order statistics; fewer than six values cannot give one."""
    count, tail, rank = len(ordered), 0.0, -1
    for number in range(count // 2):
        tail += math.comb(count, number) / 2**count
        if 2 * tail > 0.05:
            break
        rank = number
    return {} if rank < 0 else {"low": ordered[rank], "high": ordered[count - 1 - rank]}


def older_columns(before: dict, measured: list[str], units: int, target: str) -> dict:
    """What a file from an earlier run says of columns that are not measured now, if it is about the same units."""
    if (before.get("units"), before.get("target")) != (units, target):
        return {}
    older = before.get("older", {}) | {
        name: {"rounds_s": times, "python": before["python"], "triton": before["triton"], "cores": before["cores"]}
        for name, times in before["rounds_s"].items()
    }
    return {name: found for name, found in older.items() if name in COLUMNS and name not in measured}


def print_result(result: dict) -> None:
    for name, seconds in result["median_s"].items():
        print(f"{name:8} {seconds:7.1f} s   {result['units']} units, {result['target']}")
    for name, found in result["older"].items():
        print(f"{name:8} {statistics.median(found['rounds_s']):7.1f} s   in an earlier run")
    for name, ratio in result["ratios"].items():
        limits = f"  [{ratio['low']:.3f}, {ratio['high']:.3f}]" if "low" in ratio else ""
        print(f"{name}: {ratio['median']:.3f}{limits}  {ratio['rounds']} rounds")
    bare = result["ratios"].get("ours / bare")
    if bare:
        held = "undecided" if "high" not in bare or bare["low"] <= BOUND < bare["high"] else bare["high"] <= BOUND
        print(f"at most {BOUND:.2f}: {held} (ours / bare)", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="cuda:90")
    parser.add_argument("--kernels", default="*", metavar="GLOB", help="only these specs (for a quick look)")
    parser.add_argument("--only", default=",".join(COLUMNS), metavar="A,B", help="columns to measure (default: all)")
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="rounds")
    parser.add_argument("--output", type=Path, default=RESULT, metavar="FILE", help="default: bench/results/build.json")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments.serve)
        return
    columns = [name for name in COLUMNS if name in arguments.only.split(",")]
    if not columns:
        parser.error(f"--only takes some of {', '.join(COLUMNS)}")
    before = json.loads(arguments.output.read_text()) if arguments.output.exists() else {}
    machine = {
        "python": platform.python_version(),
        "triton": importlib.metadata.version("triton"),
        "cores": len(os.sched_getaffinity(0)),
    }
    rounds: dict[str, list[float]] = {}
    for number in range(arguments.repeat):
        now = [name for name in columns if not number or name not in ONCE]
        seconds, units = measure_round(now[:: -1 if number % 2 else 1], arguments.target, arguments.kernels)
        for name, value in seconds.items():
            rounds.setdefault(name, []).append(value)
        result = {"units": units, "target": arguments.target, **summarize(rounds), **machine}
        result["older"] = older_columns(before, columns, units, arguments.target)
        arguments.output.parent.mkdir(exist_ok=True)
        arguments.output.write_text(json.dumps(result, indent=1) + "\n")
        print_result(result)


if __name__ == "__main__":
    main()
