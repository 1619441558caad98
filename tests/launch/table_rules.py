"""Rows of the selection table at random, and which of them a call gets by the table's own words.

`by_argument` compares its arguments with few numbers; `by_product` what is computed from them too; `by_many` so many
numbers that no list can be made of every combination; `by_factors` nothing but products, some beyond 64 bits.
"""

from __future__ import annotations

import operator
import random

from precast.launch.formats.values import Condition, SelectionRule

SEED = 20261130
KERNELS = ("by_argument", "by_product", "by_many", "by_factors")
BLOCKS, WARPS = (32, 64, 128), (1, 2)
BOUNDS = (-(2**31), -17, -1, 0, 1, 2, 3, 7, 8, 9, 64, 65, 100, 127, 128, 1000, 1024, 2**31 - 1)
RELATIONS = {
    "<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne, ">=": operator.ge, ">": operator.gt,
}  # fmt: skip
EXPRESSIONS = {
    "n": lambda n, m, k: n, "m": lambda n, m, k: m, "k": lambda n, m, k: k, "n * m": lambda n, m, k: n * m,
    "n // k": lambda n, m, k: n // k if k else None, "n * m * k": lambda n, m, k: fitting(n * m * k),
    "k * k": lambda n, m, k: k * k,
}  # fmt: skip


def fitting(value: int) -> int | None:
    """A value of 64 bits; another cannot be computed."""
    return value if -(2**63) <= value < 2**63 else None


def draw_rules(seed: int) -> list[SelectionRule]:
    chance = random.Random(seed)
    return [rule for kernel in KERNELS for rule in _draw(kernel, chance)]


def _draw(kernel: str, chance: random.Random) -> list[SelectionRule]:
    names = list(EXPRESSIONS)[: 5 if kernel == "by_product" else 3]
    names = ["n", "n * m", "n * m * k", "k * k"] if kernel == "by_factors" else names
    bounds = [*BOUNDS, *(chance.randrange(-5000, 5000) for _ in range(300))] if kernel == "by_many" else BOUNDS
    rules = []
    for number in range(400 if kernel == "by_many" else 80):
        conditions = tuple(
            Condition(each, chance.choice(list(RELATIONS)), chance.choice(bounds))
            for each in chance.choices(names, k=chance.randrange(2, 6))
        )
        axes = [("BLOCK", chance.choice(BLOCKS)), ("WARPS", chance.choice(WARPS))]
        taken = tuple(axes if chance.random() < 0.7 else chance.sample(axes, 1))
        rules.append(SelectionRule(kernel, conditions, taken, row=f"row {number}"))
    return rules


def find_row(rules: list[SelectionRule], values: tuple[int, int, int], given: dict[str, int]) -> SelectionRule | None:
    """The first row that holds and says nothing else than the call."""

    def holds(expression: str, relation: str, bound: int) -> bool:
        value = EXPRESSIONS[expression](*values)
        return value is not None and RELATIONS[relation](value, bound)

    return next((rule for rule in rules if all(holds(*each) for each in rule.conditions)
                 and all(given.get(name, value) == value for name, value in rule.axes)), None)  # fmt: skip
