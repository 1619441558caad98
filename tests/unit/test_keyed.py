"""Keys of values: every field counts, and a value that holds keyed ones takes their keys."""

from dataclasses import dataclass, field

from precast.keyed import Keyed


@dataclass(frozen=True)
class Part(Keyed):
    number: int | bool | str
    where: str = field(default="", compare=False)


@dataclass(frozen=True)
class Other(Keyed):
    number: int


@dataclass(frozen=True)
class Whole(Keyed):
    name: str
    parts: tuple[Part, ...] = ()
    one: Part | None = None


def test_equal_values_have_equal_keys():
    assert Part(1).key == Part(1).key == Part(1, where="elsewhere").key


def test_whatever_differs_changes_the_key():
    parts = (Part(1), Part(2))
    values = [
        Part(1), Part(2), Part(True), Part("1"), Other(1), Whole("a"), Whole("b"), Whole("a", parts),
        Whole("a", parts[::-1]), Whole("a", parts[:1]), Whole("a", (), Part(1)), Whole("a", (), Part(2)),
    ]  # fmt: skip
    assert len({each.key for each in values}) == len(values)


@dataclass(frozen=True)
class Plain:
    value: int | bool | str | tuple[Part, ...]
    where: str = field(default="", compare=False)


@dataclass(frozen=True)
class Around(Keyed):
    inside: tuple[tuple[str, Plain], ...] | Plain


def test_values_inside_values_count_with_their_types():
    values = [Around(Plain(1)), Around(Plain(True)), Around(Plain("1")), Around(Plain((Part(1),))),
              Around((("a", Plain(1)),)), Around((("b", Plain(1)),)), Around((("a", Plain((Part(2),))),))]  # fmt: skip
    assert len({each.key for each in values}) == len(values)
    assert Around(Plain(1, "here")).key == Around(Plain(1, "there")).key
