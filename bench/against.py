"""This Precast against another one, side by side: null builds, and units a second. Prints one JSON object.

`python bench/against.py OTHER_PYTHON --rounds 30`, with the interpreter of an environment that has the other Precast.
Null builds are of the repository's kernels for two GPU targets with the stand-in engine, which compiles nothing, so
that what is timed is ours alone; units a second are of a few kernels that Triton compiles. Rounds are interleaved,
every other one in reverse; a ratio is this one's time by the other's, its median over the rounds with the 95 %
interval of order statistics. Wall time and processor time are told, and each round's ratio: two runs can be joined.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SETTINGS = """
[tool.precast]
name = "bench"
targets = ["cuda:90", "hip:gfx942"]

"""
STAND_IN = """
[tool.precast.triton]
PRECAST_ENGINE = "stand-in"
"""
COMPILED = ("softmax", "rms_norm", "swiglu", "rotary")


def make_project(folder: Path, compiled: bool) -> Path:
    """The project of null builds, or that of units that are `compiled`."""
    shutil.copytree(ROOT / "kernels", folder / "kernels", ignore=shutil.ignore_patterns("__pycache__"))
    for path in (folder / "kernels").glob("*.toml"):
        text = path.read_text(encoding="utf-8")
        # The stand-in knows nothing of descriptors, and an older Precast nothing of newer words.
        if path.stem not in COMPILED if compiled else "tensordesc" in text or "requires" in text:
            path.unlink()
    (folder / "pyproject.toml").write_text(SETTINGS + ("" if compiled else STAND_IN), encoding="utf-8")
    return folder


def build(python: str, folder: Path) -> tuple[float, float]:
    """Wall and processor seconds of one `precast build`."""
    before, begun = os.times(), time.perf_counter()
    command = [python, "-m", "precast", "build", "-j2", "--project", str(folder)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=folder)
    wall, after = time.perf_counter() - begun, os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    return wall, spent


def rebuild(python: str, folder: Path) -> tuple[float, float]:
    """A build of every unit anew: its store and units are gone, what was compiled of C stays."""
    for name in ("store", "units"):
        shutil.rmtree(folder / "build" / name)
    return build(python, folder)


def interval(ratios: list[float]) -> dict[str, float]:
    ordered = sorted(ratios)
    reach = math.ceil(0.98 * math.sqrt(len(ordered)))
    low, high = max(len(ordered) // 2 - reach, 0), min((len(ordered) - 1) // 2 + reach, len(ordered) - 1)
    return {
        "median": round(statistics.median(ordered), 3),
        "low": round(ordered[low], 3),
        "high": round(ordered[high], 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", help="interpreter of an environment with the other Precast")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--full-rounds", type=int, default=30)
    arguments = parser.parse_args()
    pythons = {"ours": sys.executable, "other": arguments.other}
    result: dict[str, object] = {"machine": platform.processor() or platform.machine(), "rounds": arguments.rounds}
    with tempfile.TemporaryDirectory() as scratch:
        for what, action, rounds in (("null", build, arguments.rounds), ("full", rebuild, arguments.full_rounds)):
            folders = {name: make_project(Path(scratch, what, name), what == "full") for name in pythons}
            for name, python in pythons.items():
                build(python, folders[name])
            ratios: dict[str, list[float]] = {"wall": [], "cpu": []}
            for number in range(rounds):
                order = list(pythons) if number % 2 == 0 else list(pythons)[::-1]
                taken = {name: action(pythons[name], folders[name]) for name in order}
                for index, kind in enumerate(ratios):
                    ratios[kind].append(round(taken["ours"][index] / taken["other"][index], 4))
            told = {kind: {**interval(each), "ratios": each} for kind, each in ratios.items()} if rounds else {}
            result[what] = told
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
