"""Small parts of passes: expected diagnostics, op schemas, resources, findings, calls of declared ops."""

import dataclasses
from pathlib import Path

import pytest

from precast.errors import PassError, PluginError
from precast.passes.digest import digest_files, reach_files
from precast.passes.elementwise import ElementwiseOp, check_lowered
from precast.passes.expectations import Diagnostic, find_mismatches, parse_diagnostics, parse_expected
from precast.passes.findings import record_finding
from precast.passes.op_schemas import parse_header, read_op_schemas
from precast.passes.resources import name_resource, resolve_resource
from precast.passes.selection import Anchor, PassUse, plugin_set
from precast.target import Target


def test_expected_diagnostics_stand_where_their_comments_say():
    text = (
        "a // expected-error {{here}}\n"
        "// expected-warning@+2 {{later}}\n"
        "// expected-note@above {{back}} expected-remark@below {{on}}\n"
    )
    assert parse_expected(text) == (
        Diagnostic("error", 1, "here"),
        Diagnostic("warning", 4, "later"),
        Diagnostic("note", 2, "back"),
        Diagnostic("remark", 4, "on"),
    )


def test_written_diagnostics_of_both_forms_are_read():
    written = 'x.ttir:3:5: error: bad\nloc("x.ttir":4:1): error: worse\nother.py:9:1: note: far\nnothing\nerror: bare\n'
    assert parse_diagnostics(written, "x.ttir") == (
        Diagnostic("error", 3, "bad"),
        Diagnostic("error", 4, "worse"),
        Diagnostic("note", 0, "far"),
        Diagnostic("error", 0, "bare"),
    )


def test_what_is_missing_and_what_was_not_expected_is_told():
    expected = (Diagnostic("error", 3, "bad"), Diagnostic("error", 5, "gone"))
    given = (Diagnostic("error", 3, "very bad"), Diagnostic("warning", 7, "new"), Diagnostic("note", 7, "detail"))
    assert find_mismatches(expected, given) == (
        "line 5: expected error was not given: gone",
        "line 7: unexpected warning: new",
    )


def test_op_schemas_are_read_from_tritons_headers():
    schemas = read_op_schemas()
    load, dot, func = schemas["tt.load"], schemas["tt.dot"], schemas["tt.func"]
    assert (load.operands, load.attributes, load.segmented) == (
        ("ptr", "mask", "other"), ("cachePolicy", "isVolatile"), True,
    )  # fmt: skip
    assert (dot.operands, dot.results) == (("a", "b", "c"), ("d",))
    assert func.operands == () and "sym_name" in func.attributes
    assert {name.partition(".")[0] for name in schemas} == {"tt", "ttg", "ttng", "gluon"}


def test_a_header_without_ops_gives_none():
    assert list(parse_header("class Foo {};\n")) == []


def test_resources_are_named_alike_on_every_machine(tmp_path):
    (tmp_path / "plugins").mkdir()
    mine = tmp_path / "plugins" / "mine.py"
    mine.touch()
    assert name_resource(mine, tmp_path) == "plugins/mine.py"
    package = Path(__import__("precast").__file__).parent
    installed = name_resource(package / "codec.py", tmp_path)
    assert installed == "precast:codec.py"
    assert resolve_resource(installed, tmp_path) == package / "codec.py"
    assert resolve_resource("plugins/mine.py", tmp_path) == mine
    with pytest.raises(PluginError, match="`absent_one:x`: there is no package `absent_one`"):
        resolve_resource("absent_one:x", tmp_path)


def test_digests_cover_names_and_bytes_and_no_folder(tmp_path):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.py").write_text("x")
    one, two = tmp_path / "one", tmp_path / "two"
    assert digest_files(one, ["a.py"]) == digest_files(two, ["a.py"])
    (two / "a.py").write_text("y")
    assert digest_files(one, ["a.py"]) != digest_files(two, ["a.py"])
    assert digest_files(one, ["a.py", "absent.py"]) != digest_files(one, ["a.py"])


def test_imports_inside_a_package_are_reached_and_no_others(tmp_path):
    files = {
        "pack/__init__.py": "from pack.inner import deep\n",
        "pack/inner/__init__.py": "from ..side import value\n",
        "pack/inner/deep.py": "import json\n",
        "pack/side.py": "",
        "pack/unused.py": "",
        "other.py": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    package = tmp_path / "pack"
    reached = [path.relative_to(tmp_path).as_posix() for path in reach_files(package / "__init__.py", package)]
    assert reached == ["pack/__init__.py", "pack/inner/__init__.py", "pack/inner/deep.py", "pack/side.py"]


@dataclasses.dataclass(frozen=True)
class Found:
    loads: int
    names: tuple = ()


def test_findings_are_canonical_json():
    finding = record_finding("count", Found(3, ("b", "a")))
    assert finding is not None and finding.data == '{"loads":3,"names":["b","a"]}'
    assert record_finding("count", None) is None
    with pytest.raises(TypeError, match="the findings of `run` are not JSON"):
        record_finding("count", Found(3, ({1},)))


def test_a_declared_op_picks_the_lowering_of_the_first_glob():
    op = ElementwiseOp("cube", ("fp32", "bf16"), {"cuda:9*": "A {type}", "cuda:*": "B {type}"})
    assert op.lowering_for(Target("cuda", "90"), "bf16") == "A bf16"
    assert op.lowering_for(Target("cuda", "80"), "fp32") == "B f32"
    with pytest.raises(PassError, match="op `cube` has no lowering for target `hip:gfx942`"):
        op.lowering_for(Target("hip", "gfx942"), "fp32")
    with pytest.raises(TypeError, match="`cube` can be called in a kernel only"):
        op(1.0)


def test_a_call_that_nobody_lowered_is_told():
    check_lowered('tt.extern_elementwise %0 {symbol = "__nv_expf"}')
    with pytest.raises(PassError, match="the kernel calls op `cube`, which is not selected for it"):
        check_lowered('tt.extern_elementwise %0 {symbol = "precast.op.cube.fp32"}')


def test_a_plugin_set_is_the_code_from_outside_and_nothing_else():
    builtin = PassUse("a", "builtin", "ttir", Anchor("end"), digest="1")
    python = PassUse("b", "python", "ttir", Anchor("end"), origin="b.py", digest="2")
    native = PassUse("c", "native", "ttir", Anchor("end"), origin="c.py", digest="3", library="mine.so")
    assert plugin_set((builtin,)) == "" and plugin_set((builtin, python)) == "b.py:=2"
    assert plugin_set((native, python)) == plugin_set((python, native)) == "b.py:=2,c.py:mine.so=3"
