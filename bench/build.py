"""What the build system costs: ours against the same jobs without it. Writes bench/results/build.json.

From the first job's start to the last job's end, for the units of this repository's kernels on one target, two at a
time: (ours) `precast build -j2`; (bare) the same jobs run one after another in two processes that import the engine
once; (triton) `triton.compile` of the same units in two such processes; (process) a process for each unit, as
`triton.tools.compile` does it. Each starts with empty caches. `--repeat N` interleaves N rounds; medians are printed.
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
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "build"))

PROCESSES = 2
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


def measure_ours(target: str, kernels: str, scratch: Path) -> tuple[float, int]:
    """Seconds and units of `precast build` in a fresh copy; starts and ends are those of units alone."""
    project = scratch / "ours"
    make_project(project, target, kernels)
    command = [sys.executable, "-m", "precast", "build", f"-j{PROCESSES}", "--json", "--project", str(project)]
    started, ended, units = 0.0, 0.0, 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            event, now = json.loads(line), time.perf_counter()
            if "@" in event.get("step", ""):
                started = started or now
                ended = now
                units += event["event"] == "ended"
    if process.returncode:
        raise SystemExit("the build failed")
    return ended - started, units


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


def measure(target: str, kernels: str, repeat: int) -> dict:
    rounds: dict[str, list[float]] = {"ours": [], "bare": [], "triton": [], "process": []}
    units = 0
    for number in range(repeat):
        with tempfile.TemporaryDirectory() as name:
            scratch = Path(name)
            make_project(scratch / "jobs", target, kernels)
            jobs = plan_jobs(scratch / "jobs")
            seconds, units = measure_ours(target, kernels, scratch)
            rounds["ours"].append(seconds)
            rounds["bare"].append(measure_processes("bare", jobs, scratch))
            rounds["triton"].append(measure_processes("triton", jobs, scratch))
            if not number:  # its figure is far from any bound: once is enough
                rounds["process"].append(measure_process_per_unit(jobs, scratch))
    middle = {name: statistics.median(times) for name, times in rounds.items()}
    ratios = {f"ours / {name}": middle["ours"] / middle[name] for name in ("bare", "triton", "process")}
    return {"units": units, "target": target, "rounds_s": rounds, "median_s": middle, "ratios": ratios}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="cuda:90")
    parser.add_argument("--kernels", default="*", metavar="GLOB", help="only these specs (for a quick look)")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments.serve)
        return
    import triton

    result = measure(arguments.target, arguments.kernels, arguments.repeat)
    result |= {"python": platform.python_version(), "triton": triton.__version__, "cores": len(os.sched_getaffinity(0))}
    for name, seconds in result["median_s"].items():
        print(f"{name:8} {seconds:7.1f} s   {result['units']} units, {result['target']}")
    for name, ratio in result["ratios"].items():
        print(f"{name}: {ratio:.2f}")
    print(f"at most 1.10: {'yes' if result['ratios']['ours / bare'] <= 1.10 else 'NO'} (ours / bare)")
    results = ROOT / "bench" / "results"
    results.mkdir(exist_ok=True)
    (results / "build.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
