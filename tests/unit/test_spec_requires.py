"""What a spec requires of each launch: comparisons of the grid language, what the plan decides, their errors."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_projects import SPEC, error_text, make_project, plan

from precast.errors import SpecError
from precast.grid import COMPARISONS, compile_grid, evaluate, fold, parse_requirement

INTEGERS = st.integers(-(2**63), 2**63 - 1)


def with_requires(requires, spec=SPEC):
    return spec.replace("\n[kernel.scale.args]", f"requires = {requires}\n\n[kernel.scale.args]")


def units(folder, spec):
    make_project(folder, {"kernels/scale.toml": spec})
    return [planned.unit for planned in plan(folder, targets=("cuda:90",)).units]


@given(INTEGERS, INTEGERS, st.sampled_from(sorted(COMPARISONS)))
def test_comparisons_are_pythons(a, b, sign):
    expression = parse_requirement(f"a {sign} b", ("a", "b"))
    holds = eval(f"{a} {sign} {b}")
    assert evaluate(expression, {"a": a, "b": b}) == int(holds)
    assert fold(expression, {"a": a}) is None
    steps = compile_grid(expression, ["a"], {"b": b}).steps
    assert steps == ((1, 0), (0, b), (10 + ("<", "<=", "==", "!=", ">=", ">").index(sign), 0))


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("n", 2, "expected a comparison and found the end in a requirement"),
        ("n + 1", 6, "expected a comparison and found the end in a requirement"),
        ("n < m < 3", 7, "unexpected `<` in a requirement"),
        ("n <", 4, "expected a value and found the end in a requirement"),
        ("n = 3", 3, "expected a comparison and found `=` in a requirement"),
        ("n =< 3", 3, "expected a comparison and found `=` in a requirement"),
        ("n <= k", 6, "unknown name `k` in a requirement"),
        ("(n < m)", 4, "expected `)` and found `<` in a requirement"),
    ],
)
def test_what_is_no_requirement(text, column, message):
    from precast.errors import Place

    with pytest.raises(SpecError) as caught:
        parse_requirement(text, ("n", "m"), Place("k.toml", 1))
    assert (caught.value.message, caught.value.where.column) == (message, column)


def test_a_unit_has_the_requirements_that_its_values_do_not_decide(tmp_path):
    spec = with_requires('["n <= BLOCK", "BLOCK >= 128", "stride % BLOCK == 0"]').replace("[128]", "[64, 128, 256]")
    found = units(tmp_path, spec)
    assert [dict(unit.variant.values)["BLOCK"] for unit in found] == [128, 256] * 2
    assert {unit.requires for unit in found} == {("n <= BLOCK", "stride % BLOCK == 0")}
    assert {unit.compiled.requires for unit in found} == {()}, "what launchers check is not compiled"


def test_requirements_are_in_the_key_of_a_release_and_in_no_units(tmp_path):
    first = plan(make_project(tmp_path, {"kernels/scale.toml": with_requires('["n <= BLOCK"]')})).units
    other = plan(make_project(tmp_path, {"kernels/scale.toml": with_requires('["n < BLOCK"]')})).units
    assert [each.key for each in first] == [each.key for each in other]
    assert first[0].unit != other[0].unit


def test_requirements_that_no_variant_meets(tmp_path):
    make_project(tmp_path, {"kernels/scale.toml": with_requires('["n < 9", "BLOCK < 128"]')})
    assert error_text(tmp_path) == (
        "kernels/scale.toml:4:23: error: no variant of kernel `scale` can meet `BLOCK < 128`, whatever the launch\n"
        '    requires = ["n < 9", "BLOCK < 128"]\n'
        "                          ^"
    )


def test_requirements_that_leave_no_variant_together(tmp_path):
    spec = with_requires('["BLOCK < 128", "BLOCK > 64"]').replace("[128]", "[64, 128]")
    make_project(tmp_path, {"kernels/scale.toml": spec})
    assert "`exclude` and `requires` leave no variant of kernel `scale`" in error_text(tmp_path)


def test_a_requirement_that_cannot_be_computed_names_the_variant(tmp_path):
    make_project(tmp_path, {"kernels/scale.toml": with_requires('["n % (BLOCK - 128) == 0"]')})
    assert error_text(tmp_path) == (
        "kernels/scale.toml:4:18: error: requirement `n % (BLOCK - 128) == 0` divides by zero\n"
        '    requires = ["n % (BLOCK - 128) == 0"]\n'
        "                     ^~~~~~~~~~~~~\n"
        "hint: so it is in `scale:dtype=fp16,BLOCK=128`"
    )


@pytest.mark.parametrize(("requires", "noun"), [('["n < stride"]', "requirement"), ("", "grid")])
def test_an_argument_that_an_axis_makes_no_integer(tmp_path, requires, noun):
    spec = with_requires(requires) if requires else SPEC.replace("cdiv(n, BLOCK)", "stride")
    spec = spec.replace('stride = "i64"', 'stride = "{S}"').replace("[128]", '[128]\nS = ["i64", "fp32"]')
    make_project(tmp_path, {"kernels/scale.toml": spec})
    said = f"`stride` is no integer in `scale:dtype=fp16,BLOCK=128,S=fp32`: a {noun} is computed from integers"
    assert said in error_text(tmp_path)
