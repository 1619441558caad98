"""Which configs ship, and which is taken for what size: held to small tables that are worked out by hand."""

import math
import random

import pytest

from precast.tuning.buckets import BUCKET, DEFAULT, EXACT, Measured, make_rows
from precast.tuning.choosing import choose_configs, choose_default, mean_of, slowdowns


def compute(expression, sizes):
    """A condition's left side: sizes that are multiplied."""
    return math.prod(sizes[name] for name in expression.split(" * "))


def find_row(rows, sizes, axes=None):
    """The first row that holds, as the runtime takes it."""
    relations = {"==": int.__eq__, ">=": int.__ge__, "<": int.__lt__}
    for row in rows:
        agrees = all((axes or {}).get(name, value) == value for name, value in row.axes)
        if agrees and all(relations[how](compute(name, sizes), bound) for name, how, bound in row.conditions):
            return row
    raise AssertionError("no row holds")


def test_slowdowns_are_over_the_best():
    assert slowdowns([2.0, None, 1.0]) == (2.0, 100.0, 1.0)
    assert slowdowns([None, None]) == (100.0, 100.0)


def test_each_config_taken_lowers_the_geometric_mean_most():
    #        author, all-rounder, best of the first, best of the others
    times = [[8.0, 2.0, 1.0, 8.0], [8.0, 2.0, 8.0, 1.0], [8.0, 2.0, 8.0, 1.0]]
    assert choose_configs(times, 0, (), 2) == (0, 1)
    assert choose_configs(times, 0, (), 3) == (0, 1, 3)
    assert choose_configs(times, 0, (), 8) == (0, 1, 3, 2)


def test_of_equal_means_the_better_worst_case_is_taken():
    # Over the best: (9, 9), (1, 4), (2, 2), (9, 1): the second and the third are 2 on average.
    times = [[9.0, 1.0, 2.0, 9.0], [9.0, 4.0, 2.0, 1.0]]
    assert choose_configs(times, 0, (), 2) == (0, 2)


def test_what_ships_already_stays_where_it_is_as_good_as_the_best():
    times = [[4.0, 1.0, 1.015], [4.0, 1.0, 1.015]]
    assert choose_configs(times, 0, (), 2) == (0, 1)
    assert choose_configs(times, 0, (2,), 2) == (0, 2)
    assert choose_configs([[4.0, 1.0, 1.03], [4.0, 1.0, 1.03]], 0, (2,), 2) == (0, 1)


def test_the_authors_config_ships_and_nothing_does_that_gains_nothing():
    assert choose_configs([[1.0, 1.0, 5.0]], 0, (), 8) == (0,)
    assert choose_configs([[1.0, 1.0, 5.0]], 2, (), 8) == (2, 0)
    assert choose_configs([[1.0, 1.0, 1.0]], 0, (1,), 8) == (0,)


def test_a_config_that_does_not_run_is_the_last_resort():
    times = [[None, 3.0, 1.0], [1.0, 2.0, None]]
    assert choose_configs(times, 0, (), 2) == (0, 2)
    assert choose_default(times, (0, 1, 2)) == 1


def test_eight_of_many_come_close_to_the_best():
    generator = random.Random(7)
    times = [[math.exp(generator.random()) for _ in range(48)] for _ in range(36)]
    reached = {}
    for most in (1, 4, 8):
        chosen = choose_configs(times, 0, (), most)
        assert len(chosen) == most == len(set(chosen))
        reached[most] = mean_of(min(slowdowns(row)[number] for number in chosen) for row in times)
    assert reached[8] < reached[4] < reached[1]


SIZES = [(16, [1.0, 2.0, 4.0]), (256, [2.0, 1.0, 1.5]), (4096, [4.0, 3.0, 1.0])]
ONE = [Measured({}, {"n": size}, times) for size, times in SIZES]


def test_a_measured_size_gets_the_best_that_ships():
    rows = make_rows(ONE, (0, 1, 2))
    assert [find_row(rows, {"n": size}).config for size, _ in SIZES] == [0, 1, 2]
    assert {find_row(rows, {"n": size}).tier for size, _ in SIZES} == {EXACT}
    rows = make_rows(ONE, (0, 2))
    assert [find_row(rows, {"n": size}).config for size, _ in SIZES] == [0, 2, 2]


def test_between_two_sizes_the_least_bad_on_both_is_taken():
    rows = make_rows(ONE, (0, 1, 2))
    # Between 16 and 256: 0 has (1, 2), 1 has (2, 1), 2 has (4, 1.5); the first two are even, and 1 is the default.
    assert find_row(rows, {"n": 100}).config == 1
    # Between 256 and 4096: 0 has (2, 4), 1 has (1, 3), 2 has (1.5, 1).
    between = find_row(rows, {"n": 1000})
    assert (between.config, between.tier) == (2, BUCKET)
    assert find_row(rows, {"n": 257}).config == 2 and find_row(rows, {"n": 4095}).config == 2


def test_beyond_the_measured_sizes_the_nearest_counts():
    rows = make_rows(ONE, (0, 1, 2))
    assert find_row(rows, {"n": 1}).config == 0
    assert find_row(rows, {"n": 1 << 40}).config == 2


def test_the_bracketing_sizes_are_those_with_the_same_other_sizes():
    """Where a model has fixed weights and the batch alone grows, other weights are no matter."""
    problems = [
        Measured({}, {"m": m, "k": k}, times)
        for (m, k), times in {
            (16, 64): [1.0, 3.0, 9.0], (1024, 64): [1.0, 3.0, 9.0],
            (16, 512): [9.0, 3.0, 1.0], (1024, 512): [9.0, 3.0, 1.0],
        }.items()
    ]  # fmt: skip
    rows = make_rows(problems, (0, 1, 2))
    assert find_row(rows, {"m": 300, "k": 64}).config == 0
    assert find_row(rows, {"m": 300, "k": 512}).config == 2
    assert find_row(rows, {"m": 300, "k": 200}).config == 1  # least bad on (16, 64) and (1024, 512)


def test_given_axes_part_the_rows_and_others_get_the_default_of_all():
    problems = [Measured({"dtype": "fp16"}, {"n": 8}, [1.0, 2.0]), Measured({"dtype": "fp32"}, {"n": 8}, [9.0, 1.0])]
    rows = make_rows(problems, (0, 1))
    assert [find_row(rows, {"n": 8}, {"dtype": kind}).config for kind in ("fp16", "fp32")] == [0, 1]
    assert [find_row(rows, {"n": 9}, {"dtype": kind}).config for kind in ("fp16", "fp32")] == [0, 1]
    other = find_row(rows, {"n": 8}, {"dtype": "bf16"})
    assert (other.tier, other.config, other.axes) == (DEFAULT, 1, ())


@pytest.mark.parametrize("seed", range(3))
def test_rows_part_all_sizes_and_change_nothing_by_their_order(seed):
    """Whatever the sizes are, one bucket holds at most, and it is the same for the same evidence."""
    generator = random.Random(seed)
    problems = [
        Measured({}, {"m": generator.choice([1, 16, 100, 4096]), "n": generator.randrange(1, 9000)},
                 [math.exp(generator.random()) for _ in range(6)])
        for _ in range(12)
    ]  # fmt: skip
    chosen = choose_configs([each.times for each in problems], 0, (), 4)
    rows = make_rows(problems, chosen)
    assert rows == make_rows(problems, chosen)
    relations = {"==": int.__eq__, ">=": int.__ge__, "<": int.__lt__}
    for _ in range(200):
        sizes = {"m": generator.randrange(1, 9000), "n": generator.randrange(1, 20000)}
        held = [
            row
            for row in rows
            if row.tier == BUCKET
            and all(relations[how](compute(name, sizes), bound) for name, how, bound in row.conditions)
        ]
        assert len(held) <= 1, sizes
        assert find_row(rows, sizes).config in chosen


def test_many_sizes_make_a_table_of_a_bounded_size():
    generator = random.Random(1)
    problems = [
        Measured({}, {name: generator.randrange(1, 9**9) for name in "mnk"}, [1 + generator.random() for _ in range(8)])
        for _ in range(60)
    ]  # fmt: skip
    rows = make_rows(problems, choose_configs([each.times for each in problems], 0, (), 8))
    assert len(problems) < len(rows) <= 4096
    assert [find_row(rows, each.sizes).tier for each in problems] == [EXACT] * len(problems)


def test_products_tell_what_single_sizes_do_not():
    """Where the number of elements decides, whatever its factors are, a size that was not measured gets its config."""

    def times(m, n):
        return [1.0, 3.0, 2.0] if m * n <= 2000 else [4.0, 1.0, 2.0]

    measured = [(m, n) for m in (8, 32, 128, 512) for n in (8, 32, 128)]
    problems = [Measured({}, {"m": m, "n": n}, times(m, n)) for m, n in measured]
    rows = make_rows(problems, (2, 0, 1))
    assert {name for row in rows if row.tier == BUCKET for name, _, _ in row.conditions} == {"m * n"}
    for m, n, config in ((1, 1000, 0), (1000, 1, 0), (2, 500, 0), (1, 5000, 1), (5000, 1, 1), (3000, 3000, 1)):
        assert find_row(rows, {"m": m, "n": n}).config == config
    few = make_rows(problems[:5], (2, 0, 1))
    assert not any(" * " in name for row in few for name, _, _ in row.conditions)


def test_a_product_of_some_sizes_beside_another():
    """Rows and columns together, and the length of the sums by itself."""

    def times(m, n, k):
        return [
            1.0 if m * n <= 2000 else 9.0,
            1.0 if m * n > 2000 and k <= 100 else 9.0,
            1.0 if m * n > 2000 < 20 * k else 9.0,
        ]

    sizes = [(m, n, k) for m in (8, 64, 512) for n in (8, 64, 512) for k in (16, 1024)]
    rows = make_rows([Measured({}, dict(zip("mnk", each, strict=True)), times(*each)) for each in sizes], (0, 1, 2))
    assert {name for row in rows if row.tier == BUCKET for name, _, _ in row.conditions} == {"m * n", "k"}
    assert find_row(rows, {"m": 1, "n": 9000, "k": 3000}).config == 2
    assert find_row(rows, {"m": 9000, "n": 1, "k": 3}).config == 1
