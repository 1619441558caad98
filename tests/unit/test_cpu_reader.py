"""TTIR text into the CPU engine's IR: pretty and generic forms are one, places are kept, bad text is refused."""

import pytest

from precast.engines.cpu.ir import Dense, Type
from precast.engines.cpu.reader import parse_ttir
from precast.errors import PassError, Place

PRETTY = """
#loc = loc("k.py":3:1)
module {
  tt.func public @k(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32} loc("x"(#loc)), %n: i32 loc("n"(#loc))) attributes {noinline = false} {
    %cst = arith.constant dense<0xFF800000> : tensor<64xf32> loc(#loc)
    %c1 = arith.constant 1 : i32
    %0 = tt.get_program_id y : i32 loc(#loc4)
    %1 = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %2 = tt.splat %n : i32 -> tensor<64xi32>
    %3 = arith.cmpi ult, %1, %2 : tensor<64xi32>
    %4 = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %5 = tt.addptr %4, %1 : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %6 = tt.load %5, %3, %cst evictionPolicy = evict_last : tensor<64x!tt.ptr<f32>> loc(#loc2)
    %7 = scf.for %i = %c1 to %n step %c1 iter_args(%a = %6) -> (tensor<64xf32>)  : i32 {
      scf.yield %a : tensor<64xf32>
    } {tt.num_stages = 3 : i32}
    tt.store %5, %7, %3 : tensor<64x!tt.ptr<f32>>
    tt.return
  }
}
#loc1 = loc("k.py":7:9)
#loc2 = loc(callsite(#loc1 at #loc3))
#loc3 = loc("k.py":9:5)
#loc4 = loc("row"(#loc1))
"""  # noqa: E501
GENERIC = """
"builtin.module"() ({
  "tt.func"() <{function_type = (!tt.ptr<f32>, i32) -> (), sym_name = "k", sym_visibility = "public"}> ({
  ^bb0(%arg0: !tt.ptr<f32>, %arg1: i32):
    %0 = "arith.constant"() <{value = dense<0xFF800000> : tensor<64xf32>}> : () -> tensor<64xf32>
    %1 = "tt.get_program_id"() <{axis = 1 : i32}> : () -> i32
    %2 = "tt.splat"(%arg1) : (i32) -> tensor<64xi32>
    %3 = "arith.cmpi"(%2, %2) <{predicate = 6 : i64}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi1>
    "tt.return"() : () -> ()
  }) {noinline = false} : () -> ()
}) : () -> ()
"""


def operations(text):
    function = parse_ttir(text)[0]
    return function, {op.name: op for op in function.operation.walk()}


def test_pretty_text():
    function, found = operations(PRETTY)
    assert (function.name, function.arguments, function.public) == ("k", ("x", "n"), True)
    assert found["arith.cmpi"].attributes["predicate"] == "ult"
    assert found["tt.get_program_id"].attributes["axis"] == 1
    assert found["tt.load"].result.type == Type("f32", (64,))
    assert len(found["tt.load"].operands) == 3
    assert found["scf.for"].result.type == Type("f32", (64,))
    assert found["tt.addptr"].result.type == Type("ptr", (64,), "f32")


def test_places_name_the_users_own_line():
    _, found = operations(PRETTY)
    assert found["tt.load"].where == Place("k.py", 9, 5), "the call site, not the helper"
    assert found["tt.get_program_id"].where == Place("k.py", 7, 9)
    assert found["tt.make_range"].where is None


def test_generic_text_is_the_same():
    function, found = operations(GENERIC)
    assert (function.name, function.public) == ("k", True)
    assert found["arith.cmpi"].attributes["predicate"] == "ult"
    assert found["tt.get_program_id"].attributes["axis"] == 1
    assert found["arith.constant"].attributes["value"] == Dense((float("-inf"),), True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "module { tt.func @k() { tt.return %x : i32 } }",
            "line 1: expected a value that is defined above, found `%x`",
        ),
        ("module {\n  tt.func public @k() {\n", "line 3: expected more text, found the end"),
        ("module { § }", "line 1: unexpected `§`"),
    ],
)  # fmt: skip
def test_bad_text_is_refused(text, message):
    with pytest.raises(PassError) as caught:
        parse_ttir(text)
    assert caught.value.message == f"TTIR text, {message}"
