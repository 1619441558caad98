"""Run-time arguments that have one value in each variant: `equal` as a promise and as what is compiled."""

import pytest
from small_projects import SPEC, error_text, make_project, plan

from precast.plan.key import describe
from precast.spec.model import Argument


def with_equal(equal, kind="i64", spec=SPEC):
    return spec.replace('stride = "i64"', f'stride = {{ type = "{kind}", equal = {equal} }}')


def units(folder, spec):
    make_project(folder, {"kernels/scale.toml": spec})
    return plan(folder, targets=("cuda:90",)).units


def test_the_value_of_each_variant(tmp_path):
    spec = with_equal('"BLOCK * 2 - 64"').replace("[128]", "[32, 64]")
    found = [planned.unit.arguments[3] for planned in units(tmp_path, spec)]
    assert found == [Argument("stride", "i64", equal=0), Argument("stride", "i64", equal=64)] * 2
    assert describe(found[1]) == "i64 equal 64"


def test_one_is_a_constant_as_in_triton_and_a_truth_value_is_none(tmp_path):
    assert units(tmp_path, with_equal(1))[0].unit.arguments[3] == Argument("stride", "i64", True, 1, equal=1)
    assert units(tmp_path, with_equal(1, "i1"))[0].unit.arguments[3] == Argument("stride", "i1", equal=1)
    assert units(tmp_path, with_equal(-5))[0].unit.arguments[3] == Argument("stride", "i64", equal=-5)


def test_a_changed_value_is_another_key(tmp_path):
    keys = [units(tmp_path, spec)[0].key for spec in (SPEC, with_equal(1), with_equal(2), with_equal('"BLOCK"'))]
    assert len(set(keys)) == 4
    assert units(tmp_path, with_equal(128))[0].key == keys[3], "the same value, however it is written"


def test_an_absent_argument_has_no_value(tmp_path):
    spec = with_equal(8, "{S}").replace("[128]", '[128]\nS = ["none", "i32"]')
    found = [planned.unit.arguments[3] for planned in units(tmp_path, spec)][:2]
    assert found == [Argument("stride", "none", True, None), Argument("stride", "i32", equal=8)]


@pytest.mark.parametrize(
    ("equal", "kind", "said"),
    [
        ("128", "i8", "`stride` would equal 128, which does not fit in i8"),
        ("-1", "u64", "`stride` would equal -1, which does not fit in an integer of 32 bits with a sign"),
        (
            "2147483648",
            "i64",
            "`stride` would equal 2147483648, which does not fit in an integer of 32 bits with a sign",
        ),
        ("2", "i1", "`stride` would equal 2, which does not fit in i1"),
        ('"BLOCK // (BLOCK - 128)"', "i32", "value `BLOCK // (BLOCK - 128)` divides by zero"),
        ('"BLOCK - 129"', "u8", "`stride` would equal -1, which does not fit in u8"),
    ],
)
def test_a_value_that_cannot_be(tmp_path, equal, kind, said):
    make_project(tmp_path, {"kernels/scale.toml": with_equal(equal, kind)})
    text = error_text(tmp_path)
    assert said in text and text.startswith("kernels/scale.toml:9:"), text
    assert "hint: so it is in `scale:dtype=fp16,BLOCK=128`" in text


def test_a_type_that_an_axis_makes_no_integer(tmp_path):
    spec = with_equal(8, "{S}").replace("[128]", '[128]\nS = ["i32", "fp32"]')
    make_project(tmp_path, {"kernels/scale.toml": spec})
    said = "`equal` is for integers, and `stride` is `fp32` in `scale:dtype=fp16,BLOCK=128,S=fp32`"
    assert said in error_text(tmp_path)
