"""`build --check`: which units are built again, and what is told of one that comes out otherwise."""

from types import SimpleNamespace

import pytest

from precast.artifact import Facts, Finding, PassRun, StageFile, UnitResult
from precast.graph.checking import choose_samples, compare

FACTS = Facts("kernel", ())
MAY = "may use the time, chance, or what lies elsewhere"
RUN = PassRun("mark", "python", "ttgir", "end", (), "12ab", True)


def built(*digests, facts=FACTS, passes=(), findings=()):
    stages = tuple(StageFile(*each, "key", False) for each in zip(("ttir", "ttgir", "llir"), digests, strict=True))
    return UnitResult("unit", digests[-1], facts, stages, passes, findings)


def told(one, other, *passes):
    uses = tuple(SimpleNamespace(name=name, stage=stage) for name, stage in passes)
    return compare(SimpleNamespace(name="unit", planned=SimpleNamespace(passes=uses)), one, other)


@pytest.mark.parametrize(
    ("digests", "passes", "stage", "hint"),
    [
        ("xbc", (), "ttir", f"the kernel's module {MAY}"),
        ("xyz", (("mark", "ttgir"),), "ttir", f"the kernel's module {MAY}"),
        ("axz", (("mark", "ttgir"), ("late", "llir")), "ttgir", f"`mark` {MAY}"),
        ("abx", (("mark", "ttgir"),), "llir", "the compiler is not at rest"),
    ],
)
def test_the_first_stage_that_differs_is_told_with_what_acts_there(digests, passes, stage, hint):
    found = told(built(*"abc"), built(*digests), *passes)
    assert (found.stage, found.hint) == (stage, hint)
    assert found.message == f"built again from nothing, stage {stage} comes out otherwise"


@pytest.mark.parametrize(
    "other",
    [{"facts": Facts("other", ())}, {"passes": (RUN,)}, {"findings": (Finding("count", "1"),)}],
)
def test_what_stands_beside_an_image_must_come_out_alike(other):
    assert told(built(*"abc"), built(*"abc")) is None
    found = told(built(*"abc"), built(*"abc", **other))
    assert found.message == "built again from nothing, its facts or findings are others"


def units(count):
    return [SimpleNamespace(name=f"unit {number}", given=SimpleNamespace(key="key")) for number in range(count)]


@pytest.mark.parametrize(("percent", "count"), [(0, 10), (1, 10), (1.04, 11), (5, 50), (100, 1000)])
def test_a_share_that_is_no_whole_number_is_rounded_up(percent, count):
    assert len(choose_samples(units(1000), percent)) == count
    assert choose_samples(units(1000), percent) == choose_samples(units(1000)[::-1], percent)


def test_half_of_the_samples_were_taken_from_a_store_where_there_are_so_many():
    every = units(1000)
    reused = {each.name for each in every[:500]}
    for some, expected in ((reused, 5), ({"unit 1", "unit 2"}, 2)):
        names = [each.name for each in choose_samples(every, 1, some)]
        assert len(set(names)) == 10 and len([name for name in names[:5] if name in some]) == expected
    assert {each.name for each in choose_samples(every, 10, reused)} - reused  # the other half may be any
    assert len({each.name for each in choose_samples(units(6), 1, {"unit 0"})}) == 6
