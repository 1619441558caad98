"""Between which numbers an expression lies, when its names do: what no launch can meet is told by the plan.

In: an expression of the grid's language, and bounds of its names. Out: bounds of its value, of those that can be
computed; none where nothing can.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

from precast.grid import LARGEST, SMALLEST, Expression, Opcode, compute
from precast.spec.types import BITS, ArgumentType

Bounds = tuple[int, int]  # the least and the largest, both possible or beyond what is
EVERY = (SMALLEST, LARGEST)
_CORNERS = {
    Opcode.ADD, Opcode.SUBTRACT, Opcode.MULTIPLY, Opcode.DIVIDE, Opcode.CDIV, Opcode.MINIMUM, Opcode.MAXIMUM,
}  # fmt: skip
_DIVISIONS = {Opcode.DIVIDE, Opcode.CDIV}


def type_bounds(kind: ArgumentType) -> Bounds:
    """The bounds of an argument by its type; all numbers for what is no integer, or a truth value."""
    bits = BITS.get(kind.element, 1) if kind.is_integer else 1
    if bits == 1:
        return EVERY
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if kind.element[0] == "i" else (0, min(2**bits - 1, LARGEST))


def find_bounds(expression: Expression, names: Mapping[str, Bounds]) -> Bounds | None:
    """The bounds of the expression's value; None where it has no value, whatever its names stand for."""
    stack: list[Bounds | None] = []
    for step in expression.steps:
        if step.opcode is Opcode.ARGUMENT:
            stack.append(names.get(step.name, EVERY))
        elif step.opcode is Opcode.CONSTANT:
            stack.append((step.operand, step.operand))
        else:
            right, left = stack.pop(), stack.pop()
            stack.append(None if left is None or right is None else _apply(step.opcode, left, right))
    return stack[0]


def _apply(opcode: Opcode, left: Bounds, right: Bounds) -> Bounds | None:
    if opcode in _CORNERS:
        return _monotone(opcode, left, right)
    if opcode is Opcode.MODULO:
        return _modulo(left, right)
    return _compare(opcode, left, right)


def _monotone(opcode: Opcode, left: Bounds, right: Bounds) -> Bounds | None:
    """An operation that, where the sign of a divisor is fixed, is largest and least at the ends of its operands."""
    parts = _without_zero(right) if opcode in _DIVISIONS else [right]
    found = [compute(opcode, *pair) for part in parts for pair in product(left, part)]
    return _within(min(found), max(found)) if found else None


def _without_zero(bounds: Bounds) -> list[Bounds]:
    low, high = bounds
    parts = [(low, min(high, -1)), (max(low, 1), high)]
    return [part for part in parts if part[0] <= part[1]]


def _within(low: int, high: int) -> Bounds | None:
    """What is outside 64 bits is no value."""
    low, high = max(low, SMALLEST), min(high, LARGEST)
    return (low, high) if low <= high else None


def _modulo(left: Bounds, right: Bounds) -> Bounds | None:
    """A remainder has the divisor's sign and is less than it; one of what is less already is that."""
    low, high = right
    if (low, high) == (0, 0):
        return None
    if low > left[1] and left[0] >= 0:
        return left
    if low == high and left[0] // low == left[1] // low:
        ends = left[0] % low, left[1] % low
        return min(ends), max(ends)
    return min(low + 1, 0), max(high - 1, 0)


def _compare(opcode: Opcode, left: Bounds, right: Bounds) -> Bounds:
    """0 where the comparison never holds, 1 where it always does."""
    overlap = left[0] <= right[1] and right[0] <= left[1]
    one = left[0] == left[1] == right[0] == right[1]
    if opcode in (Opcode.EQUAL, Opcode.UNEQUAL):
        equal = (int(one), int(overlap))
        return equal if opcode is Opcode.EQUAL else (1 - equal[1], 1 - equal[0])
    always, ever = _ordered(opcode, left, right)
    return int(always), int(ever)


def _ordered(opcode: Opcode, left: Bounds, right: Bounds) -> tuple[bool, bool]:
    """Whether the comparison always holds, and whether it ever does."""
    if opcode is Opcode.LESS:
        return left[1] < right[0], left[0] < right[1]
    if opcode is Opcode.AT_MOST:
        return left[1] <= right[0], left[0] <= right[1]
    if opcode is Opcode.MORE:
        return left[0] > right[1], left[1] > right[0]
    return left[0] >= right[1], left[1] >= right[0]
