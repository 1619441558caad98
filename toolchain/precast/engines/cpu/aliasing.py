"""Whether two accesses may touch the same memory in another order. In: pointer values. Out: yes or no.

Accesses through different pointer arguments are taken to meet only at equal places (an argument passed twice), which
is all that a GPU's unordered threads allow; through one argument, only structurally equal addresses are.
"""

from __future__ import annotations

from precast.engines.cpu.ir import Op, Value
from precast.engines.cpu.shapes import MOVES


def base_argument(pointer: Value) -> Value | None:
    """The function argument that a pointer is computed from, None when it cannot be told."""
    seen: set[Value] = set()
    while pointer not in seen:
        seen.add(pointer)
        operation = pointer.definition
        if operation is None:
            owner = pointer.block.parent if pointer.block else None
            if owner is None or owner.name != "scf.for":
                return pointer if owner is not None and owner.name == "tt.func" else None
            if pointer.index == 0:
                return None
            pointer = owner.operands[pointer.index + 2]
        elif operation.name == "scf.for":
            pointer = operation.operands[pointer.index + 3]
        elif operation.name in ("tt.addptr", "tt.splat", "tt.bitcast", *MOVES):
            pointer = operation.operands[0]
        else:
            return None
    return None


def same_address(first: Value, second: Value) -> bool:
    """Whether two values are computed alike from the same values."""
    if first is second:
        return True
    a, b = first.definition, second.definition
    if a is None or b is None or first.type != second.type or first.index != second.index:
        return False
    return _same_op(a, b) and all(same_address(x, y) for x, y in zip(a.operands, b.operands, strict=True))


def _same_op(a: Op, b: Op) -> bool:
    pure = a.name.startswith("arith.") or a.name in (
        "tt.addptr",
        "tt.splat",
        "tt.make_range",
        "tt.get_program_id",
        *MOVES,
    )
    return pure and a.name == b.name and a.attributes == b.attributes and len(a.operands) == len(b.operands)


def may_overlap(first: Value, second: Value, moved: bool = False) -> bool:
    """Whether accesses through two pointers, read and written in one nest, can meet at different places of the nest."""
    a, b = base_argument(first), base_argument(second)
    if a is not None and b is not None and a is not b:
        return False
    return moved or not same_address(first, second)
