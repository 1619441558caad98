"""Whether two accesses may touch the same memory in another order. In: pointer values. Out: yes or no.

Accesses through different pointer arguments are taken to meet only at equal places (an argument passed twice), which
is all that a GPU's unordered threads allow; `strict` takes nothing of them for granted. Through one argument, only
addresses that are computed alike are the same.
"""

from __future__ import annotations

from precast.engines.cpu.ir import Function, Op, Value
from precast.engines.cpu.shapes import MOVES

_FOLLOWED = ("tt.addptr", "tt.splat", "tt.bitcast", *MOVES)
_PURE = ("tt.addptr", "tt.splat", "tt.make_range", "tt.get_program_id", *MOVES)


class Addresses:
    """What is known of a function's pointers, each found once."""

    def __init__(self, function: Function, strict: bool) -> None:
        self._strict = strict
        self._bases: dict[Value, Value | None] = {}
        self._numbers: dict[Value, int] = {}
        self._known: dict[object, int] = {}
        for operation in function.operation.walk():
            for result in operation.results:
                self._numbers[result] = self._number(operation, result)

    def _number(self, operation: Op, result: Value) -> int:
        """Equal for results that are computed alike from values of equal numbers."""
        fresh = len(self._numbers) + (1 << 40)
        if not (operation.name.startswith("arith.") or operation.name in _PURE) or operation.regions:
            return fresh
        operands = tuple(self._numbers.get(each, each) for each in operation.operands)
        attributes = repr(sorted(operation.attributes.items(), key=lambda item: item[0]))
        key = (operation.name, attributes, operands, result.type, result.index)
        return self._known.setdefault(key, fresh)

    def base(self, pointer: Value) -> Value | None:
        """The function argument that a pointer is computed from, None when it cannot be told."""
        passed: dict[Value, None] = {}
        found: Value | None = pointer
        while found is not None and found not in self._bases and found not in passed:
            passed[found] = None
            found = _source(found)
        known = self._bases.get(found, found) if found is not None else None
        self._bases.update(dict.fromkeys(passed, known))
        return known

    def same(self, first: Value, second: Value) -> bool:
        """Whether two values are computed alike from the same values."""
        if first is second:
            return True
        number = self._numbers.get(first)
        return number is not None and number == self._numbers.get(second)

    def may_overlap(self, first: Value, second: Value, moved: bool = False) -> bool:
        """Whether accesses through two pointers, read and written in one nest, can meet at different places of it."""
        a, b = self.base(first), self.base(second)
        if a is not None and b is not None and a is not b:
            return self._strict
        return moved or not self.same(first, second)


def _source(pointer: Value) -> Value | None:
    """What a pointer is computed from: itself for a function's argument, None where that cannot be told."""
    operation = pointer.definition
    if operation is not None and operation.name == "scf.for":
        return _carried_start(operation, pointer.index)
    if operation is not None:
        return operation.operands[0] if operation.name in _FOLLOWED else None
    owner = pointer.block.parent if pointer.block else None
    if owner is not None and owner.name == "tt.func":
        return pointer
    if owner is None or owner.name != "scf.for" or pointer.index == 0:
        return None
    return _carried_start(owner, pointer.index - 1)


def _carried_start(loop: Op, index: int) -> Value | None:
    """What a carried pointer begins with, where each round only advances it."""
    argument = loop.body.arguments[index + 1]
    value: Value = loop.body.terminator.operands[index]
    while value is not argument:
        operation = value.definition
        if operation is None or operation.name not in _FOLLOWED:
            return None
        value = operation.operands[0]
    return loop.operands[index + 3]
