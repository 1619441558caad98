"""How many of Triton's own language tests pass on the CPU back end. In: a tree of Triton's sources. Out: a table.

The tests lie in the tree and are run with the installed Triton 3.9, in processes of their own: a test that ends its
process, or takes too long, counts as crashed, and the others go on. With `--every 10` each tenth test of a file is run.
With `--minutes 5` the tests of a file are run in an order that chance made once and for all, and after so long those
that are left are not run: what was run is a fair sample. `--part 3271:8244` takes these of that order, and
`--processes 8` shares a file's tests out to so many processes at once. The table names the tree's commit; `--failures`
lists each test that fails with what it said first. `--output` writes all of it, as JSON.
"""

from __future__ import annotations

import argparse
import collections
import importlib.util
import json
import math
import os
import platform
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

TESTS = Path("python/test/unit/language")
FILES = ("core", "standard", "conversions", "annotations", "random", "tuple", "tensor_descriptor", "frontend",
         "libdevice", "subprocess")  # fmt: skip
NOT_RUN = (2, 3, 4)  # pytest's codes for trouble of its own, such as a file that does not import
REASONS = (
    (r"'ttgir'|\"ttgir\"", "it reads the text of a GPU's stage"),
    (r"CUDA enabled|No CUDA GPUs|NVIDIA driver|pin_memory|test_zero_strided_tensors", "it asks PyTorch for a GPU"),
    (r"test_print\[device_print_2d", "it takes a warp for more than 9 threads"),
    (
        r"test_atomic_poll_rejects|test_named_expr_without|too many indices for tensor of rank 0",
        "the installed front end is not the tree's",
    ),
    (
        r"test_scaled_dot.*not close",
        "a sum near zero of large terms: it is off by less than what f32 rounds of them",
    ),
    (r"test_pointer_arguments\[cpu\]", "it wants a tensor on a CPU to be refused"),
    (r"test_poison_return", "what is undefined is zero here, and no poison in LLVM's text"),
    (r"test_disable_licm", "LLVM's passes take no such hints here"),
)
OUTCOMES = ("passed", "failed", "crashed", "skipped", "not run")
LAST_TEST_S = 60  # that a test may go on for when the time is over
WHOLE = ":"


@dataclass(frozen=True)
class Choice:
    """Which of a file's tests are run, and until when (in seconds since 1970)."""

    every: int
    part: str  # of the order that chance made: `BEGIN:END`, as a slice has them
    keyword: str
    end: float

    def take(self, items: Sequence[Any], number: int, processes: int) -> list[Any]:
        """The tests of one of so many processes, in the order in which they are run."""
        chosen = list(items[:: self.every])
        if self.end < math.inf or self.part != WHOLE:
            random.Random(1).shuffle(chosen)
        begin, end = (int(each) if each else None for each in self.part.split(":"))
        return chosen[begin:end][number::processes]


class Recorder:
    """A pytest plugin: runs the tests that are left to run, and writes what becomes of each as it happens."""

    def __init__(self, record: Path, choice: Choice, number: int, processes: int) -> None:
        self._record, self._choice, self._share = record, choice, (number, processes)
        self._known = dict(read_record(record))

    def pytest_collection_modifyitems(self, items: list) -> None:
        chosen = self._choice.take(items, *self._share)
        for each in chosen:
            if each.nodeid not in self._known:
                self._write(each.nodeid, "not run", "")
        items[:] = [each for each in chosen if self._known.get(each.nodeid, ("not run", ""))[0] == "not run"]

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._write(nodeid, "crashed", "")

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        if time.time() > self._choice.end:
            raise pytest.exit("the time is over", returncode=0)

    def pytest_runtest_logreport(self, report) -> None:
        if report.when == "call" or report.outcome != "passed":
            lines = str(report.longrepr).strip().splitlines() if report.failed else [""]
            errors = [each[2:].strip() for each in lines if each.startswith("E ")]
            self._write(report.nodeid, "skipped" if report.skipped else report.outcome, (errors or lines)[0])

    def _write(self, test: str, outcome: str, said: str) -> None:
        with self._record.open("a") as file:
            file.write(json.dumps({"test": test, "outcome": outcome, "said": said}) + "\n")


def run_here(file: Path, recorder: Recorder, keyword: str) -> int:
    """Runs the tests of a file in this process."""
    top = str(file.parents[2])
    arguments = ["-q", "--device", "cpu", "-p", "no:cacheprovider", "--rootdir", top, "--confcutdir", top, str(file)]
    arguments += ["-k", keyword] if keyword else []
    plugins: list[object] = [recorder]
    options = file.parents[3] / "conftest.py"  # beside the tree's own Triton, which is not to be found by a test
    if options.exists():
        plugins.append(load_module(options))
    return int(pytest.main(arguments, plugins=plugins))


def load_module(file: Path) -> object:
    spec = importlib.util.spec_from_file_location("options_of_the_tree", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run_file(file: Path, choice: Choice, seconds: int, processes: int) -> dict[str, tuple[str, str]]:
    """Outcome and message of each test of a file, whose tests are shared out to `processes`."""
    with ThreadPoolExecutor(processes) as pool:
        shares = pool.map(lambda number: run_share(file, choice, seconds, f"{number}/{processes}"), range(processes))
        return {test: found for share in shares for test, found in share.items()}


def run_share(file: Path, choice: Choice, seconds: int, share: str) -> dict[str, tuple[str, str]]:
    """Outcome and message of each test of a share, one process after the other, as many as it takes."""
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_BACKENDS_IN_TREE"}
    environment["TRITON_DEFAULT_BACKEND"] = "cpu"
    chosen = ["--every", str(choice.every), "--part", choice.part, "--keyword", choice.keyword]
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "record"
        record.touch()
        command = [sys.executable, __file__, str(file), "--here", str(record), "--share", share, *chosen]
        command += ["--end", str(choice.end)]
        while True:
            before, left = record.stat().st_size, choice.end + LAST_TEST_S - time.time()
            try:
                ran = subprocess.run(
                    command, env=environment, capture_output=True, text=True, timeout=min(seconds, left)
                )
                ended = ran.returncode >= 0
                if ran.returncode in NOT_RUN:
                    return {file.name: ("failed", ran.stdout + ran.stderr)}
            except subprocess.TimeoutExpired:
                ended = False
            known = list(read_record(record))
            if time.time() > choice.end:
                ended = True
                if known and known[-1][1][0] == "crashed":  # it was still running
                    known.append((known[-1][0], ("not run", "")))
            if ended or record.stat().st_size == before:
                return dict(known)


def read_record(record: Path) -> Iterator[tuple[str, tuple[str, str]]]:
    """The last that is known of each test."""
    for line in record.read_text().splitlines():
        found = json.loads(line)
        yield found["test"], (found["outcome"], found["said"])


def describe_tree(tree: Path) -> dict[str, str]:
    """The tree's version of Triton, and its commit where it is a checkout."""
    asked = subprocess.run(["git", "-C", str(tree), "rev-parse", "HEAD"], capture_output=True, text=True)
    found = re.search(r"__version__ = '(.*?)'", (tree / "python/triton/__init__.py").read_text())
    return {"triton": found[1] if found else "unknown", "commit": asked.stdout.strip() or "unknown"}


def describe_machine() -> dict[str, Any]:
    """What the tests are run on and with."""
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    versions = {name: metadata.version(name) for name in ("triton", "torch", "numpy", "llvmlite")}
    processors = len(os.sched_getaffinity(0))
    return {"processor": model[1] if model else platform.machine(), "processors": processors, **versions}


def render_row(name: str, found: dict[str, tuple[str, str]]) -> str:
    """A file's line of the table."""
    count = count_outcomes(found)
    run = sum(count[each] for each in ("passed", "failed", "crashed"))
    share = f"{100 * count['passed'] / run:.1f} %" if run else "–"
    return f"| test_{name} | {' | '.join(str(count[each]) for each in OUTCOMES)} | {share} |"


def count_outcomes(found: dict[str, tuple[str, str]]) -> dict[str, int]:
    counter = collections.Counter(outcome for outcome, _ in found.values())
    return {each: counter[each] for each in OUTCOMES}


def list_failures(found: dict[str, tuple[str, str]]) -> list[dict[str, str]]:
    """Each test that did not pass, with what it said and, where that is known, why a CPU cannot."""
    failures = []
    for test, (outcome, said) in found.items():
        if outcome in ("failed", "crashed"):
            reason = next((why for pattern, why in REASONS if re.search(pattern, f"{test}: {said}")), "not known")
            failures.append({"test": test, "outcome": outcome, "said": said, "reason": reason})
    return failures


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("tree", type=Path)
    options.add_argument("--files", nargs="*", default=FILES)
    options.add_argument("--every", type=int, default=1)
    options.add_argument("--seconds", type=int, default=3600, help="for one process")
    options.add_argument("--minutes", type=float, default=math.inf, help="for one file")
    options.add_argument("--failures", action="store_true")
    options.add_argument("--keyword", default="", help="pytest's -k; the others are not run")
    options.add_argument("--output", type=Path)
    options.add_argument("--part", default=WHOLE, metavar="BEGIN:END", help="of the order that chance made")
    options.add_argument("--processes", type=int, default=1)
    options.add_argument("--here", type=Path, help=argparse.SUPPRESS)
    options.add_argument("--share", help=argparse.SUPPRESS)
    options.add_argument("--end", type=float, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.here:
        choice = Choice(given.every, given.part, given.keyword, given.end)
        number, processes = map(int, given.share.split("/"))
        sys.exit(run_here(given.tree, Recorder(given.here, choice, number, processes), given.keyword))
    tree = describe_tree(given.tree)
    print(f"Triton {tree['triton']}, commit {tree['commit']}; every {given.every}. test of a file\n")
    print(f"| file | {' | '.join(OUTCOMES)} | passed of run |\n|---|{'---|' * (len(OUTCOMES) + 1)}")
    files = {}
    for name in given.files:
        file = (given.tree / TESTS / f"test_{name}.py").resolve()
        choice = Choice(given.every, given.part, given.keyword, time.time() + 60 * given.minutes)
        files[name] = run_file(file, choice, given.seconds, given.processes)
        print(render_row(name, files[name]), flush=True)
    failures = [each for found in files.values() for each in list_failures(found)]
    if given.failures:
        print("", *(f"{each['test']}: {each['said']} ({each['reason']})" for each in failures), sep="\n")
    if given.output:
        counts = {f"test_{name}": count_outcomes(found) for name, found in files.items()}
        report = {
            "machine": describe_machine(),
            "tree": tree,
            "every": given.every,
            "minutes of a file": str(given.minutes),
            "part": given.part,
        }
        given.output.write_text(json.dumps({**report, "files": counts, "failures": failures}, indent=1) + "\n")


if __name__ == "__main__":
    main()
