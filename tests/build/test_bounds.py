"""What a build may take: bytes of a release, memory of workers; and what its units took."""

import re
from dataclasses import replace

import pytest
from test_triton_engine import KERNEL, make_project
from tree import make_tree

from precast.artifact import UnitResult
from precast.codec import from_json
from precast.graph.index import Index
from precast.graph.order import Cost
from precast.release.budget import BudgetError, check_budget
from precast.release.manifest import ManifestFile
from precast.worker.meter import Meter
from precast.worker.pool import WorkerPool

STANDIN = '[tool.precast.triton]\nPRECAST_ENGINE = "stand-in"\n'
BUDGET = "\n[tool.precast.budget]\nrelease_bytes = {}\n"


def test_release_over_its_budget_names_the_largest():
    files = [ManifestFile(f"targets/k{number}.pack", number * 1000, "") for number in range(8)]
    check_budget(files, 0)
    check_budget(files, 28_000)
    with pytest.raises(BudgetError) as caught:
        check_budget(files, 27_999)
    assert caught.value.message == "the release has 28,000 bytes, more than the 27,999 of its budget"
    assert caught.value.hint == (
        "the largest are targets/k7.pack (7,000), targets/k6.pack (6,000), targets/k5.pack (5,000), "
        "targets/k4.pack (4,000), targets/k3.pack (3,000)"
    )


def test_build_over_its_budget_makes_no_release(tmp_path):
    tree = make_tree(tmp_path, more=STANDIN)
    first = tree.build()
    size = sum(path.stat().st_size for path in first.release.rglob("*") if path.is_file())
    tree.write("pyproject.toml", (tree.folder / "pyproject.toml").read_text() + BUDGET.format(1000))
    over = tree.build()
    assert over.code == 1 and over.steps == []
    line = (tree.folder / "pyproject.toml").read_text().split("\n").index("release_bytes = 1000") + 1
    told = re.sub(r"[\d,]+(?= bytes, )", "SIZE", over.err).replace(f"{tree.folder}/", "").splitlines()
    assert told[0] == f"pyproject.toml:{line}:17: error: the release has SIZE bytes, more than the 1,000 of its budget"
    assert told[3].startswith("hint: the largest are ")
    assert (tree.folder / "generated/demo/current").resolve() == first.release
    tree.edit("pyproject.toml", "release_bytes = 1000", f"release_bytes = {2 * size}")
    assert (tree.build().release, tree.build().steps) == (first.release, [])


def test_each_stage_says_what_it_took(tmp_path):
    tree = make_tree(tmp_path, targets=("cuda:90",), more=STANDIN)
    tree.edit("kernels/copy.py", "import triton\n", "# stand-in: sleep 0.05\nimport triton\n")
    assert tree.build().code == 0
    [folder] = (tree.folder / "build/units").glob("*/copy-*")
    result = from_json((folder / "facts.json").read_bytes(), UnitResult)
    assert all(0.05 <= stage.seconds < 3600 and 5 << 20 < stage.peak_bytes < 2 << 30 for stage in result.stages)
    index = Index(tree.folder / "build/index.sqlite", tree.folder)
    assert Cost.parse(index.step(result.unit).note) == Cost(result.seconds, result.peak_bytes)
    index.close()


def test_cost_that_a_note_does_not_say_is_none():
    assert Cost.parse(str(Cost(1.5, 7))) == Cost(1.5, 7)
    assert [Cost.parse(text) for text in ("", "1.5", "a b", "1 2 3")] == [None] * 4


def test_peak_is_that_of_the_time_since():
    block = bytearray(64 << 20)
    before = Meter()
    block[::4096] = b"x" * (len(block) // 4096)
    high = before.peak_bytes
    del block
    assert Meter().peak_bytes <= high - (48 << 20)


def test_jobs_that_run_at_once_fit_into_memory(tmp_path, monkeypatch):
    """One of which nothing is known takes as much as a worker may; one that alone does not fit runs alone."""
    monkeypatch.setattr("precast.worker.pool._Seat.serve", lambda seat, expected: None)  # no worker comes
    [job] = make_project(tmp_path / "project", KERNEL.format(value=1), more=STANDIN)
    pool = WorkerPool(8, memory=1000 << 20)
    for megabytes in (300, 300, 600, 400, 2000, 0):
        pool.submit(replace(job, expected_bytes=megabytes << 20))

    def take() -> tuple[int, ...]:
        """All that may start now, in MiB."""
        found = []
        while pool._find_fitting(None):
            running.append(idle.pop())
            found.append(pool.take(running[-1], None).job)
        return tuple(each.expected_bytes >> 20 for each in found)

    def end() -> None:
        idle.append(running.pop(0))
        pool.ended(idle[-1], well=True)

    idle, running = [*pool._seats], []
    assert take() == (300, 300, 400)
    end()
    assert take() == ()
    end()
    assert take() == (600,)
    end()
    assert take() == ()
    end()
    assert take() == (2000,)
    end()
    assert take() == (0,)
    end()
    pool.close()
