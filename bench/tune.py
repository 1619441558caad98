"""What tuning gains: `python bench/tune.py CANDIDATES [--out FILE] [--evidence DIR] [--against DIR]`.

CANDIDATES is a candidates release of bench/tune_kernels with this project's own kernels, which
`python bench/tune.py --make FOLDER` builds as FOLDER/candidates: a folder that may be copied to the device's machine.
There it needs the driver, Python and NumPy. Every kernel is tuned; what ships is chosen as a build chooses it; then
what the table names for each problem, the author's config and the best ones are timed anew, so that no figure is of the
times that the choice was made by. Sizes left out: the table is made without each problem in turn, and its choice for it
is looked up in the tuning's times. `--evidence` keeps the evidence files; `--against` times the choices of another
tuning, by its evidence files, beside this one's. FILE is written after each kernel, and a run that finds it measures
the kernels that it lacks. `python bench/tune.py --join FIRST SECOND --out FILE` makes one of two runs' files: all of
the first, and how the second one's choices compare with the first one's.
"""

from __future__ import annotations

import argparse
import fnmatch
import importlib
import json
import math
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
NAME = "tunes"
MOST_SHIPPED = 8
TIMED_AGAIN = 6  # of the best configs of each problem
ROUNDS = 15
TWO_TUNINGS = "choices of two tunings, one / other"


@dataclass(frozen=True)
class Figure:
    """One line of the table: what it is, and at most what it should be."""

    what: str
    kernel: str  # "" for all of them
    value: float
    bound: float = 0.0  # 0: none
    count: int = 0  # problems

    @property
    def holds(self) -> bool:
        return not self.bound or self.value <= self.bound


class Bench:
    """The candidates' package with its parts."""

    def __init__(self, candidates: Path) -> None:
        sys.path.insert(0, str(candidates.resolve() / "python"))
        self.package = importlib.import_module(NAME)
        self.table = json.loads((candidates / "python" / NAME / "tuning.json").read_text())
        parts = ("buckets", "choosing", "devices", "evidence", "measuring", "running")
        self.buckets, self.choosing, self.devices, self.evidence, self.measuring, self.running = (
            importlib.import_module(f"{NAME}._tune_{part}") for part in parts
        )
        self.device = self.devices.open_device("cuda")

    def list_kernels(self, pattern: str) -> list[str]:
        """Those with the most problems first."""
        sizes = {
            name: max(len(target["problems"]) for target in about["targets"].values())
            for name, about in self.table["kernels"].items()
        }
        return sorted(fnmatch.filter(sizes, pattern), key=lambda name: (-sizes[name], name))

    def tune(self, folder: Path, kernel: str) -> Path:
        """Evidence of a kernel; as it is where a run before this one finished it."""
        path = folder / self.evidence.evidence_name(kernel, self.device.name)
        if path.exists():
            return path
        method = self.measuring.Method()
        tell = partial(print, file=sys.stderr, flush=True)
        self.running.tune_release(self.package, self.table, folder, method, kernel, tell, "cuda")
        return path

    def measured(self, evidence: Mapping[str, Any]) -> list[Any]:
        return [
            self.buckets.Measured(each["axes"], each["sizes"], tuple(each["times"])) for each in evidence["problems"]
        ]

    def choose(self, problems: Sequence[Any]) -> tuple[tuple[int, ...], tuple[Any, ...]]:
        """The configs that ship and the rows, as a build makes them."""
        chosen = self.choosing.choose_configs([each.times for each in problems], 0, (), MOST_SHIPPED)
        return chosen, self.buckets.make_rows(problems, chosen)

    def time_again(self, kernel: str, evidence: Mapping[str, Any], problem: Mapping[str, Any], numbers: Iterable[int],
                   ) -> dict[int, float]:  # fmt: skip
        """Microseconds of some configs of a problem, measured anew."""
        stated = self.table["kernels"][kernel]["targets"][evidence["target"]]["problems"]
        full = next(each for each in stated if self.evidence.problem_key(each) == self.evidence.problem_key(problem))
        with self.measuring.placed(self.device, self.package.release.kernel(kernel), full) as case:
            timers = {
                number: self.device.make_timer(partial(case.launch, evidence["configs"][number]), 0.001, "warm")
                for number in numbers
            }
            times = self.measuring.time_in_rounds(timers, ROUNDS)
            for timer in timers.values():
                timer.close()
        return {number: seconds * 1e6 for number, seconds in times.items()}


def make_candidates(folder: Path, jobs: int) -> Path:
    """Builds the candidates release in a folder that gets the project's kernels too, for a project has its sources."""
    shutil.copytree(HERE / "tune_kernels", folder, dirs_exist_ok=True)
    for path in (HERE.parent / "kernels").glob("*.py"):
        shutil.copy(path, folder / "kernels")
    command = [sys.executable, "-m", "precast", "build", "--candidates", "--project", str(folder)]
    subprocess.run([*command, *([f"-j{jobs}"] if jobs else [])], check=True)
    current = (folder / "generated" / NAME / "candidates" / "current").resolve()
    shutil.rmtree(folder / "candidates", ignore_errors=True)
    shutil.copytree(current, folder / "candidates")
    return folder / "candidates"


def look_up(rows: Sequence[Any], problem: Any) -> int:
    """The config of the first row that holds."""
    relations = {"==": int.__eq__, ">=": int.__ge__, "<": int.__lt__}

    def holds(row: Any) -> bool:
        return all(problem.axes.get(name) == value for name, value in row.axes) and all(
            relations[relation](math.prod(problem.sizes[name] for name in expression.split(" * ")), bound)
            for expression, relation, bound in row.conditions
        )

    return int(next(row.config for row in rows if holds(row)))


def measure_kernel(bench: Bench, path: Path, against: Mapping[str, Any] | None) -> dict[str, Any]:
    """All that is known of one kernel: each problem's times, and what was chosen for it."""
    evidence = json.loads(path.read_text())
    problems = bench.measured(evidence)
    chosen, rows = bench.choose(problems)
    other_rows = _rows_of_other(bench, evidence, against) if against else ()
    cells = []
    for each, stated in zip(problems, evidence["problems"], strict=True):
        order = sorted((time, number) for number, time in enumerate(each.times) if time is not None)
        taken, other = look_up(rows, each), look_up(other_rows, each) if other_rows else None
        wanted = {0, taken, *(number for _, number in order[:TIMED_AGAIN]), *([] if other is None else [other])}
        numbers = sorted(number for number in wanted if each.times[number] is not None)
        again = bench.time_again(evidence["kernel"], evidence, stated, numbers)
        rest = [one for one in problems if one is not each]
        unseen = look_up(bench.choose(rest)[1], each)
        lost = each.times[unseen]
        cells.append({
            "axes": each.axes, "sizes": each.sizes, "chosen": taken, "other": other, "times": again,
            "unseen": None if lost is None else lost / order[0][0],
        })  # fmt: skip
    return {"kernel": evidence["kernel"], "device": evidence["device"], "driver": evidence["driver"],
            "method": evidence["method"], "configs": evidence["configs"], "ships": chosen, "rows": len(rows),
            "problems": cells}  # fmt: skip


def _rows_of_other(bench: Bench, evidence: Mapping[str, Any], against: Mapping[str, Any]) -> tuple[Any, ...]:
    if against["configs"] != evidence["configs"]:
        raise SystemExit("the other tuning is of other configs")
    return bench.choose(bench.measured(against))[1]


def mean_of(values: Sequence[float]) -> float:
    return math.exp(statistics.fmean(map(math.log, values)))


def summarize(kernels: Sequence[Mapping[str, Any]]) -> list[Figure]:
    """The figures of each kernel and of all of them; a kernel counts once, however many sizes it has."""
    figures: list[Figure] = []
    gains, losses, worst, unseen = [], [], [], []
    for kernel in kernels:
        cells, name = kernel["problems"], kernel["kernel"]
        gain = [each["times"][each["chosen"]] / each["times"][0] for each in cells if 0 in each["times"]]
        loss = [each["times"][each["chosen"]] / min(each["times"].values()) for each in cells]
        left = [each["unseen"] for each in cells if each["unseen"]]
        figures += [
            Figure("tuned release / author's config", name, mean_of(gain), count=len(gain)),
            Figure("tuned choice / best per size, mean", name, mean_of(loss), count=len(loss)),
            Figure("tuned choice / best per size, worst", name, max(loss), count=len(loss)),
            Figure("sizes left out of tuning / best, mean", name, mean_of(left), count=len(left)),
            Figure("sizes left out of tuning / best, worst", name, max(left), count=len(left)),
        ]
        other = [
            each["times"][each["other"]] / each["times"][each["chosen"]] for each in cells if each["other"] is not None
        ]
        if other:
            value = max(mean_of(other), 1 / mean_of(other))
            figures.append(Figure(TWO_TUNINGS, name, value, 1.02, len(other)))
        gains.append(mean_of(gain)), losses.append(mean_of(loss)), worst.append(max(loss)), unseen.append(mean_of(left))
    count = sum(len(kernel["problems"]) for kernel in kernels)
    return [
        Figure("tuned release / author's config", "", mean_of(gains), 0.87, count),
        Figure("tuned choice / best per size, mean", "", mean_of(losses), 1.05, count),
        Figure("tuned choice / best per size, worst", "", max(worst), 1.25, count),
        Figure("sizes left out of tuning / best, mean", "", mean_of(unseen), 1.10, count),
        *figures,
    ]


def number_configs(found: dict[str, Any]) -> dict[Any, Any]:
    """Times by config as they were before they were written."""
    return {int(name): each for name, each in found.items()} if found and all(map(str.isdigit, found)) else found


class Report:
    """What is known so far, in a file that is whole at any time."""

    def __init__(self, path: Path | None, device: Any) -> None:
        self._path = path
        self._data: dict[str, Any] = {
            "machine": {"device": device.name, "driver": device.driver, "python": sys.version.split()[0]},
            "date": time.strftime("%Y-%m-%d", time.gmtime()),
            "seconds": 0.0,
            "figures": [],
            "kernels": [],
        }
        if path and path.exists():
            found = json.loads(path.read_text(), object_hook=number_configs)
            if found["machine"] == self._data["machine"]:
                self._data = found

    def names(self) -> set[str]:
        return {each["kernel"] for each in self._data["kernels"]}

    def add(self, kernel: Mapping[str, Any], seconds: float) -> list[Figure]:
        """Notes what was measured of a kernel; the figures of all of them."""
        self._data["kernels"].append(kernel)
        self._data["seconds"] = round(self._data["seconds"] + seconds, 1)
        figures = summarize(self._data["kernels"])
        self._data["figures"] = [{**asdict(figure), "holds": figure.holds} for figure in figures]
        if self._path:
            draft = self._path.with_suffix(".draft")
            draft.write_text(json.dumps(self._data, indent=1) + "\n")
            draft.replace(self._path)
        return figures


def join_runs(first: Path, second: Path) -> dict[str, Any]:
    """The first run's results, with the figures that compare the second one's choices with them."""
    result, other = json.loads(first.read_text()), json.loads(second.read_text())
    compared = [each for each in other["figures"] if each["what"] == TWO_TUNINGS]
    if not compared:
        raise SystemExit(f"{second} was not measured --against the evidence of {first}")
    result["figures"] += compared
    result["second"] = {"machine": other["machine"], "date": other["date"], "seconds": other["seconds"]}
    return dict(result)


def print_figures(figures: Iterable[Mapping[str, Any]]) -> None:
    for each in figures:
        mark = "    " if not each["bound"] else "ok  " if each["holds"] else "OVER"
        bound = f" of at most {each['bound']}" if each["bound"] else ""
        whose = each["kernel"] or "all kernels"
        print(f"{mark} {whose}: {each['what']}: {each['value']:.3f}{bound} ({each['count']} problems)", flush=True)


def run_bench(arguments: argparse.Namespace) -> None:
    bench = Bench(arguments.candidates)
    report = Report(arguments.out, bench.device)
    with tempfile.TemporaryDirectory() as scratch:
        for name in bench.list_kernels(arguments.kernel):
            if name in report.names():
                continue
            start = time.monotonic()
            path = bench.tune(arguments.evidence or Path(scratch), name)
            other = arguments.against / path.name if arguments.against else None
            against = json.loads(other.read_text()) if other and other.exists() else None
            kernel = measure_kernel(bench, path, against)
            figures = report.add(kernel, time.monotonic() - start)
            print_figures({**asdict(each), "holds": each.holds} for each in figures if each.kernel in ("", name))


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("candidates", type=Path, nargs="?")
    parser.add_argument("--make", type=Path, metavar="FOLDER", help="build the candidates there, and measure nothing")
    parser.add_argument("-j", "--jobs", type=int, default=0, help="units at once, with --make")
    parser.add_argument("--join", type=Path, nargs=2, metavar="FILE", help="two runs' files that become one")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--evidence", type=Path, help="folder that gets the evidence files")
    parser.add_argument("--against", type=Path, help="folder with evidence files of another tuning")
    parser.add_argument("--kernel", default="*", metavar="GLOB")
    arguments = parser.parse_args()
    if arguments.make:
        print(make_candidates(arguments.make, arguments.jobs))
    elif arguments.join:
        result = join_runs(*arguments.join)
        print_figures(result["figures"])
        if arguments.out:
            arguments.out.write_text(json.dumps(result, indent=1) + "\n")
    elif arguments.candidates:
        run_bench(arguments)
    else:
        parser.error("name the candidates release, or --make it")
    return 0


if __name__ == "__main__":
    sys.exit(main())
