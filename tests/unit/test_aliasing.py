"""Which accesses of a kernel may meet: what is the same address, what comes from which argument, what none can tell."""

import pytest

from precast.engines.cpu.aliasing import Addresses
from precast.engines.cpu.reader import parse_ttir

P = "!tt.ptr<f32>"
LOOP = f"""
    %r:3 = "scf.for"(%one, %n, %one, %x, %y, %x) ({{
    ^bb0(%i: i32, %p: {P}, %q: {P}, %s: {P}):
      %p1 = "tt.addptr"(%p, %one) : ({P}, i32) -> {P}
      %q1 = "tt.addptr"(%q, %i) : ({P}, i32) -> {P}
      %s1 = "tt.load"(%s) : ({P}) -> {P}
      "scf.yield"(%p1, %q1, %s1) : ({P}, {P}, {P}) -> ()
    }}) : (i32, i32, i32, {P}, {P}, {P}) -> ({P}, {P}, {P})
"""
TEXT = f"""
"builtin.module"() ({{
  "tt.func"() <{{function_type = ({P}, {P}, i32, i1) -> (), sym_name = "k", sym_visibility = "public"}}> ({{
  ^bb0(%x: {P}, %y: {P}, %n: i32, %c: i1):
    %one = "arith.constant"() <{{value = 1 : i32}}> : () -> i32
    %two = "arith.constant"() <{{value = 2 : i32}}> : () -> i32
    %a = "tt.addptr"(%x, %one) : ({P}, i32) -> {P}
    %b = "tt.addptr"(%x, %one) : ({P}, i32) -> {P}
    %d = "tt.addptr"(%x, %two) : ({P}, i32) -> {P}
    %e = "tt.addptr"(%y, %one) : ({P}, i32) -> {P}
    %g = "arith.select"(%c, %x, %y) : (i1, {P}, {P}) -> {P}
    %h = "tt.addptr"(%g, %one) : ({P}, i32) -> {P}
    %l = "tt.load"(%a) : ({P}) -> f32
    %m = "tt.load"(%a) : ({P}) -> f32
{LOOP}    "tt.return"() : () -> ()
  }}) {{noinline = false}} : () -> ()
}}) : () -> ()
"""
NAMES = ("one", "two", "a", "b", "d", "e", "g", "h", "l", "m")


@pytest.fixture(scope="module")
def function():
    return parse_ttir(TEXT)[0]


@pytest.fixture(scope="module")
def values(function):
    arguments = dict(zip("xync", function.blocks[0].arguments, strict=True))
    *simple, loop, _ = [each for each in function.operation.body.operations]
    named = {name: each.result for name, each in zip(NAMES, simple, strict=True)}
    inner = dict(zip("ipqs", loop.body.arguments, strict=True))
    return {**arguments, **named, **inner, **{f"r{index}": each for index, each in enumerate(loop.results)}}


@pytest.fixture(scope="module")
def addresses(function):
    return Addresses(function, strict=False)


BASES = {"x": "x", "a": "x", "d": "x", "e": "y", "g": None, "h": None, "p": "x", "q": "y", "s": None}
BASES |= {"r0": "x", "r1": "y", "r2": None}


@pytest.mark.parametrize("name", BASES)
def test_the_argument_that_a_pointer_comes_from(addresses, values, name):
    base = BASES[name]
    assert addresses.base(values[name]) is (values[base] if base else None)


SAME = {("a", "a"): True, ("a", "b"): True, ("a", "d"): False, ("a", "e"): False, ("one", "two"): False}
SAME |= {("l", "m"): False, ("x", "y"): False, ("p", "a"): False}  # memory may change between two loads


@pytest.mark.parametrize("pair", SAME)
def test_what_is_computed_alike_is_the_same(addresses, values, pair):
    assert addresses.same(*(values[name] for name in pair)) is SAME[pair]


@pytest.mark.parametrize(("pair", "moved", "strict", "overlap"), [
    (("a", "b"), False, False, False),
    (("a", "b"), True, False, True),
    (("a", "d"), False, False, True),
    (("a", "e"), False, False, False),
    (("a", "e"), True, False, False),
    (("a", "e"), False, True, True),
    (("a", "b"), False, True, False),
    (("h", "e"), False, False, True),
    (("e", "h"), False, False, True),
    (("p", "q"), False, False, False),
    (("s", "q"), False, False, True),
])  # fmt: skip
def test_accesses_that_may_meet(function, values, pair, moved, strict, overlap):
    found = Addresses(function, strict).may_overlap(*(values[name] for name in pair), moved)
    assert found is overlap
