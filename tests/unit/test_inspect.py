"""`precast inspect` on folders of built units: what it finds, and what it says when there is nothing."""

import pytest

from precast.artifact import Facts, StageFile, UnitResult
from precast.cli.inspect import list_units
from precast.codec import to_json
from precast.errors import SpecError
from precast.report.inspect import find_units, read_built_units, read_stage
from precast.target import Target, expand_native


def write_unit(units, text, stages):
    kernel = text.partition("@")[0].partition(":")[0]
    folder = units / text.rpartition("@")[2].replace(":", "-") / kernel
    folder.mkdir(parents=True)
    for stage, data in stages.items():
        (folder / f"{kernel}.{stage}").write_bytes(data)
    files = tuple(StageFile(stage, "", "", False) for stage in stages)
    (folder / "facts.json").write_text(to_json(UnitResult(text, "", Facts("symbol", ()), files)))


@pytest.fixture
def built(tmp_path):
    write_unit(tmp_path, "softmax:BLOCK=1024@cuda:90", {"ttir": b"module {}", "cubin": b"\x7fELF"})
    write_unit(tmp_path, "argmax@cpu:x86-64-v3", {"ttir": b"module {}"})
    return read_built_units(tmp_path)


@pytest.mark.parametrize("pattern", ["softmax", "softmax:BLOCK=1024", "*@cuda:90", "soft*"])
def test_a_unit_is_found_by_kernel_variant_and_glob(built, pattern):
    assert [unit.result.unit for unit in find_units(built, pattern)] == ["softmax:BLOCK=1024@cuda:90"]


def test_units_stand_in_the_order_of_their_text(built):
    assert [unit.kernel for unit in find_units(built, "*")] == ["argmax", "softmax"]


def test_a_unit_that_is_not_there(built):
    with pytest.raises(SpecError) as caught:
        find_units(built, "softmux")
    assert (caught.value.message, caught.value.hint) == ("no built unit matches `softmux`", "did you mean `softmax`?")


def test_a_stage_and_one_that_is_not_there(built):
    [unit] = find_units(built, "softmax")
    assert read_stage(unit, "cubin") == b"\x7fELF"
    with pytest.raises(SpecError) as caught:
        read_stage(unit, "ttgr")
    assert caught.value.message == "softmax:BLOCK=1024@cuda:90 has no stage `ttgr`"


LONG = f'rotary:layout="[red]",{",".join(f"AXIS_{number}=1024" for number in range(12))}@cuda:90'


def test_each_unit_is_one_line_where_no_terminal_reads(tmp_path):
    write_unit(tmp_path, LONG, {"ttir": b"module {}"})
    kernel, header, row = list_units(find_units(read_built_units(tmp_path), LONG))
    assert kernel == "rotary"
    axes = [f"AXIS_{number}" for number in range(12)]
    assert header.split() == ["target", "layout", *axes, "code", "shared", "warps", "unit"]
    assert row.split() == ["cuda:90", '"[red]"', *["1024"] * 12, "0", "B", "0", "B", "1", LONG]


def test_kernels_stand_apart(built):
    lines = list(list_units(find_units(built, "*"), "target", 60))
    assert lines == [
        "argmax",
        "  target         code  shared  warps  unit",
        "  cpu:x86-64-v3   0 B     0 B      1  argmax@cpu:x86-64-v3",
        "",
        "softmax",
        "  target   BLOCK  code  shared  warps",
        "  cuda:90   1024   0 B     0 B      1",
    ]


def test_this_machine_s_level_has_a_name(built, monkeypatch):
    monkeypatch.setattr("precast.target.read_native_level", lambda: "x86-64-v3")
    assert expand_native("argmax@cpu:native") == "argmax@cpu:x86-64-v3"
    assert Target.parse("cpu:x86-64-v3").matches("cpu:native")
    assert not Target.parse("cpu:x86-64-v2").matches("cpu:native")
    [unit] = find_units(built, expand_native("*@cpu:native"))
    assert unit.kernel == "argmax"
