"""Hint sets that a spec writes out: which units they make, how their names are shown, what they do not go with."""

import json

import pytest
from small_projects import SPEC, error_text, make_project, plan

from precast.cli.plan import describe_plan
from precast.errors import SpecError
from precast.spec.model import Argument, Hint
from precast.spec.naming import parse_unit_text, shorten_unit_text

SETS = '[["stride==1", "x%16", "n%16"], ["stride%16"], []]'


def with_hints(sets, spec=SPEC):
    return spec.replace("\n[kernel.scale.args]", f"hints = {sets}\n\n[kernel.scale.args]")


def units(folder, spec, target="cuda:90"):
    make_project(folder, {"kernels/scale.toml": spec})
    return [planned.unit for planned in plan(folder, targets=(target,)).units]


def test_each_set_is_a_variant_in_the_order_written(tmp_path):
    found = units(tmp_path, with_hints(SETS))
    assert [str(unit.variant) for unit in found] == [
        "scale:dtype=fp16,BLOCK=128,x%16,n%16,stride==1",
        "scale:dtype=fp16,BLOCK=128,stride%16",
        "scale:dtype=fp16,BLOCK=128",
        "scale:dtype=fp32,BLOCK=128,x%16,n%16,stride==1",
        "scale:dtype=fp32,BLOCK=128,stride%16",
        "scale:dtype=fp32,BLOCK=128",
    ]
    assert found[0].arguments[2:4] == (Argument("n", "i32", divisibility=16), Argument("stride", "i64", True, 1))
    assert found[1].arguments[2:4] == (Argument("n", "i32"), Argument("stride", "i64", divisibility=16))


def test_pointers_have_hints_and_a_set_without_any_is_not_implied(tmp_path):
    spec = with_hints('[["out%16", "x%16"]]').replace(", align = 16", "")
    found = units(tmp_path, spec)
    assert [unit.variant.hints for unit in found] == [(Hint("x", 16), Hint("out", 16))] * 2
    assert [each.divisibility for each in found[0].arguments[:4]] == [16, 16, 0, 0]


def test_more_than_eight_may_be_written(tmp_path):
    names = ("x", "out", "n", "stride")
    sets = [[f"{name}%16" for bit, name in enumerate(names) if number >> bit & 1] for number in range(16)]
    assert len(units(tmp_path, with_hints(json.dumps(sets)))) == 32


def test_an_absent_argument_has_no_hint(tmp_path):
    spec = with_hints('[["x%16", "n%16"], ["n%16"], []]').replace("*{dtype}", "{X}", 1)
    spec = spec.replace("[128]", '[128]\nX = ["none", "*fp32"]').replace(", align = 16", "", 1)
    found = [str(unit.variant) for unit in units(tmp_path, spec.replace('["fp16", "fp32"]', '["fp16"]'))]
    assert found == [
        'scale:dtype=fp16,BLOCK=128,X="none",n%16',
        'scale:dtype=fp16,BLOCK=128,X="none"',
        "scale:dtype=fp16,BLOCK=128,X=*fp32,x%16,n%16",
        "scale:dtype=fp16,BLOCK=128,X=*fp32,n%16",
        "scale:dtype=fp16,BLOCK=128,X=*fp32",
    ]


@pytest.mark.parametrize(
    ("sets", "argument", "kind", "said"),
    [
        ('[["stride%16"]]', "stride", "fp32", "`stride%16`: an argument of type `fp32` cannot be specialised so"),
        ('[["stride==1"]]', "stride", "*fp32", "`stride==1`: an argument of type `*fp32` cannot be specialised so"),
        ("", "stride", "fp32", "`stride%16`: an argument of type `fp32` cannot be specialised so"),
    ],
)
def test_a_type_that_an_axis_gives_may_have_no_such_hint(tmp_path, sets, argument, kind, said):
    spec = SPEC.replace("[128]", f'[128]\nS = ["i64", "{kind}"]')
    filled = '"{S}"' if sets else '{ type = "{S}", specialize = [16] }'
    make_project(
        tmp_path,
        {"kernels/scale.toml": (with_hints(sets, spec) if sets else spec).replace('"i64"\n', filled + "\n", 1)},
    )
    line = "4:10" if sets else "9:20"
    assert error_text(tmp_path).startswith(f"kernels/scale.toml:{line}: error: {said}\n")


def test_sets_count_as_units(tmp_path):
    make_project(tmp_path, {"kernels/scale.toml": with_hints(SETS)})
    settings = tmp_path / "pyproject.toml"
    settings.write_text(settings.read_text() + "max_units = 10\n")
    said = "would have 18 units, more than 10: 2 of `dtype` × 3 of `hints` × 3 targets\n"
    assert said in error_text(tmp_path)


MANY = "scale:dtype=fp16," + ",".join(f"a{number}%16" for number in range(9)) + ",n==1@cuda:90"


def test_long_hint_lists_are_short_in_lists_and_whole_in_json(tmp_path):
    short = shorten_unit_text(MANY)
    assert short.startswith("scale:dtype=fp16,a0%16,a1%16,a2%16,…+7 hints (") and short.endswith(")@cuda:90")
    assert shorten_unit_text(MANY.replace("a8%16", "a8==1")) != short, "two units of one list look alike"
    with pytest.raises(SpecError, match="is not a unit"):
        parse_unit_text(short)
    assert str(parse_unit_text(MANY)) == MANY
    sets = '[["x%16", "out%16", "n%16", "stride==1"]]'
    make_project(tmp_path, {"kernels/scale.toml": with_hints(sets)})
    unit = describe_plan(plan(tmp_path))["units"][0]
    assert unit["variant"] == "dtype=fp16,BLOCK=128,x%16,out%16,n%16,stride==1"
    assert unit["hints"] == ["x%16", "out%16", "n%16", "stride==1"] and unit["requires"] == []


@pytest.mark.parametrize(
    "text",
    ["scale@cuda:90", "scale:x%16,n%16,m%16,stride==1@cuda:90", "scale:A=1,B=2,C=3,D=4,E=5,x%16@cuda:90", "release",
     'scale:M="a,x%16,x%16,x%16,x%16,x%16",x%16@cuda:90'],
)  # fmt: skip
def test_other_texts_are_shown_as_they_are(text):
    assert shorten_unit_text(text) == text


def test_progress_and_tables_show_the_short_text():
    import io

    from precast.progress.plain import PlainReporter

    stream = io.StringIO()
    reporter = PlainReporter(stream)
    reporter.begin(1)
    reporter.ended(MANY, 1.0, False)
    assert stream.getvalue() == f"[1/1] {shorten_unit_text(MANY)}  1.0 s\n"
