"""The references' own parts against published facts: element types bit by bit, Philox's known answers, gaps."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_cases import CASES
from kernel_cases.case import blank, filled
from kernel_cases.dtypes import FP8, decode, encode, fp8_values, round_to
from kernel_cases.tokens import philox, uniform


@pytest.mark.parametrize(
    ("element", "code", "value"),
    [
        ("fp8e4nv", 0x7E, 448.0), ("fp8e4nv", 0x38, 1.0), ("fp8e4nv", 0x01, 2.0**-9), ("fp8e4nv", 0x80, 0.0),
        ("fp8e5", 0x7B, 57344.0), ("fp8e5", 0x3C, 1.0), ("fp8e5", 0xFC, -np.inf), ("fp8e5", 0x01, 2.0**-16),
        ("fp8e4b8", 0x7F, 240.0), ("fp8e4b8", 0x40, 1.0), ("fp8e5b16", 0x7F, 57344.0), ("fp8e5b16", 0x40, 1.0),
        ("bf16", 0x3F80, 1.0), ("bf16", 0xC049, -3.140625), ("fp16", 0x7BFF, 65504.0),
    ],
)  # fmt: skip
def test_codes_of_element_types(element: str, code: int, value: float) -> None:
    storage = np.array([code], np.uint8 if element in FP8 else np.uint16)
    assert decode(storage.view(np.float16) if element == "fp16" else storage, element) == value


@pytest.mark.parametrize("element", sorted(FP8))
def test_fp8_survives_a_round_trip(element: str) -> None:
    values = fp8_values(element)
    finite = values[np.isfinite(values)]
    assert np.array_equal(round_to(finite, element), finite)
    assert np.array_equal(round_to([1e9, -1e9], element), [FP8[element].largest, -FP8[element].largest])


def test_halves_round_to_even() -> None:
    assert np.array_equal(round_to([1 + 2.0**-4, 1 + 3 * 2.0**-4], "fp8e4nv"), [1.0, 1.25])
    assert np.array_equal(round_to([1 + 2.0**-8, 1 + 3 * 2.0**-8], "bf16"), [1.0, 1 + 2.0**-6])


def test_philox_gives_the_published_words() -> None:
    words = philox(0, np.zeros(1, np.uint32))
    assert [int(word[0]) for word in words] == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]


def test_uniform_numbers_stay_below_one() -> None:
    assert uniform(np.array([0x7FFFFFFF, 0x80000000], np.uint32)).max() < 1
    assert uniform(np.array([0, 0xFFFFFFFF], np.uint32)).tolist() == [0, 0]


def test_a_write_into_a_gap_is_seen() -> None:
    array = blank("fp16", (2, 3), gap=5, slack=1)
    array.data[3] = 1.0  # the slack
    assert array.broken_gaps() == 0
    array.data[4] = 1.0
    assert array.broken_gaps() == 1


def test_arrays_read_what_was_written() -> None:
    values = np.arange(6.0).reshape(2, 3)
    for element in ("i8", "fp16", "bf16", "fp32", "fp8e5"):
        array = filled(values, element, gap=2)
        assert np.array_equal(array.values(), values)
        assert np.array_equal(encode(values, element), array.view())


@pytest.mark.parametrize("kernel", sorted(CASES))
def test_three_shapes_and_one_is_ragged(kernel: str) -> None:
    shapes = CASES[kernel].shapes
    if kernel != "echo_scalars":
        assert len(shapes) >= 3
        assert any(any(size % 8 for size in shape) for shape in shapes)
