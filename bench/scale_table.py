"""The table of what large projects may cost: each row a figure or a ratio, its bound, and how sure it is.

In: `scale.py --table`, or the names of `PARTS` through `--rows`. Out: `results/scale.json`, with machine and versions;
rows that were not measured this time stay in it. What is compared runs in turn, in one go; of full builds of real units
there are few rounds, for each takes half a minute. An interval is that of 95 % of medians drawn from the rounds again
and again. Every part prints its rows to standard error when it is done.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import scale

STALE_ROUNDS, MANY_ROUNDS, PLANS, FULL_ROUNDS, CACHE_ROUNDS, SECONDS, CLUSTER_ROUNDS = 20, 5, 30, 3, 2, 5, 6
SLEEPY, SLEEP_S = 24, 0.06  # units for a cluster, and what each of their five stages takes
Row = dict[str, object]


def measure_table(output: Path, names: Sequence[str], folder: Path | None = None) -> dict:
    """The rows of the parts `names`, which also go to `output`. `folder` is kept; without one it is a temporary one."""
    scratch = folder or Path(tempfile.mkdtemp(prefix="precast-table-"))
    rows: list[Row] = []
    started = time.perf_counter()
    try:
        for name in names:
            load = os.getloadavg()[0]
            try:
                found = list(PARTS[name](scratch / name))
            except Exception as error:  # the other parts say something all the same
                found = [{"what": name, "failed": repr(error)}]
            finally:
                shutil.rmtree(scratch / name, ignore_errors=True)
            rows += [{**each, "load": round(load, 1)} for each in found]
            print(f"{time.perf_counter() - started:6.0f} s {name}", file=sys.stderr, flush=True)
            for each in found:
                print(f"         {json.dumps(each)}", file=sys.stderr, flush=True)
            write(output, rows)
    finally:
        if folder is None:
            shutil.rmtree(scratch, ignore_errors=True)
    return write(output, rows)


def write(output: Path, rows: Sequence[Row]) -> dict:
    """The table with `rows` in place of those of the same names that it had of this machine."""
    machine = {"processor": processor(), "cores": len(os.sched_getaffinity(0))}
    known = json.loads(output.read_text()) if output.exists() else {}
    kept = known["rows"] if isinstance(known, dict) and known.get("machine") == machine else []
    versions = {name: importlib.metadata.version(name) for name in ("precast", "triton", "scons")}
    result = {
        "machine": machine,
        "versions": {"python": platform.python_version(), **versions},
        "rows": [*{each["what"]: each for each in (*kept, *rows)}.values()],
    }
    output.write_text(json.dumps(result, indent=1) + "\n")
    return {**result, "rows": list(rows)}


def processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine())


def row(what: str, unit: str, values: Sequence[float], bound: float) -> Row:
    """A figure: the median of its runs, with its interval; 0 is no bound."""
    low, high = interval([values], statistics.median)
    return {"what": what, "unit": unit, "rounds": len(values), "median": round(statistics.median(values), 4),
            "low": low, "high": high, "at most": bound}  # fmt: skip


def ratio(what: str, ones: Sequence[float], others: Sequence[float], bound: float) -> Row:
    """A ratio of medians, with its interval."""

    def of(one: Sequence[float], other: Sequence[float]) -> float:
        return statistics.median(one) / statistics.median(other)

    low, high = interval([ones, others], of)
    return {"what": what, "unit": "ratio", "rounds": [len(ones), len(others)], "median": round(of(ones, others), 4),
            "low": low, "high": high, "at most": bound}  # fmt: skip


def interval(samples: Sequence[Sequence[float]], of: Callable[..., float]) -> tuple[float, float]:
    """The middle 95 % of what `of` gives for samples drawn anew."""
    chance = random.Random(1)
    found = sorted(of(*(chance.choices(each, k=len(each)) for each in samples)) for _ in range(2000))
    return round(found[49], 4), round(found[1949], 4)


def one_stale(folder: Path) -> list[Row]:
    """Null builds and builds of one stale unit, in turn, of 6,000 units of the stand-in engine."""
    project = folder / "project"
    scale.make_project(project, 6000, standin=True)
    scale.make_units(project)
    return rows_of_stale(project, "6,000 units", STALE_ROUNDS, (0.3, 1.0, 300))


def one_stale_real(folder: Path) -> list[Row]:
    """The same of units that Triton compiles, by as many workers as there are cores."""
    project = folder / "project"
    scale.make_project(project, 6000, standin=False)
    scale.build(project, f"-j{len(os.sched_getaffinity(0))}")
    return rows_of_stale(project, "6,000 real units", STALE_ROUNDS, (0.3, 1.0, 300))


def one_stale_of_60000(folder: Path) -> list[Row]:
    """The same of 60,000 units of the stand-in engine; to make them takes a quarter of an hour."""
    project = folder / "project"
    scale.make_project(project, 60000, standin=True)
    scale.make_units(project)
    return rows_of_stale(project, "60,000 units", MANY_ROUNDS, (2.0, 0, 1500))


def rows_of_stale(project: Path, units: str, rounds: int, bounds: tuple[float, float, float]) -> list[Row]:
    """Null builds and builds of one stale unit, in turn, in a project whose units are made. Bounds: seconds of a null
    build, seconds beyond it and the compile, megabytes."""
    scale.build(project)
    time.sleep(scale.SETTLED_S)
    scale.build(project)
    nulls, ones = [], []
    for number in range(rounds):
        nulls.append(scale.build(project))
        source = scale.KERNEL.format(name=scale.SINGLE, number=1000 + number)
        (project / "kernels" / f"{scale.SINGLE}.py").write_text(source)
        ones.append(scale.build(project))
        assert not nulls[-1]["units"] and len(ones[-1]["units"]) == 1
        time.sleep(scale.SETTLED_S)
        scale.build(project)  # so that the last build's files are known
    walls = [each["wall_s"] for each in nulls]
    over = [one["wall_s"] - one["units"][0] - null for one, null in zip(ones, walls, strict=True)]
    most_s, most_over_s, most_mb = bounds
    return [
        row(f"null build of {units}", "s", walls, most_s),
        row(f"null build of {units}: processor", "s", [each["cpu_s"] for each in nulls], most_s),
        row(f"one stale of {units}, beyond a null build and its compile", "s", over, most_over_s),
        row(f"one stale of {units}: processor", "s", [each["cpu_s"] for each in ones], 0),
        row(f"memory of a null build of {units}", "MB", [each["peak_mb"] for each in nulls], most_mb),
        row(f"memory of one stale of {units}", "MB", [each["peak_mb"] for each in ones], most_mb),
    ]


def null_of_60000(folder: Path) -> list[Row]:
    """Null builds over the files of 60,000 units."""
    project = folder / "project"
    scale.make_project(project, 1, standin=True)
    scale.build(project)
    scale.fake_units(project, 60000)
    time.sleep(scale.SETTLED_S)
    scale.build(project)
    runs = [scale.build(project) for _ in range(MANY_ROUNDS)]
    assert not any(each["units"] for each in runs)
    return [
        row("null build over files of 60,000 units", "s", [each["wall_s"] for each in runs], 2.0),
        row("memory of a null build over files of 60,000 units", "MB", [each["peak_mb"] for each in runs], 1500),
    ]


def plans(folder: Path) -> list[Row]:
    """Plans of 6,000 units in a new process each."""
    project = folder / "project"
    scale.make_project(project, 6000, standin=True)
    scale.measure_plan(project, 1)
    time.sleep(scale.SETTLED_S)
    scale.measure_plan(project, 1)  # so that the digests of files are known
    script = (
        "import json, sys; from pathlib import Path; sys.path[:0] = [sys.argv[2]]; import scale; "
        "print(json.dumps(scale.measure_plan(Path(sys.argv[1]), 1)))"
    )
    command = [sys.executable, "-c", script, str(project), str(Path(__file__).parent)]
    outs = [subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(PLANS)]
    runs = [json.loads(each) for each in outs]
    return [
        row("a cold plan, per unit", "ms", [each["plan_ms_per_unit"] for each in runs], 0.08),
        row("a cold plan, per unit: processor", "ms", [each["plan_cpu_ms_per_unit"] for each in runs], 0.08),
    ]


def full(folder: Path) -> list[Row]:
    """Full builds of 500 real units, and the same jobs in two bare processes, in turn."""
    fulls, bares = [], []
    for number in range(FULL_ROUNDS):
        first, bare = folder / f"full{number}", folder / f"bare{number}"
        scale.make_project(first, 500, standin=False)
        scale.make_project(bare, 500, standin=False)
        if number % 2:
            bares.append(run_bare(bare))
        fulls.append(scale.build(first))
        if not number % 2:
            bares.append(run_bare(bare))
        for each in (first, bare):
            shutil.rmtree(each)
    units = fulls[0]["summary"]["units"]
    return [
        row("full build of 500 real units", "s", [each["wall_s"] for each in fulls], 0),
        row("memory of a full build of 500", "MB", [each["peak_mb"] for each in fulls], 0),
        ratio("full build, first job to last, by two bare processes", [each["span_s"] for each in fulls], bares, 1.10),
        row("driver's own processor time, per unit", "ms", [each["own_cpu_s"] / units * 1000 for each in fulls], 5.0),
    ]


def second(folder: Path) -> list[Row]:
    """Full builds of 500 real units that fill a cache, each with other machines that take all of it."""
    fulls, others = [], []
    for number in range(CACHE_ROUNDS):
        first, cache = folder / f"full{number}", folder / f"cache{number}"
        scale.make_project(first, 500, standin=False)
        fulls.append(scale.build(first, "--cache", str(cache)))
        for again in range(SECONDS):
            other = folder / f"other{number}.{again}"
            scale.make_project(other, 500, standin=False)
            others.append(scale.build(other, "--cache", str(cache)))
            assert others[-1]["summary"]["built"] == 0
    walls = [each["wall_s"] for each in others]
    return [
        row("second machine, full cache, 500 units", "s", walls, 0),
        row("second machine, full cache, 500 units: processor", "s", [each["cpu_s"] for each in others], 0),
        ratio("second machine, full cache, by the full build", walls, [each["wall_s"] for each in fulls], 0.10),
    ]


def run_bare(project: Path) -> float:
    """Seconds from the first job to the last of two processes which compile every other unit each, and do nothing else:
    they have imported the compilers before, and how they end is none of it, as it is none of a build's."""
    command = [sys.executable, str(Path(__file__).resolve()), str(project.resolve())]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as other:
        running = [
            # Triton reads text from a file beside it
            subprocess.Popen([*command, str(number)], cwd=place, env=scale.environment(), **pipes)
            for number, place in enumerate((first, other))
        ]
        for each in running:
            assert each.stdout.readline() == "ready\n"
        begun = time.perf_counter()
        for each in running:  # both at once
            each.stdin.write("go\n")
            each.stdin.flush()
        for each in running:
            assert each.stdout.readline() == "done\n"
        taken = time.perf_counter() - begun
        for each in running:
            assert each.wait() == 0
        return taken


def compile_bare(project: Path, number: int) -> None:
    """Compiles every other unit from `number` on, when told to."""
    os.environ["TRITON_DEFAULT_FP_FUSION"] = "1"  # as workers have it
    from precast.engines.registry import Engines, engine_name
    from precast.plan import make_job, plan_project
    from precast.project import read_project
    from precast.worker.walk import run_job

    found = read_project(project)
    jobs = [make_job(each.given, found) for each in plan_project(found).units[number::2]]
    engine = Engines().open(engine_name(jobs[0]))
    print("ready", flush=True)
    sys.stdin.readline()
    for job in jobs:
        run_job(job, engine, lambda step: None)
    print("done", flush=True)


def clusters(folder: Path) -> list[Row]:
    """Two local workers and two of Dask's, in turn, on units that take 0.3 s each."""
    sys.path.insert(0, str(scale.ROOT / "tests" / "cluster"))
    from clusters import DaskCluster

    project = folder / "project"
    (project / "kernels").mkdir(parents=True)
    more = '[tool.precast.triton]\nPRECAST_ENGINE = "stand-in"'
    (project / "pyproject.toml").write_text(scale.SETTINGS.format(targets=json.dumps(scale.TARGETS[:1]), more=more))
    for number in range(SLEEPY):
        scale.add_kernel(project, f"k{number}", number, scale.TARGETS[:1], scale.DTYPES[:1], scale.BLOCKS[:1])
    cluster = DaskCluster(folder)
    try:
        cluster.add_worker(jobs=2)
        taken: dict[str, list[float]] = {"local": [], "dask": []}
        for number in range(CLUSTER_ROUNDS + 1):
            for name in sorted(taken, reverse=bool(number % 2)):
                for each in range(SLEEPY):  # which is of another text each time
                    source = scale.KERNEL.format(name=f"k{each}", number=f"{number}.{len(name)}")
                    (project / "kernels" / f"k{each}.py").write_text(f"{source}# stand-in: sleep {SLEEP_S}\n")
                built = scale.build(project, *(["--executor", cluster.url] if name == "dask" else []))
                assert len(built["units"]) == SLEEPY
                if number:  # the first of each compiles the C library
                    taken[name].append(built["span_s"])
    finally:
        cluster.stop()
    return [ratio("two Dask workers by two local ones, units of 0.3 s", taken["dask"], taken["local"], 1.15)]


PARTS: Mapping[str, Callable[[Path], list[Row]]] = {
    "stale": one_stale,
    "null-60000": null_of_60000,
    "plan": plans,
    "full": full,
    "second": second,
    "cluster": clusters,
    "stale-real": one_stale_real,
    "stale-60000": one_stale_of_60000,
}
LONG = ("stale-real", "stale-60000")  # measured where they are asked for by name


if __name__ == "__main__":
    compile_bare(Path(sys.argv[1]), int(sys.argv[2]))
