"""Which unit a call of Python means: None, numbers by their value, promises, what nothing decides. `choice_units` has
the kernels; C's calls are in `choice_scenarios.c`."""

from __future__ import annotations

import random

import numpy as np
import pytest
import table_rules
from conftest import aligned

# The units of `numbers` in the spec's order.
INTEGERS, REALS = ("u8", "i64", "i32", "u64", "i1"), ("fp64", "none", "fp32")


@pytest.fixture
def unit() -> np.ndarray:
    return np.full(1, -1, np.int64)


def refusal(small, call) -> str:
    with pytest.raises(small.LaunchError) as caught:
        call()
    assert caught.value.status in (6, 7, 13)
    return str(caught.value)


def test_none_is_what_an_absent_argument_takes(small, unit, x):
    for w, number in ((None, 0), (x, 1), (x.astype("float64"), 2), (0, 0), (np.empty(0, np.float32), 1)):
        small.biased(unit, w, 1)
        assert unit[0] == number
    small.biased(unit, x.ctypes.data, 1, W="*fp64")
    assert unit[0] == 2
    host = "cpu:x86-64-v2"
    assert refusal(small, lambda: small.biased(unit, x, 1, W="none")) == (
        f'argument `w` of `biased` is given, biased:W="none"@{host} takes a null pointer or None alone'
    )
    assert refusal(small, lambda: small.biased(unit, None, 1, W="*fp32")) == (
        f"argument `w` of `biased` is None, biased:W=*fp32@{host} takes a tensor"
    )
    assert "argument `w` of `biased` is i64" in refusal(small, lambda: small.biased(unit, unit, 1))
    assert refusal(small, lambda: small.count(None, 0)) == (
        "argument `counts` of `count` is None, and no variant is without it; a null pointer is said as 0"
    )


class EmptyTensor:
    """An empty tensor as torch gives it: without an address."""

    dtype, shape, nbytes = "torch.float32", (0,), 0

    def data_ptr(self) -> int:
        return 0

    def get_device(self) -> int:
        return -1


def test_an_empty_tensor_is_not_absent(small, unit):
    small.biased(unit, EmptyTensor(), 1)
    assert unit[0] == 1


@pytest.mark.parametrize(
    ("n", "integer"),
    [(5, "i32"), (-(2**31), "i32"), (2**31 - 1, "i32"), (2**31, "i64"), (-(2**31) - 1, "i64"), (-(2**63), "i64"),
     (2**63 - 1, "i64"), (2**63, "u64"), (2**64 - 1, "u64"), (True, "i1"), (False, "i1"), (0, "i32"),
     (np.int64(5), "i32"), (np.uint64(2**63), "u64")],
)  # fmt: skip
def test_integers_mean_the_type_that_triton_gives_them(small, unit, n, integer):
    for alpha, real in ((0.0, "fp32"), (2, "fp32"), (1e300, "fp32"), (None, "none")):
        small.numbers(unit, n, alpha)
        assert unit[0] == INTEGERS.index(integer) * 3 + REALS.index(real)


def test_numbers_whose_type_is_said(small, unit):
    for name in INTEGERS:
        small.numbers(unit, 1, 1.0, T=name, A="fp64")
        assert unit[0] == INTEGERS.index(name) * 3
    assert refusal(small, lambda: small.numbers(unit, -1, 1.0, T="u8")) == (
        "argument `n` is -1, which does not fit in u8"
    )
    assert refusal(small, lambda: small.numbers(unit, 2**63, 1.0, T="i64")) == (
        "argument `n` is 9223372036854775808, which does not fit in i64"
    )
    assert "`alpha` of `numbers` is None, " in refusal(small, lambda: small.numbers(unit, 1, None, A="fp32"))
    assert "`alpha` of `numbers` is given, " in refusal(small, lambda: small.numbers(unit, 1, 1.0, A="none"))
    with pytest.raises(OverflowError):
        small.numbers(unit, 2**64, 1.0)
    with pytest.raises(TypeError):
        small.numbers(unit, None, 1.0)


def test_promises_beside_hints(small, unit):
    whole = aligned(64)
    for n, number in ((64, 0), (-64, 0), (32, 1), (96, 1)):
        small.promised(unit, whole, n)
        assert unit[0] == number
    assert refusal(small, lambda: small.promised(unit, whole, -16)).endswith("promises align = 64, and it is -16")
    assert refusal(small, lambda: small.promised(unit, whole, 33)).endswith("promises align = 32, and it is 33")
    for offset in (4, 1):
        other = aligned(64, offset=offset)
        assert refusal(small, lambda other=other: small.promised(unit, other, 64)).endswith(
            f"promises align = 64, and its address is {other.ctypes.data:#x}"
        )


@pytest.mark.parametrize(
    ("offset", "n", "m", "number"),
    [(0, 1, 1, 3), (0, 1, 16, 1), (0, 16, 16, 1), (0, 32, 7, 2), (0, 1, 2, 0), (1, 1, 1, 0), (1, 1, 16, 0),
     (0, 7, 0, 1)],
)  # fmt: skip
def test_hint_sets_hold_together_and_the_most_hints_win(small, unit, offset, n, m, number):
    small.joint(unit, aligned(64, offset=offset), n, m)
    assert unit[0] == number


def test_a_set_without_hints_is_not_implied(small, unit):
    said = refusal(small, lambda: small.joint(unit, aligned(64), 2, 2))
    assert said == (
        "no variant of `joint` takes these arguments; nearest: joint:n==1@cpu:x86-64-v2, which asks for n==1 (it is 2)"
    )


def test_a_pinned_argument_is_a_promise_and_chooses(small, unit):
    for size, number in ((64, 0), (128, 1)):
        small.pinned(unit, 1, -7, size)
        assert unit[0] == number
    for arguments, said in (
        ((2, -7, 64), "argument `one` of `pinned` promises equal = 1, and it is 2"),
        ((1, 7, 64), "argument `low` of `pinned` promises equal = -7, and it is 7"),
        ((1, -7, 63), "argument `size` of `pinned` promises equal = 64, and it is 63"),
    ):
        assert refusal(small, lambda arguments=arguments: small.pinned(unit, *arguments)) == said
    assert refusal(small, lambda: small.pinned(unit, 1, -7, 64, BLOCK=128)).endswith("equal = 128, and it is 64")


def test_requirements_filter_the_variants(small, unit):
    for n, number in ((10, 1), (16, 0), (64, 0), (65, 3), (112, 2), (256, 2)):
        small.bounded(unit, n, 0)
        assert unit[0] == number
    small.bounded(unit, 10, 0, BLOCK=256)
    assert unit[0] == 3


@pytest.mark.parametrize(
    ("n", "m", "axes", "said"),
    [
        (257, 0, {}, "BLOCK=256@cpu:x86-64-v2, which requires n <= BLOCK (it is 257 <= 256)"),
        (65, 0, {"BLOCK": 64}, "BLOCK=64@cpu:x86-64-v2, which requires n <= BLOCK (it is 65 <= 64)"),
        (16, 64, {}, "BLOCK=64,n%16@cpu:x86-64-v2, which requires m // n < 4 (it is 4 < 4)"),
        (0, 1, {}, "BLOCK=64,n%16@cpu:x86-64-v2, which requires m // n < 4 (it divides by zero)"),
    ],
)
def test_a_requirement_that_no_variant_meets_is_told_with_the_nearest(small, unit, n, m, axes, said):
    with pytest.raises(small.LaunchError) as caught:
        small.bounded(unit, n, m, **axes)
    assert caught.value.status == 13
    assert str(caught.value) == f"no variant of `bounded` takes these arguments; nearest: bounded:{said}"


def test_the_table_then_the_specs_first(small, unit):
    for n, number in ((1000, 0), (64, 1), (63, 2)):
        small.ordered(unit, n)
        assert unit[0] == number
        small.ordered(unit, n, BLOCK=128)
        assert unit[0] == 0


@pytest.mark.parametrize("kernel", table_rules.KERNELS)
def test_the_table_is_what_its_rows_say(small, unit, kernel):
    chance = random.Random(table_rules.SEED)
    rules = [rule for rule in table_rules.draw_rules(table_rules.SEED) if rule.kernel == kernel]
    bounds = [bound for rule in rules for _, _, bound in rule.conditions]
    rows = set()
    for _ in range(3000):
        n, m, k = (max(-(2**31), min(chance.choice(bounds) + chance.choice((-1, 0, 1)), 2**31 - 1)) for _ in range(3))
        given = {"BLOCK": chance.choice(table_rules.BLOCKS)} if chance.random() < 0.3 else {}
        rule = table_rules.find_row(rules, (n, m, k), given)
        axes = {"BLOCK": 32, "WARPS": 1, **given, **dict(rule.axes if rule else ())}
        name, *_, row = getattr(small, kernel).choose(unit, n, m, k, **given)
        wanted = f"{kernel}:BLOCK={axes['BLOCK']},WARPS={axes['WARPS']}@cpu:x86-64-v2", rule and rule.row
        assert (name, row) == wanted, f"seed {table_rules.SEED}: {(n, m, k, given)}"
        rows.add(row)
    assert len(rows) > 5  # rows, and none


def test_words_beside_numbers(small, unit):
    for number, value in enumerate((0, 4, None, True, -7)):
        small.split(unit, 1, SPLIT=value)
        assert unit[0] == number
    assert refusal(small, lambda: small.split(unit, 1, SPLIT=1)).startswith("`split` has no variant with SPLIT=1")


def test_what_is_said_is_said(small, unit):
    small.sole(unit, 1)
    small.sole(unit, 1, CAUSAL=1, EVEN=True, RATE=0.5)
    for wrong in ({"CAUSAL": 0}, {"EVEN": False}, {"RATE": 0.0}, {"RATE": -0.0}):
        said = refusal(small, lambda wrong=wrong: small.sole(unit, 1, **wrong))
        assert said.startswith("`sole` has no variant with ")


def test_real_numbers_that_are_no_ordinary_ones(small, unit):
    for number, rate in enumerate((0.5, 0.0, -0.0, float("nan"), float("-inf"))):
        small.signed(unit, 1, RATE=rate)
        assert unit[0] == number
    small.signed(unit, 1, RATE=-float("nan"))
    assert unit[0] == 3
    assert refusal(small, lambda: small.signed(unit, 1, RATE=float("inf"))) == (
        "`signed` has no variant with RATE=inf; there are -0.0, -inf, 0.0, 0.5, nan"
    )


def test_numpys_truth_values_are_truth_values(small, unit):
    small.sole(unit, 1, EVEN=np.bool_(True))
    assert unit[0] == 0
    assert "EVEN=false" in refusal(small, lambda: small.sole(unit, 1, EVEN=np.bool_(False)))
    assert "CAUSAL" in refusal(small, lambda: small.sole(unit, 1, CAUSAL=np.bool_(True)))
