"""`precast why`: what it says for each thing that can change."""

import hashlib
from dataclasses import replace

import pytest
from small_projects import KERNEL, SETTINGS, SPEC, make_project, plan

from precast.artifact import Facts, UnitResult
from precast.cli import main
from precast.codec import to_json
from precast.plan import write_key
from precast.plan.key import describe, describe_inputs
from precast.report.why import compare, explain
from precast.spec.model import Argument, CompileSettings, SourceReading

UNIT = "scale:dtype=fp16,BLOCK=128@cuda:90"


def pretend_built(folder):
    """What a build leaves for the unit: image, facts and key."""
    planned = plan(folder).find(UNIT)
    place = folder / planned.folder
    place.mkdir(parents=True, exist_ok=True)
    (place / "scale.cubin").write_bytes(b"image")
    result = UnitResult(UNIT, hashlib.sha256(b"image").hexdigest(), Facts("scale_kernel", ()), ())
    (place / "facts.json").write_text(to_json(result))
    write_key(place, planned.ingredients)
    return place


def reasons(folder):
    return explain(plan(folder).find(UNIT), folder)


def test_never_built_and_up_to_date(tmp_path):
    make_project(tmp_path)
    assert reasons(tmp_path) == ("never built",)
    pretend_built(tmp_path)
    assert reasons(tmp_path) == ("up to date",)


HELPER = KERNEL.replace("import triton\n", "import triton\nimport helper\n", 1)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"kernels/scale.py": KERNEL + "# x"}, ["kernels/scale.py changed"]),
        (
            {"kernels/scale.py": HELPER, "kernels/helper.py": ""},
            ["kernels/scale.py changed", "kernels/helper.py is imported now"],
        ),
        (
            {"kernels/scale.toml": SPEC + "[kernel.scale.options]\nnum_warps = 8\n"},
            ["option num_warps is new: 8"],
        ),
        (
            {"kernels/scale.toml": SPEC.replace('n = "i32"', 'n = { type = "i64", align = 8 }')},
            ["argument n i32 → i64 align 8"],
        ),
        ({"pyproject.toml": SETTINGS + "line_info = true\n"}, ["setting line_info false → true"]),
        (
            {"pyproject.toml": SETTINGS + "triton = { TRITON_X = 1 }\n"},
            ["setting triton.TRITON_X is new: 1"],
        ),
        (
            {"pyproject.toml": SETTINGS + 'environment = { MODE = "fast" }\n'},
            ["setting environment.MODE is new: fast"],
        ),
    ],
)
def test_what_changed(tmp_path, files, expected):
    make_project(tmp_path)
    pretend_built(tmp_path)
    make_project(tmp_path, files)
    assert list(reasons(tmp_path)) == expected


def test_all_that_an_argument_promises_is_told():
    told = [Argument("n", "i32"), Argument("n", "i32", True, 1), Argument("n", "i32", True, None)]
    told += [Argument("n", "i32", divisibility=16), Argument("n", "i32", range32=True)]
    told += [Argument("n", "i32", equal=value) for value in (0, 1)]
    assert len({describe(each) for each in told}) == len(told)


def test_whatever_changes_a_key_is_told(tmp_path):
    inputs = plan(make_project(tmp_path)).find(UNIT).given
    unit, around = inputs.unit, inputs.around
    settings = CompileSettings(module_environment=(("MODE", "fast"),))
    value = (("BLOCK", 1),)
    readings = (SourceReading(value), SourceReading(config=value), SourceReading(configs="1"))
    others = [
        *(replace(inputs, unit=replace(unit, reading=each)) for each in readings),
        replace(inputs, unit=replace(unit, source=replace(unit.source, function="other"))),
        replace(inputs, unit=replace(unit, options=(("num_stages", 7),))),
        *(replace(inputs, around=replace(around, **changes))
          for changes in ({"sources": ()}, {"settings": settings}, {"tools": around.tools[1:]})),
    ]  # fmt: skip
    assert len({inputs.key, *(each.key for each in others)}) == len(others) + 1
    for each in others:
        assert [*compare(describe_inputs(inputs), describe_inputs(each))], each


def test_option_before_and_after(tmp_path):
    options = SPEC + "[kernel.scale.options]\nnum_warps = 4\n"
    make_project(tmp_path, {"kernels/scale.toml": options})
    pretend_built(tmp_path)
    make_project(tmp_path, {"kernels/scale.toml": options.replace("= 4", "= 8")})
    assert reasons(tmp_path) == ("option num_warps 4 → 8",)
    make_project(tmp_path)
    assert reasons(tmp_path) == ("option num_warps is gone, was 4",)


def test_passes_and_tools(tmp_path):
    from dataclasses import replace

    make_project(tmp_path)
    now = plan(tmp_path).find(UNIT).ingredients
    two = replace(now, passes=(("a", "1"), ("b", "2")))
    assert list(compare(now, two)) == ["pass a is new", "pass b is new"]
    assert list(compare(two, now)) == ["pass a is gone", "pass b is gone"]
    assert list(compare(two, replace(two, passes=(("b", "2"), ("a", "1"))))) == ["passes run in another order: b, a"]
    assert list(compare(two, replace(two, passes=(("a", "3"), ("b", "2"))))) == ["pass a changed: 1 → 3"]
    older = replace(now, tools=tuple((name, "3.8.0 x" if name == "triton" else text) for name, text in now.tools))
    assert list(compare(older, now)) == [f"tool triton 3.8.0 x → {dict(now.tools)['triton']}"]


def test_damage(tmp_path):
    make_project(tmp_path)
    place = pretend_built(tmp_path)
    inside = place.relative_to(tmp_path).as_posix()
    (place / "scale.cubin").write_bytes(b"imagE")
    assert reasons(tmp_path) == (f"{inside}/scale.cubin is not what was built",)
    (place / "scale.cubin").unlink()
    assert reasons(tmp_path) == (f"{inside}/scale.cubin is missing",)
    (place / "facts.json").write_text("{")
    assert reasons(tmp_path) == (f"{inside}/facts.json is damaged",)
    (place / "facts.json").unlink()
    assert reasons(tmp_path) == (f"{inside}/facts.json is missing",)
    (place / "scale.cubin").write_bytes(b"image")
    (place / "key.json").unlink()
    assert reasons(tmp_path) == (f"{inside}/key.json is missing: what it was built from is not known",)


def test_command(tmp_path, capsys):
    make_project(tmp_path)
    pretend_built(tmp_path)
    make_project(tmp_path, {"kernels/scale.py": KERNEL + "# x"})
    assert main(["why", UNIT, "--project", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"{UNIT}:\n  kernels/scale.py changed\n"
    assert main(["why", UNIT.replace("=128", "=12"), "--project", str(tmp_path)]) == 1
    assert capsys.readouterr().err == (
        f"error: there is no unit `{UNIT.replace('=128', '=12')}`\nhint: did you mean `{UNIT}`?\n"
    )
    assert main(["why", "scal@cuda:90", "--project", str(tmp_path)]) == 1
    assert capsys.readouterr().err == "error: there is no unit `scal@cuda:90`\nhint: did you mean `scale`?\n"
    assert main(["why", "scale", "--project", str(tmp_path)]) == 1
    assert "`scale` is not a unit: no `@target` at its end" in capsys.readouterr().err
