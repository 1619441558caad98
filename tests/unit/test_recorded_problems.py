"""Sizes that a program launched become problems to tune with: the most frequent first, and none that is there."""

from __future__ import annotations

from dataclasses import replace

import pytest
import tomlkit
from test_recording import OPS, SPECS, kernel, launch, merge, samples

from precast.recording.merging import merge_notes
from precast.recording.notes import Notebook, Problem, Tuned, read_notes

GRID = samples(({"n": 1000, "BLOCK": 64}, (16,)), ({"n": 64, "BLOCK": 64}, (1,)))
BOTH = tuple(({"BLOCK": block}, {"num_warps": warps}) for block, warps in ((64, 4), (128, 8)))


def problem(n: int, count=1, of=None, elements=None, number=0, unknown=(), telling=("n",), **numbers) -> Problem:
    shapes = {"x": (n if elements is None else elements,)}
    return Problem(of or launch(), {"n": n, **numbers}, shapes, telling, unknown, number, count)


def chosen(block: int, warps: int, others=BOTH, axes=("BLOCK", "num_warps")):
    return launch(tuned=Tuned(f"n={block}", others, {"n": 1}, axes), options={"num_warps": warps}, BLOCK=block)


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if "launch" in line and line.startswith("    ")]


def test_the_most_frequent_come_first_and_processes_add_up():
    notes = [launch(), *GRID, problem(100, 3), problem(500, 4), problem(100, 2)]
    assert lines(merge(*notes)) == ['{ x = "n", n = 100 }, # 5 launches', '{ x = "n", n = 500 }, # 4 launches']


def test_a_second_run_changes_nothing_and_another_adds_what_is_missing():
    before = merge(launch(), *GRID, problem(100, 3), problem(500))
    edited = before.replace("# 3 launches", "# mine").replace("n = 500", "n = [500, 700]")
    assert merge(launch(), *GRID, problem(500, 9), problem(700), problem(100), text=edited) == edited
    after = merge(launch(), *GRID, problem(300, 2), problem(700), text=edited)
    assert after.replace('    { x = "n", n = 300 }, # 2 launches\n', "") == edited
    assert merge(launch(), *GRID, problem(300), text=after) == after


def test_tables_of_the_user_s_stay_tables():
    own = '\n[[kernel.add.problem]]\nn = 100  # the small one\nx = "n"\n'
    before = merge(launch(), *GRID) + own
    after = merge(launch(), *GRID, problem(100), problem(200), text=before)
    assert "# the small one" in after and own in after
    assert kernel(after)["problem"] == [{"n": 100, "x": "n"}, {"x": "n", "n": 200}]


def test_what_the_file_computes_is_known():
    before = merge(launch(), *GRID).replace(
        "[kernel.add.args]", 'problem = [{ n = "50 * 2", x = "n" }]\n\n[kernel.add.args]'
    )
    assert merge(launch(), *GRID, problem(100), text=before) == before


def test_a_row_is_of_its_types_and_of_what_no_tuner_chooses():
    half = launch({"x": "*fp16", "n": "i32"}, MODE=1, BLOCK=64)
    full = launch(MODE=2, BLOCK=64)
    found = kernel(merge(half, full, *GRID, problem(100, of=half), problem(100, 2, of=full)))
    assert found["tune"] == []
    assert found["problem"] == [
        {"dtype": "fp32", "MODE": 2, "x": 100, "n": 100}, {"dtype": "fp16", "MODE": 1, "x": 100, "n": 100},
    ]  # fmt: skip


def test_what_a_tuner_sets_is_tuned():
    notes = [chosen(64, 4), chosen(128, 8), *GRID]
    text = merge(*notes, problem(100, of=chosen(64, 4)), problem(500, of=chosen(128, 8)))
    assert (kernel(text)["tune"], kernel(text)["problem"]) == (
        ["BLOCK", "num_warps"], [{"x": "n", "n": 100}, {"x": "n", "n": 500}],
    )  # fmt: skip
    assert merge(*reversed(notes), problem(500, of=chosen(64, 4)), text=text) == text


def test_a_choice_that_comes_later_is_tuned_from_then_on():
    before = merge(chosen(64, 4, BOTH[:1]), *GRID, problem(100, of=chosen(64, 4, BOTH[:1])))
    assert (kernel(before)["tune"], kernel(before)["problem"]) == ([], [{"x": 100, "n": 100}])
    after = merge(chosen(128, 8, BOTH[1:]), *GRID, problem(500, of=chosen(128, 8, BOTH[1:])), text=before)
    assert kernel(after)["tune"] == ["BLOCK", "num_warps"]
    assert kernel(after)["problem"] == [{"x": 100, "n": 100}, {"x": 500, "n": 500}]


def test_types_that_differ_later_take_their_names_along():
    """A row that named another axis is of all types, rather than of one that has no name any more."""
    kinds = [launch({"x": kind, "n": "i32"}) for kind in ("*fp32", "*fp16")]
    before = merge(*kinds, *GRID, *(problem(100, of=each) for each in kinds))
    assert [each["dtype"] for each in kernel(before)["problem"]] == ["fp32", "fp16"]
    after = merge(launch({"x": "none", "n": "i32"}), *GRID, text=before)
    assert kernel(after)["args"]["x"] == "{x_type}"
    assert kernel(after)["problem"] == [{"x": 100, "n": 100}, {"x": 100, "n": 100}]


def test_more_than_can_be_measured_is_counted():
    notes = [launch(), *GRID, *(problem(n, count=100 - n) for n in range(1, 21))]
    merged = merge_notes("", SPECS, notes)
    assert [each["n"] for each in kernel(merged.text)["problem"]] == list(range(1, 17))
    assert [(each.what, each.reason) for each in merged.unsaid] == [
        ("what to tune `add` with", "4 more sizes, of 326 launches, than 16 problems"),
    ]  # fmt: skip
    assert merge_notes(merged.text, SPECS, notes).text == merged.text


@pytest.mark.parametrize(
    ("notes", "reason"),
    [
        ([chosen(64, 4), problem(1, of=chosen(64, 4))], "its grid is no expression of its arguments"),
        ([chosen(64, 4), *GRID, problem(1, of=chosen(64, 4), unknown=("x",))], "`x` is no number, and has no `shape`"),
        (
            [
                chosen(64, 4, tuple(({"BLOCK": block, "EVEN": block == 64}, {}) for block in (64, 128))), *GRID,
                problem(1, of=chosen(64, 4, tuple(({"BLOCK": block, "EVEN": block == 64}, {}) for block in (64, 128)))),
            ],
            "`EVEN` is another for each config, and no config sets it",
        ),
    ],
)  # fmt: skip
def test_why_there_is_nothing_to_tune_with(notes, reason):
    merged = merge_notes("", SPECS, notes)
    assert [(each.what, each.reason) for each in merged.unsaid] == [("what to tune `add` with", reason)]
    assert "problem" not in kernel(merged.text) and "tune" not in kernel(merged.text)


def test_a_grid_that_goes_takes_its_problems_along():
    before = merge(launch(), *GRID, problem(100))
    wrong = samples(({"n": 100, "BLOCK": 64}, (1,)))
    assert "problem" not in kernel(merge(launch(), *wrong, text=before))


def test_integers_that_are_always_one_another_are_said_so():
    types = {"x": "*fp32", "n": "i32", "stride": "i32", "m": "i32"}
    of = launch(types)
    rows = [problem(n, of=of, elements=n * 7, telling=("n", "stride", "m"), stride=n, m=7) for n in (100, 200)]
    found = kernel(merge(of, *GRID, *rows))["problem"]
    assert found == [{"x": "n * m", "n": n, "stride": "n", "m": 7} for n in (100, 200)]


def test_of_what_a_process_counts_the_last_counts(tmp_path):
    notebook = Notebook(tmp_path)
    for number, count in ((0, 1), (1, 1), (0, 2), (0, 3)):
        notebook.write(replace(problem(100 + number), number=number, count=count))
    assert [(note.numbers, note.count) for note in read_notes(tmp_path)] == [({"n": 100}, 3), ({"n": 101}, 1)]


def test_the_rows_are_toml_that_a_spec_file_has():
    found = tomlkit.parse(merge(launch(), *GRID, problem(100, of=launch(), flag=True, value=0.5)))
    assert found["kernel"]["add"]["source"] == f"{OPS.file.rpartition('/')[2]}:add"


def test_an_integer_beyond_a_file_s_is_no_problem():
    big = launch({"x": "*fp32", "n": "u64"})
    written = merge(big, *GRID, problem(2**63, of=big), problem(100, of=big))
    assert lines(written) == ["{ x = 100, n = 100 }, # 1 launch"]
    assert "problem" not in kernel(merge(big, *GRID, problem(2**63, of=big)))
