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
