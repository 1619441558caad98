"""Values as JSON: the same back, and one error for every other text."""

from dataclasses import dataclass

import pytest

from precast.codec import CodecError, from_data, from_json, to_json


@dataclass(frozen=True)
class Inner:
    name: str
    sizes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Outer:
    inner: Inner
    limit: str | int | float | bool | None = None


def test_value_comes_back():
    value = Outer(Inner("ü", (1, 2)), 0.5)
    assert from_json(to_json(value), Outer) == value
    assert to_json(value) == '{"inner":{"name":"ü","sizes":[1,2]},"limit":0.5}'


WRONG = {
    "nothing": b"",
    "half": b'{"inner":',
    "bytes": b"\xff\xfe",
    "deep": b"[" * 100_000,
    "list": b"[]",
    "null": b"null",
    "number": b"3",
    "no field": b"{}",
    "other field": b'{"inner":{"name":"a"},"more":1}',
    "field is null": b'{"inner":null}',
    "list for a value": b'{"inner":[1]}',
    "no list": b'{"inner":{"name":"a","sizes":3}}',
    "list of others": b'{"inner":{"name":"a","sizes":["x"]}}',
    "no scalar": b'{"inner":{"name":"a"},"limit":[]}',
}


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG)
def test_any_other_text_is_one_error(text):
    with pytest.raises(CodecError):
        from_json(text, Outer)


def test_data_of_another_shape_is_the_same_error():
    with pytest.raises(CodecError, match="not what a Outer is"):
        from_data({"inner": 3}, Outer)
