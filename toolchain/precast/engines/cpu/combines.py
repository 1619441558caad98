"""What the combine region of a reduce or scan allows. In: the op. Out: its identity, order, and the width of its sums.

A region is associative, or Triton's own order would not be defined; only where it is commutative too may elements of
one axis be combined in another order than theirs. NaN aside: which of two a choice keeps is no GPU's promise either.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from precast.engines.cpu import floats
from precast.engines.cpu.builder import Builder
from precast.engines.cpu.ir import Op, Value
from precast.engines.cpu.values import Plain, integer_bounds

_ALL_ONES = {"arith.andi"}
_ZERO = {"arith.addi", "arith.ori", "arith.xori"}
_LIMITS = {"arith.maxsi", "arith.maxui", "arith.minsi", "arith.minui"}
_FLOATS = {"arith.addf": -0.0, "arith.mulf": 1.0, "arith.maxnumf": math.nan, "arith.minnumf": math.nan,
           "arith.maximumf": -math.inf, "arith.minimumf": math.inf}  # fmt: skip
_COMMUTATIVE = {*_ALL_ONES, *_ZERO, *_LIMITS, *_FLOATS, "arith.muli"}
_CHOICES = {"arith.cmpi", "arith.cmpf", "arith.select", "arith.andi", "arith.ori", "arith.xori", "arith.constant"}


def identity(operation: Op) -> int | float | None:
    """The combine region's identity element, None when there is none that is known."""
    name = only_name(operation)
    if name is None or len(operation.operands) != 1:
        return None
    element = operation.body.arguments[0].type.element
    if name in _ZERO:
        return 0
    if name in _ALL_ONES:
        return -1
    if name == "arith.muli":
        return 1
    if name in _LIMITS:
        low, high = integer_bounds(element, name.endswith("si"))
        return low if name.startswith("arith.max") else high
    # -0.0 is what leaves every sum as it is; a quiet NaN is what maxnum and minnum ignore.
    return _FLOATS.get(name)


def find_extreme(operation: Op) -> str | None:
    """`max` or `min` where the region keeps that number of each pair, and NaN only where there is no number."""
    name = only_name(operation)
    if name not in ("arith.maxnumf", "arith.minnumf") or len(operation.operands) != 1:
        return None
    known = operation.body.arguments[0].type.element in ("f32", "f64") or sums_in_f32(operation)
    return name[len("arith.") :][:3] if known else None


def sums_in_f32(operation: Op) -> bool:
    """Whether small floats stay f32 until the end: the region is one sum, product, minimum or maximum of each pair."""
    name = only_name(operation)
    small = all(each.type.element in ("f16", *floats.HAND) for each in operation.operands)
    return small and name in _FLOATS


def widened(b: Builder, values: Sequence[Plain], wide: bool) -> list[Plain]:
    return [floats.widen(b, each) for each in values] if wide else list(values)


def narrowed(b: Builder, values: Sequence[Plain], elements: Sequence[str]) -> list[Plain]:
    """The values rounded to the elements that the op's results have."""
    return [floats.convert(b, each, element) for each, element in zip(values, elements, strict=True)]


def only_name(operation: Op) -> str | None:
    """The one op of which the region consists, applied to each pair of elements; None for any other region."""
    body, count = operation.body, len(operation.operands)
    steps = body.operations[:-1]
    if len(steps) != count or [each.results[0] for each in steps] != body.terminator.operands:
        return None
    pairs = [{body.arguments[index], body.arguments[index + count]} for index in range(count)]
    if any(set(step.operands) != pair for step, pair in zip(steps, pairs, strict=True)):
        return None
    names = {each.name for each in steps}
    return names.pop() if len(names) == 1 else None


def is_commutative(operation: Op) -> bool:
    """Whether the elements may be combined in any order."""
    arguments, count = operation.body.arguments, len(operation.operands)
    swapped = [*arguments[count:], *arguments[:count]]
    known: dict[object, int] = {}
    forwards = _canonical(operation, dict(zip(arguments, range(2 * count), strict=True)), known)
    backwards = _canonical(operation, dict(zip(swapped, range(2 * count), strict=True)), known)
    return forwards is not None and (forwards == backwards or _chooses_alike(operation))


def _canonical(operation: Op, numbers: dict[Value, int], known: dict[object, int]) -> list[int] | None:
    """A number for each result: equal for what is computed alike, the operands of commutative ops in any order."""
    for inner in operation.body.operations[:-1]:
        if inner.regions or any(each not in numbers for each in inner.operands):
            return None
        operands = [numbers[each] for each in inner.operands]
        if inner.name in _COMMUTATIVE:
            operands.sort()
        attributes = repr(sorted(inner.attributes.items(), key=lambda item: item[0]))
        for result in inner.results:
            key = (inner.name, attributes, tuple(operands), result.index, result.type)
            numbers[result] = known.setdefault(key, len(known) + len(operation.body.arguments))
    return [numbers.get(each, -1) for each in operation.body.terminator.operands]


def _chooses_alike(operation: Op) -> bool:
    """Whether a region that only compares pairs and chooses gives the same both ways round, for every order of them."""
    body, count = operation.body, len(operation.operands)
    if any(not _is_choice(inner, body.arguments, count) for inner in body.operations[:-1]):
        return False
    for values in itertools.product((0, 1), repeat=2 * count):
        if _chosen(operation, values) != _chosen(operation, (*values[count:], *values[:count])):
            return False
    return True


def _is_choice(inner: Op, arguments: list[Value], count: int) -> bool:
    if inner.name not in _CHOICES:
        return False
    if inner.name in ("arith.cmpi", "arith.cmpf"):
        places = [arguments.index(each) for each in inner.operands if each in arguments]
        return len(places) == 2 and abs(places[0] - places[1]) in (0, count)
    return inner.name == "arith.select" or inner.result.type.element == "i1"


def _chosen(operation: Op, values: Sequence[int]) -> list[int]:
    body = operation.body
    known: dict[Value, int] = dict(zip(body.arguments, values, strict=True))
    for inner in body.operations[:-1]:
        operands = [known[each] for each in inner.operands]
        known[inner.result] = _choose(inner, operands)
    return [known[each] for each in body.terminator.operands]


def _choose(inner: Op, operands: list[int]) -> int:
    if inner.name == "arith.constant":
        return int(inner.attributes["value"]) & 1
    if inner.name == "arith.select":
        return operands[1] if operands[0] else operands[2]
    x, y = operands
    if inner.name in ("arith.cmpi", "arith.cmpf"):
        predicate = str(inner.attributes["predicate"])
        answers = {"eq": x == y, "ne": x != y, "lt": x < y, "le": x <= y, "gt": x > y, "ge": x >= y}
        always = {"true": True, "false": False, "ord": True, "uno": False, "one": x != y}
        return int(always[predicate] if predicate in always else answers[predicate[-2:]])
    return {"arith.andi": x & y, "arith.ori": x | y, "arith.xori": x ^ y}[inner.name]
