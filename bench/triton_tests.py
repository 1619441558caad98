"""How many of Triton's own language tests pass on the CPU back end. In: a tree of Triton's sources. Out: a table.

The tests lie in the tree and are run with the installed Triton 3.9, in processes of their own: a test that ends its
process, or takes too long, counts as crashed, and the others go on. With `--every 10` each tenth test of a file is run.
The table names the tree's commit; `--failures` lists each test that fails with the last line of what it said.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

TESTS = Path("python/test/unit/language")
FILES = ("core", "standard", "conversions", "annotations", "random", "tuple", "tensor_descriptor", "frontend",
         "libdevice", "subprocess")  # fmt: skip
NOT_RUN = (2, 3, 4)  # pytest's codes for trouble of its own, such as a file that does not import
OUTCOMES = ("passed", "failed", "crashed", "skipped")


class Recorder:
    """A pytest plugin: runs the tests that are left to run, and writes what becomes of each as it happens."""

    def __init__(self, record: Path, every: int) -> None:
        self._record, self._every = record, every
        self._done = {json.loads(line)["test"] for line in record.read_text().splitlines()}

    def pytest_collection_modifyitems(self, items: list) -> None:
        items[:] = [each for each in items[:: self._every] if each.nodeid not in self._done]

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._write(nodeid, "crashed", "")

    def pytest_runtest_logreport(self, report) -> None:
        if report.when == "call" or report.outcome != "passed":
            lines = str(report.longrepr).strip().splitlines() if report.failed else [""]
            errors = [each[2:].strip() for each in lines if each.startswith("E ")]
            self._write(report.nodeid, "skipped" if report.skipped else report.outcome, (errors or lines)[0])

    def _write(self, test: str, outcome: str, said: str) -> None:
        with self._record.open("a") as file:
            file.write(json.dumps({"test": test, "outcome": outcome, "said": said}) + "\n")


def run_here(file: Path, record: Path, every: int) -> int:
    """Runs the tests of a file in this process."""
    import pytest

    top = str(file.parents[2])  # whose conftest.py has the option
    arguments = ["-q", "--device", "cpu", "-p", "no:cacheprovider", "--rootdir", top, "--confcutdir", top, str(file)]
    return int(pytest.main(arguments, plugins=[Recorder(record, every)]))


def run_file(file: Path, every: int, seconds: int) -> dict[str, tuple[str, str]]:
    """Outcome and message of each test of a file, in as many processes as it takes."""
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_BACKENDS_IN_TREE"}
    environment["TRITON_DEFAULT_BACKEND"] = "cpu"
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "record"
        record.touch()
        while True:
            before = record.stat().st_size
            command = [sys.executable, __file__, str(file), "--here", str(record), "--every", str(every)]
            try:
                ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=seconds)
                ended = ran.returncode >= 0
                if ran.returncode in NOT_RUN:
                    return {file.name: ("failed", ran.stdout + ran.stderr)}
            except subprocess.TimeoutExpired:
                ended = False
            if ended or record.stat().st_size == before:
                return dict(read_record(record))


def read_record(record: Path) -> Iterator[tuple[str, tuple[str, str]]]:
    """The last that is known of each test."""
    for line in record.read_text().splitlines():
        found = json.loads(line)
        yield found["test"], (found["outcome"], found["said"])


def describe_tree(tree: Path) -> str:
    """The commit of a checkout; of a plain folder, its Triton's version."""
    asked = subprocess.run(["git", "-C", str(tree), "rev-parse", "HEAD"], capture_output=True, text=True)
    found = re.search(r"__version__ = '(.*?)'", (tree / "python/triton/__init__.py").read_text())
    version = found[1] if found else "unknown"
    return f"Triton {version}, commit {asked.stdout.strip() or 'unknown'}"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("tree", type=Path)
    options.add_argument("--files", nargs="*", default=FILES)
    options.add_argument("--every", type=int, default=1)
    options.add_argument("--seconds", type=int, default=3600, help="for one process")
    options.add_argument("--failures", action="store_true")
    options.add_argument("--here", type=Path, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.here:
        sys.exit(run_here(given.tree, given.here, given.every))
    print(f"{describe_tree(given.tree)}; every {given.every}. test of a file\n")
    print(f"| file | {' | '.join(OUTCOMES)} | passed of run |\n|---|{'---|' * (len(OUTCOMES) + 1)}")
    failures: list[str] = []
    for name in given.files:
        found = run_file((given.tree / TESTS / f"test_{name}.py").resolve(), given.every, given.seconds)
        count = collections.Counter(outcome for outcome, _ in found.values())
        run = sum(count.values()) - count["skipped"]
        share = f"{100 * count['passed'] / run:.1f} %" if run else "–"
        print(f"| test_{name} | {' | '.join(str(count[each]) for each in OUTCOMES)} | {share} |", flush=True)
        bad = [(test, *rest) for test, rest in found.items() if rest[0] in ("failed", "crashed")]
        failures += [f"{test}: {outcome}: {said}" for test, outcome, said in bad]
    if given.failures:
        print("", *failures, sep="\n")


if __name__ == "__main__":
    main()
