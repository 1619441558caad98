"""Rows of the selection table as specs state them: conditions with a number on their right side."""

import pytest

from precast.spec.problem import Condition
from precast.spec.rows import parse_condition


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("n == 4096", Condition("n", "==", 4096)),
        ("n * m <= 10", Condition("n * m", "<=", 10)),
        ("n < m", Condition("n - m", "<", 0)),
        ("cdiv(n, BLOCK) >= m + 1", Condition("cdiv(n, 64) - (m + 1)", ">=", 0)),
        ("n > LOW", Condition("n - (0 - 7)", ">", 0)),
        ("n != BLOCK", Condition("n", "!=", 64)),
    ],
)
def test_a_condition_compares_with_a_number(text, condition):
    assert parse_condition(text, ("n", "m"), {"BLOCK": 64, "LOW": -7}) == condition
