"""How addresses step along a dimension. In: lazy values. Out: strides known at compile time.

This decides along which dimension lanes run, and where a tile is turned in registers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from precast.engines.cpu import kinds, shapes
from precast.engines.cpu.ir import ELEMENT_BITS, Op, Value
from precast.engines.cpu.ordering import needed_first
from precast.engines.cpu.values import Buffer

if TYPE_CHECKING:
    from precast.engines.cpu.context import Context

_UNIFORM = ("tt.splat", "arith.constant")
_SUMS = ("tt.addptr", "arith.addi", "arith.subi")
Along = tuple[Value, int]  # a value and one of its dimensions


class Strides:
    """The answers for values as they are placed now, each found once."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._strides: dict[Along, int | None] = {}
        self._smooth: dict[Along, bool] = {}

    def along(self, value: Value, axis: int) -> int | None:
        """How a pointer or integer value steps along a dimension, when that is known at compile time."""
        for key in needed_first([(value, axis)], self._stepped_on, self._strides):
            self._strides[key] = self._find(*key)
        return self._strides[(value, axis)]

    def _stepped_on(self, key: Along) -> list[Along]:
        """What the stride along a dimension follows from."""
        value, axis = key
        operation = value.definition
        if not value.type.is_tensor or value.type.shape[axis] == 1:
            return []
        place = self._context.places.get(value)
        if place is not None or operation is None:
            start = None if isinstance(place, Buffer) else getattr(place, "start", None)
            return [(start, axis)] if start else []
        if operation.name in shapes.MOVES:
            source = shapes.operand_axis(operation, axis)
            return [] if source is None else [(operation.operands[0], source)]
        if not operation.name.startswith("arith.") and operation.name not in ("tt.addptr", "tt.bitcast"):
            return []
        return [(each, axis) for each in operation.operands]

    def _find(self, value: Value, axis: int) -> int | None:
        operation = value.definition
        if not value.type.is_tensor or value.type.shape[axis] == 1:
            return 0
        place = self._context.places.get(value)
        if isinstance(place, Buffer) or (operation is None and place is None):
            return None
        if place is not None:
            start = getattr(place, "start", None)
            return self._strides[(start, axis)] if start else 0
        assert operation is not None
        return self._of(operation, axis, [self._strides[key] for key in self._stepped_on((value, axis))])

    def _of(self, operation: Op, axis: int, strides: list[int | None]) -> int | None:
        if operation.name == "tt.make_range":
            return 1
        if operation.name in _UNIFORM:
            return 0
        if operation.name in shapes.MOVES:
            return strides[0] if strides else 0
        wide = ELEMENT_BITS[operation.result.type.element] >= 32
        if operation.name in ("arith.extsi", "tt.bitcast") or (operation.name == "arith.trunci" and wide):
            return strides[0]
        if operation.name == "arith.muli":
            return _product_stride(operation, strides)
        if operation.name in _SUMS:
            first, second = strides
            if first is None or second is None:
                return None
            return first - second if operation.name == "arith.subi" else first + second
        return 0 if operation.name.startswith("arith.") and all(each == 0 for each in strides) else None

    def smooth(self, value: Value, axis: int) -> bool:
        """Whether everything that is read to evaluate `value` along `axis` is contiguous or uniform."""
        for key in needed_first([(value, axis)], self._read, self._smooth):
            self._smooth[key] = self._is_smooth(*key)
        return self._smooth[(value, axis)]

    def _read(self, key: Along) -> list[Along]:
        value, axis = key
        operation = value.definition
        if not value.type.is_tensor or value.type.shape[axis] == 1 or operation is None:
            return []
        if value in self._context.places or operation.name in ("tt.make_range", "tt.load", *_UNIFORM):
            return []
        if operation.name in shapes.MOVES:
            source = shapes.operand_axis(operation, axis)
            return [] if source is None else [(operation.operands[0], source)]
        return [(each, axis) for each in operation.operands]

    def _is_smooth(self, value: Value, axis: int) -> bool:
        if not value.type.is_tensor or value.type.shape[axis] == 1:
            return True
        place = self._context.places.get(value)
        if isinstance(place, Buffer):
            return place.strides[axis] == 1
        operation = value.definition
        if operation is not None and place is None and operation.name == "tt.load":
            return self.along(operation.operands[0], axis) in (0, 1)
        return all(self._smooth[key] for key in self._read((value, axis)))


def _product_stride(operation: Op, strides: list[int | None]) -> int | None:
    first, second = strides
    if first == 0 and second == 0:
        return 0
    for stride, other in ((first, operation.operands[1]), (second, operation.operands[0])):
        factor = kinds.known_constant(other)
        if stride is not None and factor is not None:
            return stride * factor
    return None
