"""What the way through the upstream MLIR bindings costs: units compiled with and without passes that change nothing.

In: the kernels of this repository. Out: `bench/results/passes.json` and a table; exit code 1 when the cost at the
median is not below the bound. Pairs are interleaved, in one warm process, without the store; each pair is the processor
time of one unit from its source to its image, without and with a Python pass at the end of a stage; the interval is a
bootstrap over pairs.

    python bench/passes.py [--pairs 5] [--target cuda:90]
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.metadata
import json
import os
import platform
import random
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from precast.engines.triton.environment import worker_environment
from precast.job import Job
from precast.passes.anchors import end
from precast.passes.digest import digest_files
from precast.passes.selection import PassUse
from precast.plan import plan_project
from precast.project import read_project
from precast.spec.model import CompileSettings
from precast.store import digest_bytes
from precast.worker.walk import plan_stage

ROOT = Path(__file__).parents[1]
IDENTITY = "tests/fixtures/passes/identity.py"
BOUND = 0.10  # of a unit's compile time, at the median
RESAMPLES = 2000


def plan_jobs(target: str) -> list[Job]:
    """The first unit of each kernel that has the stage ttir, for one target."""
    plan = plan_project(read_project(ROOT), targets=(target,))
    first = {each.unit.kernel: each.unit for each in reversed(plan.units) if "ttir" in each.unit.stages}
    return [plan.job(unit) for unit in first.values()]


def with_identity(job: Job, stages: Sequence[str]) -> Job:
    digest = digest_files(ROOT, (IDENTITY,))
    uses = [PassUse(f"identity-{stage}", "python", stage, end(), (), IDENTITY, digest, (IDENTITY,)) for stage in stages]
    return dataclasses.replace(job, passes=tuple(uses))


def spent() -> float:
    """Seconds of processor time of this process and its children: what else the machine does is not in it."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def compile_unit(engine: object, job: Job) -> float:
    """Processor seconds from a unit's source to its image."""
    from precast.engines.triton.compile import TritonEngine

    assert isinstance(engine, TritonEngine)
    begin = spent()
    project, output = Path(job.project), engine.read_source(job).output
    for stage in job.unit.stages:
        inputs = plan_stage(job, stage, output.carry, digest_bytes(output.data))
        output = engine.run_stage(inputs, output.data, project, lambda *_: None)
    return spent() - begin


def measure(engine: object, jobs: Sequence[Job], stages: Sequence[str], pairs: int) -> list[float]:
    """The cost of each pair, as a part of the plain compile time. Which of a pair comes first alternates."""
    costs = []
    for number in range(pairs):
        for job in jobs:
            variants = [job, with_identity(job, stages)]
            order = (0, 1) if number % 2 == 0 else (1, 0)
            seconds = {which: compile_unit(engine, variants[which]) for which in order}
            costs.append(seconds[1] / seconds[0] - 1)
    return costs


def summarise(costs: Sequence[float]) -> dict[str, float | int]:
    """Median with its 95 % interval."""
    source = random.Random(0)
    medians = sorted(statistics.median(source.choices(costs, k=len(costs))) for _ in range(RESAMPLES))
    low, high = medians[int(RESAMPLES * 0.025)], medians[int(RESAMPLES * 0.975)]
    return {"pairs": len(costs), "median": statistics.median(costs), "low": low, "high": high}


def main() -> int:
    parser = argparse.ArgumentParser(description="cost of Python passes in a compilation")
    parser.add_argument("--pairs", type=int, default=5, help="for each kernel")
    parser.add_argument("--target", default="cuda:90")
    arguments = parser.parse_args()
    jobs = plan_jobs(arguments.target)
    with tempfile.TemporaryDirectory() as scratch:
        os.environ.update(worker_environment(CompileSettings(), os.environ, scratch))
        os.chdir(scratch)
        from precast.engines.triton.compile import TritonEngine

        engine = TritonEngine()
        measure(engine, jobs[:2], ("ttir", "ttgir"), 1)  # imports and caches
        found = {
            name: summarise(measure(engine, jobs, stages, arguments.pairs))
            for name, stages in {"end of ttir": ("ttir",), "end of ttgir": ("ttgir",)}.items()
        }
        os.chdir(ROOT)
    report = {
        "what": "processor time of one Python pass, as a part of a unit's whole compilation",
        "target": arguments.target,
        "kernels": len(jobs),
        "bound": BOUND,
        "results": found,
        "triton": importlib.metadata.version("triton"),
        "mlir bindings": importlib.metadata.version("xtc-mlir-python-bindings"),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
    }
    (ROOT / "bench/results").mkdir(exist_ok=True)
    (ROOT / "bench/results/passes.json").write_text(json.dumps(report, indent=1) + "\n")
    for name, result in found.items():
        print(
            f"{name:14} {result['median']:7.1%}  [{result['low']:.1%}, {result['high']:.1%}]  {result['pairs']} pairs"
        )
    return int(any(result["high"] > BOUND for result in found.values()))


if __name__ == "__main__":
    sys.exit(main())
