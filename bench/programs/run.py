"""Public programs of kernels that nobody here wrote, from the JIT to a release. Needs PyTorch, a GPU and the packages.

    python bench/programs/run.py record FOLDER     writes FOLDER/kernels/PROGRAM.toml: what each program launched
    precast build --project FOLDER                 where Triton 3.9 is; the packages at the same place beside FOLDER
    python bench/programs/run.py measure FOLDER/generated/programs/current [--out FILE]

`measure` runs each program under the JIT, with a warm cache, and served from the release, in processes that are forked
before CUDA is there. It compares what they computed to the last bit, counts compilations, and times first steps
(fresh processes in turn) and later steps (both ways in turn in one process); 95 % intervals of the mean ratio.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import json
import math
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PROGRAMS = {"liger": "liger-kernel", "conch_inference": "conch-triton-kernels", "fla_recurrent": "fla-core"}
# Rounds of first steps: under the JIT the last one tunes itself anew in each process.
FIRST_STEPS = {"liger": 30, "conch_inference": 10, "fla_recurrent": 3}
ROUNDS = 30
SETTINGS = '[tool.precast]\nname = "programs"\ntargets = ["cuda:90"]\n'


def record(folder: Path) -> None:
    (folder / "kernels").mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text(SETTINGS, encoding="utf-8")
    for name in PROGRAMS:
        command = [sys.executable, "-m", "precast", "record", "-o", f"kernels/{name}.toml", "--", sys.executable,
                   str(HERE / f"{name}.py"), "--steps", "2"]  # fmt: skip
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        print(f"{name}: exit {done.returncode}\n{done.stdout[-1500:]}\n{done.stderr[-1500:]}")


def in_fork(work: Callable[[], Any]) -> Any:
    """What `work` gives in a process of its own; a failure is told by its words."""
    reading, writing = os.pipe()
    if not os.fork():
        try:
            told = json.dumps(work())
        except BaseException as error:
            told = json.dumps({"failed": f"{type(error).__name__}: {error}"[:2000]})
        os.write(writing, told.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        result = json.loads(stream.read() or b'{"failed": "it died"}')
    os.wait()
    return result


def run_one(name: str, release: str, count: int) -> dict[str, Any]:
    import torch
    from measured import open_release, run_steps

    program = importlib.import_module(name)
    if release:
        with open_release(release):
            return run_steps(program.make_step, torch.device("cuda"), count)
    return run_steps(program.make_step, torch.device("cuda"), count)


def run_both(name: str, release: str, rounds: int) -> dict[str, Any]:
    """Steps under the JIT and served, in turn in one process: seconds of each."""
    import time

    import torch
    from measured import open_release, wait

    device = torch.device("cuda")
    torch.manual_seed(0)
    step, server = importlib.import_module(name).make_step(device), open_release(release)
    server.stop()

    def timed(served: bool) -> float:
        taken = []
        if served:
            server.start()
        for _ in range(8):
            wait(device)
            begun = time.perf_counter()
            step()
            wait(device)
            taken.append(time.perf_counter() - begun)
        if served:
            server.stop()
        return statistics.median(taken)

    timed(False), timed(True)
    pairs = [[timed(served) for served in ((True, False) if number % 2 else (False, True))] for number in range(rounds)]
    return {"jit": [pair[number % 2] for number, pair in enumerate(pairs)],
            "served": [pair[1 - number % 2] for number, pair in enumerate(pairs)]}  # fmt: skip


def ratio(ours: list[float], theirs: list[float]) -> dict[str, float]:
    values = [a / b for a, b in zip(ours, theirs, strict=True)]
    half = 2.05 * statistics.stdev(values) / math.sqrt(len(values))
    mean = statistics.fmean(values)
    return {"mean": round(mean, 4), "low": round(mean - half, 4), "high": round(mean + half, 4),
            "served_s": round(statistics.median(ours), 5), "jit_s": round(statistics.median(theirs), 5)}  # fmt: skip


def measure_program(name: str, release: str, rounds: int) -> dict[str, Any]:
    jit, served = (in_fork(lambda each=each: run_one(name, each, 4)) for each in ("", release))
    result: dict[str, Any] = {"package": f"{PROGRAMS[name]} {importlib.metadata.version(PROGRAMS[name])}"}
    for each in (jit, served):
        if "failed" in each:
            return result | {"failed": each["failed"]}
    result |= {"equal": jit["results"] == served["results"], "compiled_under_jit": jit["compiled"],
               "compiled_served": served["compiled"]}  # fmt: skip
    first: dict[str, list[float]] = {"": [], release: []}
    for number in range(min(rounds, FIRST_STEPS[name])):
        for each in ("", release) if number % 2 else (release, ""):
            first[each].append(in_fork(lambda each=each: run_one(name, each, 1))["seconds"][0])
    result["first_step"] = ratio(first[release], first[""])
    print(json.dumps(result), flush=True)
    both = in_fork(lambda: run_both(name, release, rounds))
    result["step"] = ratio(both["served"], both["jit"]) if "jit" in both else both
    return result


def measure(release: Path, rounds: int, out: Path | None) -> None:
    import torch
    import triton

    result: dict[str, Any] = {"torch": torch.__version__, "triton": triton.__version__, "rounds": rounds}
    result["programs"] = {}
    for name in PROGRAMS:
        result["programs"][name] = measure_program(name, str(release.resolve()), rounds)
        print(json.dumps(result["programs"][name]), flush=True)
        if out:
            out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    if out:
        result["device"] = in_fork(lambda: torch.cuda.get_device_name())
        out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["record", "measure"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    sys.path.insert(0, str(HERE))
    if arguments.what == "record":
        record(arguments.folder)
    else:
        measure(arguments.folder, arguments.rounds, arguments.out)


if __name__ == "__main__":
    main()
