"""What evidence makes of a plan: a config that could not run where it was measured does not ship as the author's."""

import json

import pytest
from small_projects import SPEC, make_project, plan

TUNED = SPEC.replace("[kernel.scale.args]", "configs = [{ BLOCK = 64 }, { BLOCK = 128 }, { BLOCK = 256 }]\n\n"
                     "[kernel.scale.args]").replace("BLOCK = [128]\n", "")  # fmt: skip
TUNED += '\n[[kernel.scale.problem]]\ndtype = "fp16"\nn = [100, 200]\nstride = 1\nx = "n"\nout = "n"\n'
NAMES = ["scale:dtype=fp16,BLOCK=64@cuda:90", "scale:dtype=fp16,BLOCK=256@cuda:90"]


def shipped(folder, blocks, *times):
    """The blocks that ship by evidence of some blocks."""
    problems = [
        {"axes": {"dtype": "fp16"}, "sizes": {"n": n}, "times": each} for n, each in zip((100, 200), times, strict=True)
    ]
    evidence = {"schema": 1, "kernel": "scale", "target": "cuda:90", "device": "H1", "axes": ["BLOCK"],
                "configs": [{"BLOCK": block} for block in blocks], "problems": problems}  # fmt: skip
    make_project(folder, {"kernels/scale.toml": TUNED, "tuning/scale.h1.json": json.dumps(evidence)})
    units = [planned.unit for planned in plan(folder, targets=("cuda:90",)).units]
    return [dict(unit.variant.values)["BLOCK"] for unit in units if dict(unit.variant.values)["dtype"] == "fp16"]


@pytest.mark.parametrize(
    ("blocks", "times", "expected"),
    [
        ((64, 128, 256), ([None, 2.0, 1.0], [None, 1.0, 2.0]), [128, 256]),
        ((64, 128, 256), ([None, None, 1.0], [None, None, 1.0]), [256]),
        ((64, 128, 256), ([None, 2.0, 1.0], [9.0, 2.0, 1.0]), [64, 256]),
        ((64, 128, 256), ([None, None, None], [None, None, None]), [64]),
        ((128, 256), ([2.0, 1.0], [2.0, 1.0]), [64, 256]),
    ],
    ids=["nowhere", "one alone", "somewhere", "none", "not measured"],
)
def test_a_config_that_ran_nowhere_does_not_ship_as_the_authors(tmp_path, blocks, times, expected):
    assert shipped(tmp_path, blocks, *times) == expected


def test_candidates_are_planned_without_those_that_do_not_compile(tmp_path):
    make_project(tmp_path, {"kernels/scale.toml": TUNED})
    every = plan(tmp_path, targets=("cuda:90",), candidates=True)
    rest = plan(tmp_path, targets=("cuda:90",), candidates=True, without=frozenset(NAMES))
    names = {str(planned.unit) for planned in every.units}
    assert {str(planned.unit) for planned in rest.units} == names - set(NAMES) and names > set(NAMES)
    assert rest.problems == every.problems, "evidence has them as configs that did not run"
