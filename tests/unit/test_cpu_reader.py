"""TTIR text into the CPU engine's IR: the generic form alone, places are kept, bad text is refused."""

import pytest

from precast.engines.cpu.ir import Dense, Type
from precast.engines.cpu.reader import parse_ttir
from precast.errors import PassError, Place

GENERIC = """
#loc = loc("k.py":3:1)
"builtin.module"() ({
  "tt.func"() <{function_type = (!tt.ptr<f32>, i32) -> (), sym_name = "k", sym_visibility = "public"}> ({
  ^bb0(%x: !tt.ptr<f32> loc("x"(#loc)), %n: i32 loc("n"(#loc))):
    %0 = "arith.constant"() <{value = dense<0xFF800000> : tensor<64xf32>}> : () -> tensor<64xf32> loc(#loc)
    %1 = "tt.get_program_id"() <{axis = 1 : i32}> : () -> i32 loc(#loc4)
    %2 = "tt.splat"(%n) : (i32) -> tensor<64xi32>
    %3 = "arith.cmpi"(%2, %2) <{predicate = 6 : i64}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi1>
    %4 = "tt.splat"(%x) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
    %5 = "tt.load"(%4, %3, %0) <{isVolatile = false}>
      : (tensor<64x!tt.ptr<f32>>, tensor<64xi1>, tensor<64xf32>) -> tensor<64xf32> loc(#loc2)
    "scf.if"(%6) ({
      "scf.yield"() : () -> ()
    }, {
    }) : (i1) -> ()
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> () loc(#loc)
}) : () -> () loc(#loc)
#loc1 = loc("k.py":7:9)
#loc2 = loc(callsite(#loc1 at #loc3))
#loc3 = loc("k.py":9:5)
#loc4 = loc("row"(#loc1))
""".replace(
    '    "scf.if"(%6)',
    '    %6 = "arith.cmpi"(%n, %n) <{predicate = 0 : i64}> : (i32, i32) -> i1\n    "scf.if"(%6)',
)


def operations(text):
    function = parse_ttir(text)[0]
    return function, {op.name: op for op in function.operation.walk()}


def test_types_and_attributes():
    function, found = operations(GENERIC)
    assert (function.name, function.public) == ("k", True)
    assert found["tt.get_program_id"].attributes["axis"] == 1
    assert found["arith.constant"].attributes["value"] == Dense((float("-inf"),), True)
    assert found["tt.load"].result.type == Type("f32", (64,))
    assert len(found["tt.load"].operands) == 3
    assert found["tt.splat"].result.type == Type("ptr", (64,), "f32")
    assert found["arith.cmpi"].attributes["predicate"] == "eq"


def test_attributes_of_other_dialects_may_be_nested():
    alias = "#hint = #llvm.loop_annotation<licm = <disable = true>, unroll = <count = 4 : i32>>\n"
    text = alias + GENERIC.replace(
        "predicate = 0 : i64}>", "predicate = 0 : i64, hint = #llvm.x<a = <b>>, last = #hint}>"
    )
    attributes = operations(text)[1]["arith.cmpi"].attributes
    assert (attributes["predicate"], attributes["hint"], attributes["last"]) == ("eq", "a=<b>", "#hint")


def test_an_empty_region_has_no_block():
    _, found = operations(GENERIC)
    assert [len(region) for region in found["scf.if"].regions] == [1, 0]


def test_places_name_the_users_own_line():
    _, found = operations(GENERIC)
    assert found["tt.load"].where == Place("k.py", 9, 5), "the call site, not the helper"
    assert found["tt.get_program_id"].where == Place("k.py", 7, 9)
    assert found["tt.return"].where is None


FUNCTION = '"builtin.module"() ({ "tt.func"() <{sym_name = "k"}> ({ %s }) : () -> () }) : () -> ()'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            FUNCTION % '"tt.return"(%x) : (i32) -> ()',
            "TTIR text, line 1: expected a value that is defined above, found `%x`",
        ),
        (
            '"builtin.module"() ({\n  "tt.func"() ({\n',
            "TTIR text, line 3: expected an op in generic form, found the end",
        ),
        ('"builtin.module"() ({ § }', "TTIR text, line 1: unexpected `§`"),
        (FUNCTION % "tt.return", "TTIR text, line 1: expected an op in generic form, found `tt.return`"),
        ("module { }", 'TTIR text, line 1: expected `"builtin.module"`: text in generic form, found `module`'),
        (
            '"builtin.module"() ({ "tt.call"() : () -> () }) : () -> ()',
            "a TTIR module has functions alone; this one has `tt.call`",
        ),
    ],
)  # fmt: skip
def test_bad_text_is_refused(text, message):
    with pytest.raises(PassError) as caught:
        parse_ttir(text)
    assert caught.value.message == message
