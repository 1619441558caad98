"""Public programs of kernels that nobody here wrote, from the JIT to a release. Needs PyTorch, a GPU and the packages.

    python bench/programs/run.py record FOLDER     writes FOLDER/kernels/PROGRAM.toml: what each program launched
    precast build --project FOLDER                 where Triton 3.9 is; the packages at the same place beside FOLDER
    python bench/programs/run.py measure FOLDER/generated/programs/current [--out FILE]

`measure` runs each program under the JIT, with a warm cache, and served from the release. It compares what they
computed to the last bit, counts compilations, and times first steps (fresh processes in turn) and later steps (both
ways in turn in one process); 95 % intervals of the mean ratio. `--recorded NAME=FILE` gives what a program printed when
it was recorded, and spares its run under the JIT.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import json
import math
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PROGRAMS = {"liger": "liger-kernel", "conch_inference": "conch-triton-kernels", "fla_recurrent": "fla-core"}
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


def run_one(name: str, release: str, count: int) -> dict[str, Any]:
    """What a program printed, in a fresh process."""
    served = ["--release", release] if release else []
    return run_python(str(HERE / f"{name}.py"), "--steps", str(count), *served)


def run_python(*arguments: str) -> dict[str, Any]:
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=400)
    if done.returncode:
        return {"failed": done.stderr[-2000:]}
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


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


def measure_program(name: str, release: str, recorded: dict[str, Any], rounds: int, fresh: int) -> dict[str, Any]:
    result: dict[str, Any] = {"package": f"{PROGRAMS[name]} {importlib.metadata.version(PROGRAMS[name])}"}
    jit = recorded or run_one(name, "", 2)
    served = run_one(name, release, 2)
    for each in (jit, served):
        if "failed" in each:
            return result | {"failed": each["failed"]}
    result |= {"equal": jit["results"] == served["results"], "compiled_under_jit": jit["compiled"],
               "compiled_served": served["compiled"], "cold_first_step_s": round(jit["seconds"][0], 3),
               "served_first_step_s": round(served["seconds"][0], 3)}  # fmt: skip
    if recorded:  # under the JIT every process would tune itself anew
        return result
    both = run_python(str(HERE / "run.py"), "both", release, "--program", name, "--rounds", str(rounds))
    result["step"] = ratio(both["served"], both["jit"]) if "jit" in both else both
    first: dict[str, list[float]] = {"": [], release: []}
    for number in range(fresh):
        for each in ("", release) if number % 2 else (release, ""):
            first[each].append(run_one(name, each, 1)["seconds"][0])
    return result | ({"first_step": ratio(first[release], first[""])} if fresh > 1 else {})


def measure(arguments: argparse.Namespace) -> None:
    import torch
    import triton

    recorded = dict(each.split("=", 1) for each in arguments.recorded)
    result: dict[str, Any] = {"torch": torch.__version__, "triton": triton.__version__, "rounds": arguments.rounds}
    result |= {"device": torch.cuda.get_device_name(), "programs": {}}
    for name in PROGRAMS:
        told = json.loads(Path(recorded[name]).read_text(encoding="utf-8")) if name in recorded else {}
        fresh = arguments.fresh if name == "liger" else 0
        found = measure_program(name, str(arguments.folder.resolve()), told, arguments.rounds, fresh)
        result["programs"][name] = found
        print(json.dumps(found), flush=True)
        if arguments.out:
            arguments.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["record", "measure", "both"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--fresh", type=int, default=ROUNDS, help="rounds of first steps in fresh processes")
    parser.add_argument("--recorded", action="append", default=[], metavar="NAME=FILE")
    parser.add_argument("--program")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    sys.path.insert(0, str(HERE))
    if arguments.what == "record":
        record(arguments.folder)
    elif arguments.what == "both":
        print(json.dumps(run_both(arguments.program, str(arguments.folder), arguments.rounds)))
    else:
        measure(arguments)


if __name__ == "__main__":
    main()
