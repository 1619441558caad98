"""Argument types and unit names: text both ways, and the texts that are refused."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from precast.codec import from_json, to_json
from precast.errors import SpecError
from precast.spec.model import Argument, Hint, Spelled, Variant, format_constant, spell
from precast.spec.naming import UnitName, parse_unit_text
from precast.spec.spelling import MAXIMUM_NESTING, parse_constant, python_value
from precast.spec.types import BITS, normalise_constant, parse_type
from precast.target import ARCHITECTURES, Backend, Target

WORDS = st.sampled_from(sorted(BITS))
TYPES = st.recursive(
    WORDS
    | WORDS.map(lambda word: f"*{word}")
    | WORDS.map(lambda word: f"*k{word}")
    | WORDS.map(lambda word: f"**{word}")
    | st.tuples(WORDS, st.lists(st.sampled_from([1, 16, 128]), min_size=1, max_size=5)).map(
        lambda pair: f"tensordesc<{pair[0]}[{','.join(map(str, pair[1]))}]>"
    ),
    lambda inner: st.lists(inner, min_size=1, max_size=3).map(lambda items: f"({', '.join(items)})"),
    max_leaves=5,
)
WORDS = st.sampled_from(["tl.float16", "none", "nan", Spelled("modes:Mode.FAST")])
SIMPLE = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | WORDS
CONSTANTS = st.recursive(SIMPLE, lambda items: st.lists(items, max_size=3).map(tuple), max_leaves=6).map(spell)
NAMES = st.text(string.ascii_letters, min_size=1, max_size=8)
TARGETS = st.sampled_from([Target(backend.value, arch) for backend in Backend for arch in ARCHITECTURES[backend]])


@given(TYPES)
def test_types_round_trip(text):
    assert str(parse_type(text)) == text
    assert parse_type(str(parse_type(text))) == parse_type(text)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        (" i32 ", "i32"),
        ("(i32,*fp16)", "(i32, *fp16)"),
        ("((i8, i8), fp32)", "((i8, i8), fp32)"),
        ("tensordesc<fp16[ 128 , 64 ]>", "tensordesc<fp16[128,64]>"),
        ("tensordesc<fp16[64,64],NVMMASharedLayout(128, 16)>", "tensordesc<fp16[64,64],NVMMASharedLayout(128, 16)>"),
        ("none", "none"),
    ],
)
def test_canonical_spelling(text, canonical):
    assert str(parse_type(text)) == canonical


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("float16", "unknown type `float16`"),
        ("*", "unknown type `*`"),
        ("*none", "unknown type `*none`"),
        ("*(i32, i32)", "unknown type `*(i32, i32)`"),
        ("", "unknown type ``"),
        ("(i32, i33)", "unknown type `i33`"),
        ("tensordesc<fp16>", "`tensordesc<fp16>` is not a tensor descriptor"),
        ("tensordesc<half[128]>", "unknown type `half`"),
        (
            "tensordesc<fp16[96,64]>",
            "`tensordesc<fp16[96,64]>`: a block has at most 5 dimensions, each a power of two",
        ),
    ],
)
def test_refused_types(text, message):
    with pytest.raises(SpecError) as caught:
        parse_type(text)
    assert caught.value.message == message


def test_scalar_words_inside_a_type():
    assert parse_type("(i32, *kfp16, tensordesc<fp8e5[16]>, none)").elements() == ("i32", "fp16", "fp8e5")


@pytest.mark.parametrize(
    ("text", "triton"),
    [("tl.fp16", "tl.float16"), ("tl.bfloat16", "tl.bfloat16"), ("tl.fp8e4nv", "tl.float8e4nv"), ("relu", "relu")],
)
def test_data_type_constants(text, triton):
    assert normalise_constant(text) == triton


def test_data_types_are_triton_s():
    import triton.language as tl

    from precast.spec.types import TRITON_NAMES

    for name in TRITON_NAMES.values():
        assert isinstance(getattr(tl, name), tl.dtype)


@given(CONSTANTS)
def test_constants_round_trip(value):
    back = parse_constant(format_constant(value))
    assert (type(back), back) == (type(value), value)
    argument = Argument("a", "constexpr", constant=True, value=value)
    assert from_json(to_json(argument), Argument) == argument


@pytest.mark.parametrize("value", [2**63, -(2**64), float("inf"), -0.0, (), (1,), (2**70, (True, None, "x y"), 1.0)])
def test_what_a_spelling_stands_for(value):
    spelled = spell(value)
    assert isinstance(spelled, Spelled)
    assert repr(python_value(spelled)) == repr(value)


def test_a_tuple_s_items_differ_as_python_s_do():
    assert len({spell((1,)), spell((True,)), spell((1.0,)), spell(("1",)), spell((0.0,)), spell((-0.0,))}) == 6


@pytest.mark.parametrize(
    "text", ["(", "(1", "1)", "()1", "(1 2)", "(" * (MAXIMUM_NESTING + 1) + ")" * (MAXIMUM_NESTING + 1)]
)
def test_refused_constants(text):
    with pytest.raises(SpecError):
        parse_unit_text(f"softmax:SHAPE={text}@cuda:90")


@given(
    NAMES,
    st.lists(st.tuples(NAMES, CONSTANTS), max_size=4),
    st.lists(st.tuples(NAMES, st.sampled_from([1, 16])), max_size=3),
    TARGETS,
)
def test_unit_names_round_trip(kernel, values, hints, target):
    name = UnitName(Variant(kernel, tuple(values), tuple(Hint(*hint) for hint in hints)), target)
    assert parse_unit_text(str(name)) == name


def test_unit_name_s_parts():
    name = parse_unit_text("softmax:dtype=fp16,BLOCK=1024,CAUSAL=true,stride%16,n==1@cuda:90")
    assert name.variant.values == (("dtype", "fp16"), ("BLOCK", 1024), ("CAUSAL", True))
    assert name.variant.hints == (Hint("stride", 16), Hint("n", 1))
    assert str(name) == "softmax:dtype=fp16,BLOCK=1024,CAUSAL=true,stride%16,n==1@cuda:90"
    assert parse_unit_text("softmax@cpu:x86-64-v3").variant == Variant("softmax", ())


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("softmax", "no `@target` at its end"),
        (":BLOCK=1@cuda:90", "no kernel name at its start"),
        ("softmax:BLOCK@cuda:90", "`:BLOCK` is not understood"),
        ("softmax,BLOCK=1@cuda:90", "`,BLOCK=1` is not understood"),
        ("softmax:BLOCK=1:N=2@cuda:90", "`:N=2` is not understood"),
        ("softmax:BLOCK=1,@cuda:90", "`,` is not understood"),
    ],
)
def test_refused_unit_names(text, cause):
    with pytest.raises(SpecError) as caught:
        parse_unit_text(text)
    assert caught.value.message == f"`{text}` is not a unit: {cause}"
